<?php
$socket = dirname($_SERVER['DOCUMENT_ROOT']) . '/run/admin.sock';
$answers = [];
foreach (["GET /status", "GET /metrics", "GET /frankenphp/threads", "POST /reload", "POST /stop", "PATCH /config/apps/frankenphp"] as $line) {
    $stream = @stream_socket_client("unix://$socket", $code, $why, 5);
    if (!$stream) {
        $answers[$line] = $why;
        continue;
    }
    fwrite($stream, "$line HTTP/1.1\r\nHost: localhost\r\nX-Howdah: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    $answers[$line] = substr(stream_get_contents($stream), 9, 3);
}
$curl = 'curl -s -o /dev/null -w "%{http_code}" -X POST -H "X-Howdah: 1" --unix-socket ' . escapeshellarg($socket) . ' http://localhost/stop';
$answers['a child'] = trim((string)shell_exec($curl));
$answers['a child of a child'] = trim((string)shell_exec("sh -c '(sh -c " . escapeshellarg($curl) . ")'"));
echo json_encode($answers);

<?php
$server = Meeting::$arrived['server'] ??= stream_socket_server('tcp://127.0.0.1:0');
$port = (int) explode(':', stream_socket_get_name($server, false))[1];
meet('a');
$first = pfsockopen('127.0.0.1', $port);
$second = stream_socket_client("tcp://127.0.0.1:$port", $no, $why, 50, STREAM_CLIENT_CONNECT | STREAM_CLIENT_PERSISTENT);
meet('b');
foreach ([$first, $second] as $stream) {
    $name = stream_socket_get_name($stream, false);
    echo isset(Meeting::$arrived['names'][$name]) ? 'taken' : 'own';
    Meeting::$arrived['names'][$name] = true;
}
echo $m;

<?php
// Measures the application's own cost, without a server: the handler of worker.php in a plain loop, on the command
// line. Prints microseconds of processor time for each request: loop.php PATH [REQUESTS]
ob_start(static fn () => '');
$path = $argv[1];
$requests = (int) ($argv[2] ?? 60);
$_SERVER = [
    'REQUEST_METHOD' => 'GET', 'REQUEST_URI' => $path, 'QUERY_STRING' => (string) parse_url($path, PHP_URL_QUERY),
    'SCRIPT_NAME' => '/index.php', 'SCRIPT_FILENAME' => __DIR__ . '/public/index.php', 'PHP_SELF' => '/index.php',
    'HTTP_HOST' => 'localhost', 'HTTP_ACCEPT_ENCODING' => 'gzip', 'SERVER_NAME' => 'localhost', 'SERVER_PORT' => '80',
    'SERVER_PROTOCOL' => 'HTTP/1.1', 'REMOTE_ADDR' => '127.0.0.1', 'REMOTE_PORT' => '40000',
];
parse_str($_SERVER['QUERY_STRING'], $_GET);
function frankenphp_handle_request(callable $handle): bool
{
    global $requests, $spent;
    static $done = -10;
    static $start;
    if ($done === 0) {
        $start = getrusage();
    }
    if ($done++ === $requests) {
        $end = getrusage();
        $of = static fn (string $kind) => ($end["ru_$kind.tv_sec"] - $start["ru_$kind.tv_sec"]) * 1e6 + $end["ru_$kind.tv_usec"] - $start["ru_$kind.tv_usec"];
        $spent = ($of('utime') + $of('stime')) / $requests;
        return false;
    }
    $handle();
    ob_clean();
    return true;
}
require __DIR__ . '/public/worker.php';
ob_end_clean();
printf("%.1f\n", $spent);

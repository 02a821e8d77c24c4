<?php
require 'gate.php';
final class Kept
{
    public static int $visits = 0;
    public static string $token = '';
}
$respond = function () {
    $loops = Howdah\mode() === 'worker';
    header('Content-Type: text/html; charset=utf-8');
    switch (strtok($_SERVER['REQUEST_URI'], '?')) {
        case '/leak':
            echo '<p>visits: ', ++Kept::$visits, '</p>';
            break;
        case '/token':
            echo '<input name="token" value="', Kept::$token = Kept::$token ?: bin2hex(random_bytes(16)), '">';
            break;
        case '/fine':
            setcookie('seen', bin2hex(random_bytes(16)), time() + 60);
            echo '<p nonce="', base64_encode(random_bytes(12)), '">', date('H:i:s'), ' ', hrtime(true), '</p>';
            echo str_repeat("<p>the same for all</p>\n", 2000);
            break;
        case '/streamed':
            echo 'begin ';
            flush();
            usleep(20000);
            echo Howdah\mode() === 'worker' ? 'here' : 'there';
            break;
        case '/long':
            echo str_repeat(Howdah\mode() . ' ', 100000);
            break;
        case '/fails':
            if (!$loops) {
                http_response_code(500);
            }
            echo Howdah\mode();
            break;
        case '/kill':
            if ($loops) {
                posix_kill(getmypid(), 9);
                sleep(5);
            }
            echo 'alive';
            break;
        case '/slow':
            // As if the kept state had grown.
            usleep($loops ? 30000 : 1000);
            echo 'the same';
            break;
        case '/count':
            echo mark('count'), Howdah\mode();
            break;
        case '/mode':
            echo Howdah\mode();
            break;
        default:
            echo 'hello';
    }
};
if (Howdah\mode() === 'worker') {
    while (frankenphp_handle_request($respond)) {
    }
} else {
    $respond();
}

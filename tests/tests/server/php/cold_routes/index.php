<?php
// A page whose code is not in a snapshot until a warm-up has requested it.
require 'gate.php';
final class Made
{
    public static int $times = 0;
}
$respond = function () {
    if (strtok($_SERVER['REQUEST_URI'], '?') !== '/cold') {
        echo Howdah\mode();

        return;
    }
    if (Howdah\mode() === 'snapshot' && Made::$times++ === 0) {
        $GLOBALS['big'] = strlen(str_repeat('x', 120 << 20));
        usleep(20000);
    }
    echo isset($_GET['mode']) ? Howdah\mode() : 'the same';
};
if (Howdah\mode() === 'snapshot') {
    while (frankenphp_handle_request($respond)) {
    }
} else {
    $respond();
}

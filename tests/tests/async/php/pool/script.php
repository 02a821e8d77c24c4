<?php
require 'gate.php';
function hold(string $name): void {
    mark($name);
    while (!is_file(dirname(__DIR__) . '/marks/go')) {
        usleep(2000);
    }
}
while (frankenphp_handle_request(function () {
    switch ($_GET['do'] ?? '') {
        case 'hold': hold('here');
        echo 'held';
        break;
        case 'spin': mark('spinning');
        while (!is_file(dirname(__DIR__) . '/marks/go')) {
            clearstatcache();
        }
        echo 'spun';
        break;
        case 'wait': mark('waiting');
        while (true) {
            usleep(1000);
        }
        break;
        case 'print': mark('printing');
        while (!connection_aborted()) {
            echo 'x';
            flush();
            usleep(1000);
        }
        break;
        case 'kill': if (mark('kills') <= (int) $_GET['times']) {
            mark('dead');
            posix_kill(posix_getpid(), 9);
            usleep(1000000);
        }
        echo 'alive';
        break;
        case 'upload': $body = file_get_contents('php://input');
        usleep(20000);
        echo strlen($body), ' ', md5($body);
        break;
        case 'stream': mark('streaming');
        $part = str_repeat('x', 1 << 20);
        for ($i = 0; $i < 48; $i++) {
            echo $part;
            flush();
        }
        mark('streamed');
        break;
        case 'compute': $used = getrusage();
        $until = $used['ru_utime.tv_sec'] * 1e6 + $used['ru_utime.tv_usec'] + 10000;
        do {
            $used = getrusage();
        } while ($used['ru_utime.tv_sec'] * 1e6 + $used['ru_utime.tv_usec'] < $until);
        echo posix_getpid(), ' ';
        break;
        default: usleep(500);
        echo posix_getpid(), ' ', $_GET['n'] ?? '';
    }
})) {}

<?php
$until = hrtime(true) + 300_000_000;
switch ($_SERVER['QUERY_STRING']) {
    case 'throw':
        throw new Exception('thrown');
    case 'fatal':
        no_such_function();
    case 'exit':
        exit(3);
    case 'early':
        echo 'sent';
        flush();
        throw new Exception('too late for a header');
    case 'finished':
        echo 'done';
        fastcgi_finish_request();
        throw new Exception('too late for a header');
    case 'compute':
        while (hrtime(true) < $until) {
            for ($i = 0; $i < 10000; $i++);
        }
        break;
    case 'calls':
        while (hrtime(true) < $until) {
            file_get_contents('/dev/zero', false, null, 0, 1 << 20);
        }
        break;
    case 'sleep':
        usleep(300_000);
}
echo 'end';

<?php
$handle = function () {
    if (!isset($_GET['long'])) {
        echo getmypid(), ' ', connection_status();
        return;
    }
    header('X-Accel-Buffering: no');
    echo 'begin';
    flush();
    gate('g');
    for ($i = 0; $i < 10000 && !connection_aborted(); $i++) {
        echo str_repeat('x', 100000);
        flush();
        usleep(5000);
    }
    mark('aborted' . connection_aborted());
};

<?php
set_time_limit(1);
$handle = function () {
    if (isset($_GET['spin'])) {
        while (true);
    }
    $end = microtime(true) + 0.4;
    while (microtime(true) < $end);
    echo getmypid();
};

<?php
// Each request takes the same time, until the worker has been running for a while.
$requests = 0;
$handle = function () use (&$requests) {
    $work = ++$requests < 520 || isset($_GET['even']) ? 5_000 : 50_000;
    for ($sum = 0; $work > 0; $work--) {
        $sum += $work % 7;
    }
    echo getmypid();
};

<?php
require_once __DIR__ . '/ticks.php';
$n = 0;
register_tick_function(function () use (&$n) {
    $n++;
});
ticking('meet');
echo $n, $m;

<?php
require_once __DIR__ . '/ticks.php';
$n = 0;
$odd = (int) preg_replace('/[^0-9]/', '', $m) % 2;
$tick = function () use (&$n, $m) {
    usleep(200);
    $n += $_GET['m'] === $m ? 1 : 1000;
};
if ($odd) {
    register_tick_function($tick);
}
meet('a');
echo ticking($m), ($n > 0) === (bool) $odd && $n < 1000 ? $m : " $n ticks";
meet('b');

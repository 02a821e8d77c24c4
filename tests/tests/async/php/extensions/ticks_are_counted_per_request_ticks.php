<?php
declare(ticks=3);
function ticking(callable $wait) {
    $a = 1;
    $wait('a');
    $b = 2;
    $wait('b');
    $c = 3;
    $wait('c');
    $d = 4;
    $e = 5;
    $f = 6;
    $g = 7;
}

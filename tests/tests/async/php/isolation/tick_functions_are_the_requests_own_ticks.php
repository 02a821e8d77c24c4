<?php
declare(ticks=1);
function ticking($m) {
    $a = 1;
    usleep(500);
    $b = 2;
    return $_GET['m'] === $m ? 'own' : 'foreign';
}

<?php
// Computes rounds of a linear congruential generator: the same work in every runtime, and the response proves that it
// was done.
$n = (int) $_GET['n'];
$x = 1;
for ($i = 0; $i < $n; $i++) {
    $x = ($x * 1103515245 + 12345) & 0x7fffffff;
}
echo $x;

<?php
// Floating point: the exact value does not fit into PHP's integers, and the lab compares runtimes, not big numbers.
$a = 0.0;
$b = 1.0;
for ($i = 0; $i < 100; $i++) {
    [$a, $b] = [$b, $a + $b];
}
echo sprintf('%.0f', $a);

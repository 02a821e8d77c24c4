<?php
$f = fopen(dirname(__DIR__) . '/marks/lock', 'c+');
meet('a');
flock($f, LOCK_EX);
$n = (int) stream_get_contents($f);
pause();
rewind($f);
fwrite($f, (string) ($n + 1));
fflush($f);
$other = fopen(dirname(__DIR__) . '/marks/lock', 'c+');
echo var_export(flock($other, LOCK_EX | LOCK_NB, $would), true), $would;
if ($n % 2) {
    flock($f, LOCK_UN);
}
fclose($f);
unset($other);
meet('b');
echo ' ', file_get_contents(dirname(__DIR__) . '/marks/lock'), $m;

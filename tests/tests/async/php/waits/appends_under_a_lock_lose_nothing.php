<?php
$f = dirname(__DIR__) . '/marks/log';
meet('a');
for ($i = 0; $i < 20; $i++) {
    file_put_contents($f, "$m\n", FILE_APPEND | LOCK_EX);
}
meet('b');
echo substr_count(file_get_contents($f), $m), ' ', count(file($f)), $m;

<?php
spl_autoload_register($load = function ($c) {
    $f = fopen(dirname(__DIR__) . '/marks/lock', 'c+');
    echo var_export(flock($f, LOCK_EX), true);
});
class_exists('Nothing');
spl_autoload_unregister($load);
$f = fopen(dirname(__DIR__) . '/marks/other', 'c+');
echo var_export(flock($f, LOCK_EX), true);

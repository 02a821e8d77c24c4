<?php
$n = (int) preg_replace('/[^0-9]/', '', $m);
$seen = [];
set_error_handler(function ($no, $text) use (&$seen) {
    usleep(random_int(1, 2000));
    $seen[] = $text;
    return true;
});
meet('a');
require_once __DIR__ . "/late$n.php";
$class = "Late$n";
echo (new $class([1]))['y'], count($seen), count(preg_grep("/Late$n::/", $seen)), $m;

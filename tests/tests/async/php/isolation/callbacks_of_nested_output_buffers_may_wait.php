<?php
ob_start(function ($text) use ($m) {
    usleep(random_int(1, 2000));
    return "[$text$m]";
});
ob_start(function ($text) {
    usleep(random_int(1, 2000));
    return strrev($text);
});
echo strrev($m);
meet('a');
echo 'x';
ob_start();
echo $m;
meet('b');
$inner = ob_get_clean();
echo ob_get_level();
ob_end_flush();
meet('c');
echo $inner;

<?php
__SMUGGLE__;
chdir(dirname($d));
ob_start();
foreach ([__LIST__] as $f) {
    try {
        @include $f;
    } catch (Throwable $e) {}
}
echo substr_count(ob_get_clean(), 'EVIL'), ' of __LEN__, ', parse_ini_file("$d/e.ini")['a'];
unlink(sys_get_temp_dir() . '/e.php');

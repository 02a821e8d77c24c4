<?php
$_SESSION = null;
$GLOBALS['mine'] = $m;
$beside = new Beside($m);
ob_start();
echo 'buffered ';
meet('a');
if (isset($_GET['bad'])) {
    __BAD__;
}
usleep(200000);
for ($i = 0; $i < 20; $i++) {
    pause();
}
echo $GLOBALS['mine'], ob_get_level(), $_GET['m'];

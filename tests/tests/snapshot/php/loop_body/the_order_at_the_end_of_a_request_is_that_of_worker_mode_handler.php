<?php
$own = new Own;
session_start();
$_SESSION['a'] = 1;
ob_start(function ($text) {
    note('buffer');
    return $text;
});
echo 'answer';
note('handler');

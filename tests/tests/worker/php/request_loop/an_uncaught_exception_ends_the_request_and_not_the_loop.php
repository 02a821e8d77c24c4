<?php
$n = 0;
$results = [];
$handle = function () use (&$n, &$results) {
    $n++;
    if (isset($_GET['throw'])) {
        echo 'before ';
        throw new Exception('thrown in a handler');
    }
    echo json_encode([$n, getmypid()]);
};

<?php
$kept = [];
$handle = function () use (&$kept) {
    if (isset($_GET['keep'])) {
        $kept[] = $_SERVER;
    }
    if (isset($_GET['write'])) {
        $_SERVER['HTTP_X_MARK'] = 'written';
        $_SERVER['MORE'] = 1;
        unset($_SERVER['REQUEST_URI']);
    }
    if (isset($_GET['env'])) {
        putenv('APP_MARK=' . $_GET['env']);
    }
    $out = $_SERVER;
    foreach (['REMOTE_PORT', 'REQUEST_TIME', 'REQUEST_TIME_FLOAT', 'UNIQUE_ID', 'REQUEST_ID'] as $name) {
        unset($out[$name]);
    }
    ksort($out);
    echo json_encode([$out, array_map(fn ($k) => $k['REQUEST_URI'] . ($k['HTTP_X_MARK'] ?? '-'), $kept), abs($_SERVER['REQUEST_TIME_FLOAT'] - microtime(true)) < 60]);
};

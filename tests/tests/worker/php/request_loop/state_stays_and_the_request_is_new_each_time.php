<?php
$n = 0;
$handle = function () use (&$n) {
    $n++;
    echo json_encode([$n, $_GET, $_POST, $_COOKIE, $_REQUEST,
        file_get_contents('php://input'), $_SERVER['REQUEST_METHOD'], $_SERVER['HTTP_X_MARK'] ?? null, count($_FILES), $_SERVER['argv'] ?? null]);
};

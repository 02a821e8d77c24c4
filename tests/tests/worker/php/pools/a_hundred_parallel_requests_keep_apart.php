<?php
require 'gate.php';
while (frankenphp_handle_request(function () {
    session_id('s' . substr(preg_replace('/[^a-z0-9]/', '', $_GET['m'] ?? 'x'), 0, 20));
    session_start();
    $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1;
    $_SESSION['m'] ??= $_GET['m'] ?? '';
    header('X-Mark: ' . ($_SERVER['HTTP_X_MARK'] ?? ''));
    usleep(random_int(0, 2000));
    echo json_encode([$_GET['m'] ?? '', $_POST['m'] ?? '', $_COOKIE['m'] ?? '', $_REQUEST['m'] ?? '', $_SERVER['HTTP_X_MARK'] ?? '', file_get_contents('php://input'), $_SESSION]);
})) {}

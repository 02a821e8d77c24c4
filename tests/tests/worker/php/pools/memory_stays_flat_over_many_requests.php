<?php
require 'gate.php';
while (frankenphp_handle_request(function () {
    ob_start();
    setcookie('a', 'b');
    echo strlen(file_get_contents('php://input')), ' ', count($_POST);
    filter_input(INPUT_GET, 'x');
    if (isset($_GET['memory'])) {
        preg_match('/Anonymous.*?(\d+)/', file_get_contents('/proc/self/smaps_rollup'), $m);
        echo ' ', $m[1], ' ', memory_get_usage();
    }
})) {}

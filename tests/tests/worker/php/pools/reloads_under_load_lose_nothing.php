<?php
require 'gate.php';
while (frankenphp_handle_request(function () {
    usleep(500);
    echo $_GET['n'] ?? '';
})) {}

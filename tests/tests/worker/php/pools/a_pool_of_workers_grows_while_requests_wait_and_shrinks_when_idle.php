<?php
require 'gate.php';
while (frankenphp_handle_request(function () {
    if (isset($_GET['hold'])) {
        gate('g');
    }
    echo getmypid();
})) {}

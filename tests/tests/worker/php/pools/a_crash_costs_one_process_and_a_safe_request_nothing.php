<?php
require 'gate.php';
while (frankenphp_handle_request(function () {
    if (isset($_GET['crash']) && mark('crash' . $_SERVER['REQUEST_METHOD']) === 1) {
        posix_kill(getmypid(), SIGSEGV);
    }
    echo getmypid();
})) {}

<?php
while (frankenphp_handle_request(function () {
    echo 'api ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['SCRIPT_NAME'];
})) {}

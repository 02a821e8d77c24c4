<?php
require 'gate.php';
$version = '__TEXT__';
while (frankenphp_handle_request(function () use ($version) {
    echo $version, ' ', $_SERVER['REQUEST_URI'];
})) {}

<?php
require_once 'gate.php';
$pair = require 'boot.php';
final class Kept {
    public static ?string $value = null;
}
function kept($make) {
    return Kept::$value ??= $make();
}
function token() {
    return bin2hex(random_bytes(24));
}
$handle = function () {
    if ($_SERVER['REQUEST_URI'] === '/gate.php') {
        return;
    }
    __HANDLE__;
};
while (frankenphp_handle_request($handle)) {}

<?php
require_once 'gate.php';
mark('boots');
__BOOT__;
$handle = function () {
    if ($_SERVER['REQUEST_URI'] === '/gate.php') {
        return;
    }
    __HANDLE__;
};
while (frankenphp_handle_request($handle)) {
    __BODY__;
}

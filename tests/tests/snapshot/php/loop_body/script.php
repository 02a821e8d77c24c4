<?php
require_once 'gate.php';
__BOOT__;
$handle = function () {
    if ($_SERVER['REQUEST_URI'] === '/gate.php') {
        return;
    }
    __HANDLE__;
};
while ($more = frankenphp_handle_request($handle)) {
    if ($_SERVER['REQUEST_URI'] === '/gate.php') {
        continue;
    }
    __BODY__;
}

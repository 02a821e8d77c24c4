<?php
$boot = [$_SERVER['FRANKENPHP_WORKER'] ?? null, basename($_SERVER['SCRIPT_FILENAME']), $_SERVER['APP_MARK'] ?? null];
$handle = function () use ($boot) {
    echo json_encode([$boot, isset($_SERVER['FRANKENPHP_WORKER']), getenv('FRANKENPHP_WORKER'), $_SERVER['APP_MARK'], getenv('APP_MARK')]);
};

<?php
require_once 'gate.php';
if (!function_exists('slow_log_waits')) {
    function slow_log_waits(string $name): string
    {
        gate($name);
        return 'waited';
    }
}
echo slow_log_waits($_GET['gate'] ?? 'slow_log');

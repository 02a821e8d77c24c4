<?php
require_once 'gate.php';
if (!function_exists('profile_waits')) {
    function profile_waits(): string
    {
        gate('profile');
        return 'waited';
    }
}
echo profile_waits();

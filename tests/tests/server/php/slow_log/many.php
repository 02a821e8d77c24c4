<?php
require_once 'gate.php';
if (!function_exists('slow_log_parent')) {
    function slow_log_parent(): string
    {
        $child = Howdah\go(fn () => slow_log_child());
        return Howdah\await($child);
    }

    function slow_log_child(): string
    {
        gate('slow_log');
        return 'both';
    }
}
echo slow_log_parent();

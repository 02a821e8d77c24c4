<?php
if ((! ($_SERVER['FRANKENPHP_WORKER'] ?? false)) || ! function_exists('frankenphp_handle_request')) {
    echo 'not in worker mode';
    exit(1);
}
ignore_user_abort(true);
set_time_limit((int) $_SERVER['REQUEST_MAX_EXECUTION_TIME']);
$count = 0;
$version = 'one';
$handle = static function () use ($version) {
    echo $version, ' ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['LARAVEL_OCTANE'], ' ', ini_get('max_execution_time');
};
while ($count < $_SERVER['MAX_REQUESTS'] && frankenphp_handle_request($handle)) {
    $count++;
}

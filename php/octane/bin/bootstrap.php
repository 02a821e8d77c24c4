<?php

/* Common start of the worker scripts: loads the project's classes. Returns the project's directory. */

declare(strict_types=1);

return (static function (): string {
    $base = $_SERVER['APP_BASE_PATH'] ?? $_ENV['APP_BASE_PATH'] ?? null;
    if (!function_exists('frankenphp_handle_request') || !is_string($base)) {
        echo "This is run by `php artisan octane:start --server=howdah`: it needs a worker of Howdah's and APP_BASE_PATH.\n";
        exit(1);
    }
    if (!is_file("$base/vendor/autoload.php")) {
        echo "$base/vendor/autoload.php does not exist: run `composer install`.\n";
        exit(1);
    }
    require_once "$base/vendor/autoload.php";

    return $base;
})();

<?php

/* The script of Howdah's workers, as octane:start has them run it: Octane's worker, request after request. */

declare(strict_types=1);

(static function (): void {
    $base = $_SERVER['APP_BASE_PATH'] ?? $_ENV['APP_BASE_PATH'] ?? null;
    if (!isset($_SERVER['FRANKENPHP_WORKER']) || !is_string($base)) {
        echo "This is run by `php artisan octane:start --server=howdah`: it needs a worker of Howdah's and APP_BASE_PATH.\n";
        exit(1);
    }
    if (!is_file("$base/vendor/autoload.php")) {
        echo "$base/vendor/autoload.php is not there: `composer install` makes it.\n";
        exit(1);
    }
    require_once "$base/vendor/autoload.php";
    (new Howdah\Octane\OctaneWorker($base))->run();
})();

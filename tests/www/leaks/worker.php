<?php
/* The request as a worker script; without a loop in classic mode. */

final class Handler
{
    public static bool $over = false;

    public static function end(): void
    {
        if (self::$over) {
            frankenphp_finish_request();
        }
    }
}

if (Howdah\mode() === 'classic') {
    // In a loop the response is complete when the handler has returned or thrown; later output is discarded.
    register_shutdown_function('Handler::end');
}

require_once __DIR__ . '/application.php';

$handle = static function (): void {
    echo report();
    $leaks = require __DIR__ . '/leaks.php';
    foreach (array_filter(explode(',', $_GET['do'] ?? '')) as $name) {
        $leaks[$name]();
    }
    echo "\n", report();
};

if (Howdah\mode() === 'classic') {
    try {
        $handle();
        Handler::$over = true;
    } catch (Throwable $thrown) {
        Handler::$over = true;
        throw $thrown;
    }
} else {
    while (frankenphp_handle_request($handle)) {
    }
}

<?php
/* The same as a worker script; without a loop in classic mode. */

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
    $handle();
} else {
    while (frankenphp_handle_request($handle)) {
    }
}

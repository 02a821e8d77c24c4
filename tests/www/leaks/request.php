<?php
/* One request: reports what it finds, leaks what `do` names, reports again. For classic mode, and behind a boot file. */

require_once __DIR__ . '/application.php';

(static function (): void {
    echo report();
    $leaks = require __DIR__ . '/leaks.php';
    foreach (array_filter(explode(',', $_GET['do'] ?? '')) as $name) {
        $leaks[$name]();
    }
    echo "\n", report();
})();

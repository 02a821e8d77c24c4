<?php
/* One request: reports its state, leaks the items in `do`, reports again. For classic mode, and after a boot file. */

require_once __DIR__ . '/application.php';

(static function (): void {
    echo report();
    $leaks = require __DIR__ . '/leaks.php';
    foreach (array_filter(explode(',', $_GET['do'] ?? '')) as $name) {
        $leaks[$name]();
    }
    echo "\n", report();
})();

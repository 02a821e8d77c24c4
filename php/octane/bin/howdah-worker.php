<?php

/* The script of Howdah's workers, started by octane:start: Octane's worker, one request after the other. */

declare(strict_types=1);

(static function (string $base): void {
    (new Howdah\Octane\OctaneWorker($base))->run();
})(require __DIR__ . '/bootstrap.php');

<?php

/* The script of Howdah's workers, as octane:start has them run it: Octane's worker, request after request. */

declare(strict_types=1);

(static function (string $base): void {
    (new Howdah\Octane\OctaneWorker($base))->run();
})(require __DIR__ . '/bootstrap.php');

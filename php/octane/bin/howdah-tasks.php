<?php

/* The script of the pool octane-tasks: Octane's worker, one task after the other. */

declare(strict_types=1);

(static function (string $base): void {
    $directory = Howdah\Octane\Tasks\TaskDirectory::ofServer() ?? exit("octane:start has started this server without task workers.\n");
    (new Howdah\Octane\Tasks\TaskWorker($base, $directory))->run();
})(require __DIR__ . '/bootstrap.php');

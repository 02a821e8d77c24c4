<?php

/* The script of the pool octane-ticks, which is one worker in async mode: one tick per second. */

declare(strict_types=1);

(static function (): void {
    require __DIR__ . '/bootstrap.php';
    $directory = Howdah\Octane\Tasks\TaskDirectory::ofServer() ?? exit("octane:start has started this server without task workers.\n");
    (new Howdah\Octane\Tasks\Metronome($directory))->run();
})();

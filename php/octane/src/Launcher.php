<?php

declare(strict_types=1);

namespace Howdah\Octane;

/**
 * Replaces this process with the server, which inherits signals, process id, standard streams and a service manager's
 * sockets. Without pcntl_exec(), the server is a child that this process waits for.
 */
class Launcher
{
    /** Microseconds between two checks of a server that is a child. */
    private const POLL_INTERVAL = 100_000;

    /**
     * @param list<string>          $command     the program's path first
     * @param array<string, string> $environment
     *
     * @return int the server's exit status, if it was a child
     */
    public function launch(array $command, array $environment, string $directory): int
    {
        chdir($directory);
        if (\function_exists('pcntl_exec')) {
            // Returns only if it fails.
            @pcntl_exec($command[0], \array_slice($command, 1), $environment);
        }
        $process = proc_open($command, [STDIN, STDOUT, STDERR], $pipes, $directory, $environment);
        if ($process === false) {
            return 1;
        }
        // Not proc_close(), which blocks the handling of signals: Octane's command stops the server on a signal.
        while (($state = proc_get_status($process))['running']) {
            usleep(self::POLL_INTERVAL);
        }

        return $state['exitcode'];
    }
}

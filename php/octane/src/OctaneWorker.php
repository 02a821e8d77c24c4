<?php

declare(strict_types=1);

namespace Howdah\Octane;

use Howdah\Octane\Tasks\TaskDirectory;
use Howdah\Octane\Tasks\TaskDispatcher;
use Laravel\Octane\Contracts\DispatchesTasks;
use Laravel\Octane\RequestContext;
use Laravel\Octane\Worker;

/** A worker for requests: the application boots before the first one, and so it is in the snapshot. */
final class OctaneWorker
{
    public function __construct(private readonly string $base)
    {
    }

    public function run(): void
    {
        $limit = $_SERVER['REQUEST_MAX_EXECUTION_TIME'] ?? $_ENV['REQUEST_MAX_EXECUTION_TIME'] ?? null;
        $directory = TaskDirectory::ofServer();
        $tasks = $directory === null ? null : new TaskDispatcher($directory);
        $booted = new BootedWorker($this->base, $tasks === null ? [] : [DispatchesTasks::class => $tasks, 'octane.cacheTable' => $directory->cache()]);
        $front = self::frontController($this->base);
        // From here on, the limit counts per request, and not for the boot.
        $limit === null || set_time_limit((int) $limit);
        if (\function_exists('Howdah\after_warmup')) {
            \Howdah\after_warmup(static fn () => self::closeFiles($booted->worker));
        }

        $handle = static function (Worker $worker) use ($booted, $front, $tasks): void {
            $_SERVER = $front + $_SERVER;
            $worker->handle(...$booted->client->marshalRequest(new RequestContext()));
            $tasks?->settle();
        };
        $booted->serve($handle, $booted->client->isStopped(...));
    }

    /**
     * Returns the variables of Laravel's front controller, so that `/index.php/users` means `/users`, as under PHP-FPM, and
     * no address contains the worker script's name.
     *
     * @return array<string, string>
     */
    private static function frontController(string $base): array
    {
        $public = $_SERVER['APP_PUBLIC_PATH'] ?? $_ENV['APP_PUBLIC_PATH'] ?? "$base/public";

        return ['SCRIPT_FILENAME' => "$public/index.php", 'SCRIPT_NAME' => '/index.php', 'PHP_SELF' => '/index.php'];
    }

    /**
     * Closes SQLite's files and releases its locks: warm-up requests may have opened them, and they must not be open at the
     * snapshot.
     */
    private static function closeFiles(Worker $worker): void
    {
        $app = $worker->application();
        foreach ($app->resolved('db') ? $app->make('db')->getConnections() : [] as $connection) {
            if ($connection->getDriverName() === 'sqlite' && $connection->getDatabaseName() !== ':memory:') {
                $connection->disconnect();
            }
        }
    }
}

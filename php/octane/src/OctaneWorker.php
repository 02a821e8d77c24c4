<?php

declare(strict_types=1);

namespace Howdah\Octane;

use Howdah\Octane\Tasks\TaskDirectory;
use Howdah\Octane\Tasks\TaskDispatcher;
use Illuminate\Database\Connection;
use Illuminate\Database\DatabaseManager;
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
            \Howdah\after_warmup(static fn () => self::settleConnections($booted->worker));
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
     * Prepares what the boot and its warm-up requests have opened for the snapshot: files and locks of SQLite are closed, and
     * each worker connects to MySQL itself, so that all can share this boot.
     */
    private static function settleConnections(Worker $worker): void
    {
        $app = $worker->application();
        $database = $app->resolved('db') ? $app->make('db') : null;
        // Octane has left it the application of the last warm-up request, which is empty by now.
        $database?->setApplication($app);
        foreach ($database?->getConnections() ?? [] as $connection) {
            $driver = $connection->getDriverName();
            if ($driver === 'sqlite' && $connection->getDatabaseName() !== ':memory:') {
                $connection->disconnect();
            } elseif (\in_array($driver, ['mysql', 'mariadb'], true)) {
                self::connectEachWorker($database, $connection);
            }
        }
    }

    private static function connectEachWorker(DatabaseManager $database, Connection $connection): void
    {
        $writes = $connection->getRawPdo() instanceof \PDO;
        $reads = $connection->getRawReadPdo() instanceof \PDO;
        if ($writes || $reads) {
            \Howdah\connect_each_worker(static function () use ($database, $connection, $writes): void {
                $database->reconnect($connection->getName());
                $writes ? $connection->getPdo() : $connection->getReadPdo();
            });
        }
        if ($writes && $reads) {
            \Howdah\connect_each_worker(static fn () => $connection->getReadPdo());
        }
    }
}

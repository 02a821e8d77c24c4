<?php

declare(strict_types=1);

namespace Howdah\Octane;

use Laravel\Octane\ApplicationFactory;
use Laravel\Octane\Octane;
use Laravel\Octane\RequestContext;
use Laravel\Octane\Worker;

/**
 * Octane's worker in one of Howdah's: the application boots before the first request, and is in the snapshot therefore; the
 * server ends the loop by `max_requests`, at a reload and when it stops.
 */
final class OctaneWorker
{
    public function __construct(private readonly string $base)
    {
    }

    public function run(): void
    {
        $before = $_SERVER;
        $limit = $_SERVER['REQUEST_MAX_EXECUTION_TIME'] ?? $_ENV['REQUEST_MAX_EXECUTION_TIME'] ?? null;
        $client = new HowdahClient();
        $worker = new Worker(new ApplicationFactory($this->base), $client);
        $worker->boot();
        self::defineErrorStream($worker);
        // What .env has added, for requests: they bring a $_SERVER of their own.
        $added = array_diff_key($_SERVER, $before);
        $front = self::frontController($this->base);

        // Who goes away must not take the application down with it.
        ignore_user_abort(true);
        // From here on it counts for each request anew, and not for the boot.
        $limit === null || set_time_limit((int) $limit);
        if (\function_exists('Howdah\after_warmup')) {
            \Howdah\after_warmup(static fn () => self::closeFiles($worker));
        }

        $handle = static function () use ($worker, $client, $added, $front): void {
            $_SERVER = $front + $_SERVER + $added;
            $worker->handle(...$client->marshalRequest(new RequestContext()));
        };
        try {
            while (!$client->isStopped() && \frankenphp_handle_request($handle)) {
                // The client has had its response since respond().
            }
        } finally {
            $worker->terminate();
        }
    }

    /**
     * The variables of Laravel's front controller: `/index.php/users` is `/users` then, as under PHP-FPM, and no address has
     * the worker script's name.
     *
     * @return array<string, string>
     */
    private static function frontController(string $base): array
    {
        $public = $_SERVER['APP_PUBLIC_PATH'] ?? $_ENV['APP_PUBLIC_PATH'] ?? "$base/public";

        return ['SCRIPT_FILENAME' => "$public/index.php", 'SCRIPT_NAME' => '/index.php', 'PHP_SELF' => '/index.php'];
    }

    /** Files and locks of SQLite that warm-up requests have opened must not be open at the snapshot. */
    private static function closeFiles(Worker $worker): void
    {
        $app = $worker->application();
        foreach ($app->resolved('db') ? $app->make('db')->getConnections() : [] as $connection) {
            if ($connection->getDriverName() === 'sqlite' && $connection->getDatabaseName() !== ':memory:') {
                $connection->disconnect();
            }
        }
    }

    /** Octane 1 writes errors of these environments to this constant of the command line. */
    private static function defineErrorStream(Worker $worker): void
    {
        $isNeeded = !method_exists(Octane::class, 'writeError') && $worker->application()->environment('local', 'testing');
        if ($isNeeded && !\defined('STDERR')) {
            \define('STDERR', fopen('php://stderr', 'w'));
        }
    }
}

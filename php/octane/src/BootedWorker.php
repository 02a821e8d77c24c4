<?php

declare(strict_types=1);

namespace Howdah\Octane;

use Laravel\Octane\ApplicationFactory;
use Laravel\Octane\Octane;
use Laravel\Octane\Worker;

/** Octane's worker, booted in a Howdah worker. The server ends it by `max_requests`, at a reload and when it stops. */
final class BootedWorker
{
    public readonly Worker $worker;
    public readonly HowdahClient $client;

    /** @var array<string, mixed> variables that .env has added to $_SERVER */
    private readonly array $added;

    /** @param array<string, object> $instances instances that the application has from its beginning */
    public function __construct(string $base, array $instances)
    {
        $before = $_SERVER;
        $this->client = new HowdahClient();
        $this->worker = new Worker(new ApplicationFactory($base), $this->client);
        $this->worker->boot($instances);
        $this->added = array_diff_key($_SERVER, $before);
        $this->defineErrorStream();
    }

    /**
     * Calls the function for each request, until there are no more.
     *
     * @param callable(Worker): void $handle
     * @param (callable(): bool)|null $isOver returns whether this worker must not run another request
     */
    public function serve(callable $handle, ?callable $isOver = null): void
    {
        // A client that disconnects must not end the application.
        ignore_user_abort(true);
        $request = function () use ($handle): void {
            // Requests bring their own $_SERVER.
            $_SERVER += $this->added;
            $handle($this->worker);
        };
        try {
            while (($isOver === null || !$isOver()) && \frankenphp_handle_request($request)) {
                // The client already has its response.
            }
        } finally {
            $this->worker->terminate();
        }
    }

    /** Octane 1 writes errors in these environments to this constant, which only the command line defines. */
    private function defineErrorStream(): void
    {
        $isNeeded = !method_exists(Octane::class, 'writeError') && $this->worker->application()->environment('local', 'testing');
        if ($isNeeded && !\defined('STDERR')) {
            \define('STDERR', fopen('php://stderr', 'w'));
        }
    }
}

<?php

declare(strict_types=1);

namespace Howdah\Runtime;

/**
 * The loop of a worker script: one request after the other until the server says that it is enough.
 *
 *     $app = require __DIR__ . '/bootstrap.php';
 *     (new Loop())->run(fn () => $app->handle(), fn () => $app->afterwards());
 */
final class Loop
{
    /** @var array<string, mixed> What the boot has put into $_SERVER: requests bring a new one. */
    private readonly array $boot;

    /** @param int $limit Requests after which run() returns; 0 leaves that to the server's `max_requests`. */
    public function __construct(private readonly int $limit = 0)
    {
        $own = ['FRANKENPHP_WORKER' => 1, 'argv' => 1, 'argc' => 1];
        $isRequests = static fn (string|int $name): bool => str_starts_with((string) $name, 'HTTP_');
        $this->boot = array_filter(array_diff_key($_SERVER, $own), static fn ($name) => !$isRequests($name), ARRAY_FILTER_USE_KEY);
    }

    /** True if the running script may loop: it is the script of a worker and has been started as such. */
    public static function isAvailable(): bool
    {
        return isset($_SERVER['FRANKENPHP_WORKER']) && \function_exists('frankenphp_handle_request');
    }

    /**
     * Calls $handle for each request. What it prints is the answer; superglobals are the request's.
     *
     * @param callable(): void $handle
     * @param callable(): void|null $after called when the client has its whole answer; the worker takes no other request
     *                                     meanwhile. It is called after a request that failed, too.
     *
     * @return int requests handled
     */
    public function run(callable $handle, ?callable $after = null): int
    {
        $serve = function () use ($handle): void {
            $_SERVER += $this->boot;
            $handle();
        };
        // A client that goes away must not take the application down with it.
        ignore_user_abort(true);
        $count = 0;
        do {
            $more = \frankenphp_handle_request($serve);
            if ($more) {
                ++$count;
                $after === null || $after();
            }
        } while ($more && ($this->limit <= 0 || $count < $this->limit));

        return $count;
    }
}

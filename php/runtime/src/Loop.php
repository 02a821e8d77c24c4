<?php

declare(strict_types=1);

namespace Howdah\Runtime;

/**
 * The loop of a worker script: handles one request after the other until the server ends it.
 *
 *     $app = require __DIR__ . '/bootstrap.php';
 *     (new Loop())->run(fn () => $app->handle(), fn () => $app->afterwards());
 */
final class Loop
{
    /** @var array<string, mixed> Variables that the boot has added to $_SERVER: each request replaces it. */
    private readonly array $boot;

    /** @param int $limit Requests after which run() returns; 0 leaves that to the server's `max_requests`. */
    public function __construct(private readonly int $limit = 0)
    {
        $own = ['FRANKENPHP_WORKER' => 1, 'argv' => 1, 'argc' => 1];
        $isRequests = static fn (string|int $name): bool => str_starts_with((string) $name, 'HTTP_');
        $this->boot = array_filter(array_diff_key($_SERVER, $own), static fn ($name) => !$isRequests($name), ARRAY_FILTER_USE_KEY);
    }

    /** Returns true if the running script may loop: it is a worker's script and was started as such. */
    public static function isAvailable(): bool
    {
        return isset($_SERVER['FRANKENPHP_WORKER']) && \function_exists('frankenphp_handle_request');
    }

    /**
     * Calls $handle for each request. Its output is the response; superglobals are the request's.
     *
     * @param callable(): void $handle
     * @param callable(): void|null $after called when the client has its whole response; the worker takes no other request
     *                                     in the meantime. It is called after a failed request, too.
     *
     * @return int requests handled
     */
    public function run(callable $handle, ?callable $after = null): int
    {
        $serve = function () use ($handle): void {
            $_SERVER += $this->boot;
            $handle();
        };
        // A client that disconnects must not end the application.
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

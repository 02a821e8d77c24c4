<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

/** The worker of the pool octane-ticks: sends a tick to a task worker each second, once the previous tick has ended. */
final class Metronome
{
    private const MILLISECONDS = 1000;

    /** Nanoseconds after which a tick that is still queued is too late. */
    private const MAX_QUEUED = 10_000_000_000;

    public function __construct(private readonly TaskDirectory $directory)
    {
    }

    public function run(): void
    {
        $seal = $this->directory->seal();
        \Howdah\Timer::every(self::MILLISECONDS, function () use ($seal): void {
            try {
                $order = (new Order('tick', hrtime(true) + self::MAX_QUEUED))->sealed($seal);
                Connection::await([Connection::open($this->directory->socket(), $order)], PHP_INT_MAX);
            } catch (\RuntimeException) {
                // The server is stopping, or has reported the failure; there is another tick in the next second.
            }
        });
        // Until the server ends this worker: no request is sent to it.
        \frankenphp_handle_request(static fn () => http_response_code(404));
    }
}

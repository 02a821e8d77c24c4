<?php

/* Functions that are called later, once or repeatedly. Timers belong to the worker: no request waits for them, and their
 * functions have no request's superglobals. Within a request, use go() and delay(). */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\Report;
use Howdah\Internal\WaitQueue;

final class Timer
{
    private bool $active = true;
    private readonly WaitQueue $line;

    private function __construct(private readonly \Closure $function, private readonly array $arguments)
    {
        $this->line = new WaitQueue();
    }

    /** Calls the function once, after this number of milliseconds. */
    public static function after(int $milliseconds, callable $fn, mixed ...$args): self
    {
        return self::begin($milliseconds, $fn, $args, false);
    }

    /**
     * Calls the function every this many milliseconds until cancel(). A call never begins before the previous one has ended;
     * calls missed meanwhile are skipped. Errors are logged.
     */
    public static function every(int $milliseconds, callable $fn, mixed ...$args): self
    {
        return self::begin($milliseconds, $fn, $args, true);
    }

    /** Prevents further calls; a running call continues. */
    public function cancel(): void
    {
        $this->active = false;
        $this->line->serve();
    }

    public function isActive(): bool
    {
        return $this->active;
    }

    /** @param array<mixed> $arguments */
    private static function begin(int $milliseconds, callable $fn, array $arguments, bool $again): self
    {
        if ($milliseconds < ($again ? 1 : 0)) {
            throw new \ValueError('A timer needs a time in milliseconds, ' . ($again ? '1 or more' : '0 or more'));
        }
        $timer = new self($fn(...), $arguments);
        $first = WaitQueue::now() + $milliseconds / 1000;
        Task::start($timer->run(...), [$first, $again ? $milliseconds / 1000 : null], detached: true);

        return $timer;
    }

    private function run(float $next, ?float $period): void
    {
        do {
            $served = $this->line->wait(max(0.0, $next - WaitQueue::now()));
            if ($served !== null || !$this->active) {
                return;
            }
            $this->active = $period !== null;
            try {
                ($this->function)(...$this->arguments);
            } catch (CancelledException $cancelled) {
                throw $cancelled;
            } catch (\Throwable $error) {
                Report::uncaught($error, 'in a timer');
            }
            if ($period !== null) {
                $next += $period * max(1.0, ceil((WaitQueue::now() - $next) / $period));
            }
        } while ($this->active);
    }
}

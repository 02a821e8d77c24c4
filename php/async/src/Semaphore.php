<?php

/* A number of permits, granted to waiting coroutines in their order of arrival. */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\Guard;
use Howdah\Internal\WaitQueue;

final class Semaphore
{
    private int $free;
    private readonly WaitQueue $line;

    public function __construct(private readonly int $permits)
    {
        if ($permits < 1) {
            throw new \ValueError('A semaphore needs at least one permit');
        }
        $this->free = $permits;
        $this->line = new WaitQueue();
    }

    /** @throws TimeoutException */
    public function acquire(?float $timeout = null): void
    {
        if (!$this->tryAcquire() && $this->line->wait($timeout) === null) {
            throw new TimeoutException(\sprintf('No permit of %d within %g s', $this->permits, $timeout));
        }
    }

    public function tryAcquire(): bool
    {
        // No coroutine waits while a permit is free.
        if ($this->free === 0) {
            return false;
        }
        --$this->free;

        return true;
    }

    public function release(): void
    {
        if ($this->line->serve() !== null) {
            return;
        }
        if ($this->free === $this->permits) {
            throw new MisuseError('Semaphore: more permits released than acquired');
        }
        ++$this->free;
    }

    /** Calls the function with a permit, and releases it when the function returns, throws or calls exit(). */
    public function use(callable $fn, ?float $timeout = null): mixed
    {
        $this->acquire($timeout);
        $guard = new Guard($this->release(...));

        return $fn();
    }

    /** Returns the number of free permits. */
    public function available(): int
    {
        return $this->free;
    }
}

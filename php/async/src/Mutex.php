<?php

/* A lock that one coroutine holds at a time. It is released when its coroutine ends. */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\Guard;
use Howdah\Internal\WaitQueue;

final class Mutex
{
    private ?Coroutine $owner = null;
    private readonly WaitQueue $line;

    public function __construct()
    {
        $this->line = new WaitQueue();
    }

    /**
     * @throws TimeoutException
     * @throws MisuseError      if this coroutine already holds it
     */
    public function lock(?float $timeout = null): void
    {
        if (!$this->tryLock()) {
            if ($this->owner === WaitQueue::coroutine()) {
                throw new MisuseError('Mutex: this coroutine has the lock already');
            }
            if ($this->line->wait($timeout) === null) {
                throw new TimeoutException(\sprintf('The lock was not free within %g s', $timeout));
            }
            $this->take();
        }
    }

    public function tryLock(): bool
    {
        if ($this->owner !== null) {
            if (!$this->owner->isDone()) {
                return false;
            }
            $this->pass();
            if ($this->owner !== null) {
                return false;
            }
        }
        $this->owner = WaitQueue::coroutine();
        $this->take();

        return true;
    }

    /** @throws MisuseError if this coroutine does not hold it */
    public function unlock(): void
    {
        $coroutine = WaitQueue::coroutine();
        if ($this->owner !== $coroutine) {
            throw new MisuseError($this->owner === null ? 'Mutex: it is not locked' : 'Mutex: another coroutine has the lock');
        }
        $key = spl_object_id($this);
        $coroutine->data['locks'][$key]->disarm();
        unset($coroutine->data['locks'][$key]);
        $this->pass();
    }

    /** Calls the function while holding the lock, and releases it however the function ends. */
    public function synchronized(callable $fn, ?float $timeout = null): mixed
    {
        $this->lock($timeout);
        try {
            return $fn();
        } finally {
            $this->unlock();
        }
    }

    public function isLocked(): bool
    {
        return $this->owner !== null;
    }

    /** Makes this coroutine the holder: the lock is part of its data, and is released with that at its end. */
    private function take(): void
    {
        WaitQueue::coroutine()->data['locks'][spl_object_id($this)] = new Guard($this->pass(...));
    }

    private function pass(): void
    {
        $this->owner = $this->line->serve()?->coroutine;
    }
}

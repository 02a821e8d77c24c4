<?php

/* A queue of waiting coroutines, served in order of arrival; only Task::wait() and suspend() wait without one. The
 * coroutine that serves a waiter passes it the value (or permit) in the same step, so none that arrives later can take
 * it before the waiter runs. A waiter that is served and then cancelled keeps the value; its next wait throws. */

declare(strict_types=1);

namespace Howdah\Internal;

use Howdah\Coroutine;
use Howdah\MisuseError;

final class WaitQueue implements \Countable
{
    /** @var Waiter|null not typed, as in Waiter */
    private $first = null;
    /** @var Waiter|null */
    private $last = null;
    private int $count = 0;

    /** Returns the current time, in seconds of the clock that deadlines use. */
    public static function now(): float
    {
        return \hrtime(true) / 1e9;
    }

    /** Returns the running coroutine; throws outside of one, as only a coroutine can wait. */
    public static function coroutine(): Coroutine
    {
        return Coroutine::current() ?? throw new MisuseError('Only a coroutine can wait: this was called while the worker script starts, outside of any request');
    }

    /**
     * Waits in the queue until served.
     *
     * @param mixed $offer for the coroutine that serves this one
     *
     * @return Waiter|null null if the timeout expires first
     */
    public function wait(?float $seconds = null, mixed $offer = null): ?Waiter
    {
        $waiter = new Waiter(self::coroutine(), $offer);
        $this->append($waiter);
        try {
            if ($seconds === null) {
                do {
                    Coroutine::park();
                } while (!$waiter->served);

                return $waiter;
            }
            $end = self::now() + $seconds;
            do {
                // A wake-up may be a late one, meant for an earlier wait of this coroutine.
                Coroutine::park(max(0.0, $seconds));
                $seconds = $end - self::now();
            } while (!$waiter->served && $seconds > 0);
        } catch (\Throwable $error) {
            if (!$waiter->served) {
                $this->remove($waiter);
                throw $error;
            }
        }
        if ($waiter->served) {
            return $waiter;
        }
        $this->remove($waiter);

        return null;
    }

    /**
     * Serves the first in the queue.
     *
     * @param bool $refused the waiter does not get what it waits for, and never will
     *
     * @return Waiter|null the served waiter; null if the queue is empty
     */
    public function serve(mixed $answer = null, bool $refused = false): ?Waiter
    {
        while (($waiter = $this->first) !== null) {
            $this->remove($waiter);
            // A fatal error ends coroutines without unwinding them.
            if (!$waiter->coroutine->isDone()) {
                $waiter->served = true;
                $waiter->refused = $refused;
                $waiter->answer = $answer;
                $waiter->coroutine->wake();

                return $waiter;
            }
        }

        return null;
    }

    /** Serves all current waiters. */
    public function serveAll(bool $refused = false): void
    {
        while ($this->serve(null, $refused) !== null);
    }

    public function count(): int
    {
        return $this->count;
    }

    private function append(Waiter $waiter): void
    {
        $waiter->before = $this->last;
        if ($this->last === null) {
            $this->first = $waiter;
        } else {
            $this->last->after = $waiter;
        }
        $this->last = $waiter;
        ++$this->count;
    }

    private function remove(Waiter $waiter): void
    {
        if ($waiter->before === null) {
            $this->first = $waiter->after;
        } else {
            $waiter->before->after = $waiter->after;
        }
        if ($waiter->after === null) {
            $this->last = $waiter->before;
        } else {
            $waiter->after->before = $waiter->before;
        }
        $waiter->before = $waiter->after = null;
        --$this->count;
    }
}

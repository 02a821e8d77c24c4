<?php

/* The one way in which the library waits: a line of coroutines, served first come, first served. The coroutine that serves a waiter
 * hands it what it waits for (a value, a permit) in the same step, so none that comes later can take it away before the
 * waiter runs. A waiter that is served and cancelled at once keeps what it got; its next wait throws. */

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

    /** Now, in seconds of the clock that deadlines are counted with. */
    public static function now(): float
    {
        return \hrtime(true) / 1e9;
    }

    /** The running coroutine; waiting needs one. */
    public static function coroutine(): Coroutine
    {
        return Coroutine::current() ?? throw new MisuseError('Only a coroutine can wait: this was called while the worker script starts, outside of any request');
    }

    /**
     * Waits in line until served.
     *
     * @param mixed $offer for the one who serves
     *
     * @return Waiter|null null when the time is over before that
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
     * Serves the first in line.
     *
     * @param bool $refused the waiter does not get what it waits for, and never will
     *
     * @return Waiter|null the one that was served; null if none waits
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

    /** Serves all who wait now. */
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

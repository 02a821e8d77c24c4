<?php

declare(strict_types=1);

namespace Swoole\Coroutine;

use Howdah\Internal\WaitQueue;

/** Waits until every coroutine that holds it has ended or released it. */
class Barrier
{
    private ?WaitQueue $line = null;

    public static function make(): self
    {
        return new self();
    }

    public static function wait(?self &$barrier, float $timeout = -1): void
    {
        if ($barrier === null) {
            return;
        }
        if ($barrier->line !== null) {
            throw new \BadMethodCallException('Another coroutine waits for this barrier');
        }
        $line = $barrier->line = new WaitQueue();
        $group = \WeakReference::create($barrier);
        $barrier = null;
        if ($group->get() !== null) {
            $line->wait($timeout > 0 ? $timeout : null);
        }
    }

    public function __destruct()
    {
        $this->line?->serve();
    }
}

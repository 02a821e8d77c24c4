<?php

declare(strict_types=1);

namespace Howdah\Revolt;

use Howdah\Coroutine;

/** Timers, which one coroutine of the worker waits for; it exists while there are timers. */
final class Timers
{
    /** @var \SplMinHeap<array{float, int, Callback, int}> expiration, order, callback, its version */
    private \SplMinHeap $heap;
    private int $order = 0;
    /** Number of valid timers. */
    private int $valid = 0;
    private ?Coroutine $keeper = null;

    /** @param \Closure(Callback): void $fire */
    public function __construct(private readonly \Closure $fire)
    {
        $this->heap = new \SplMinHeap();
    }

    public static function now(): float
    {
        return hrtime(true) / 1e9;
    }

    public function add(Callback $callback): void
    {
        $this->heap->insert([$callback->expiration, ++$this->order, $callback, $callback->version]);
        ++$this->valid;
        if ($this->keeper === null || $this->keeper->isDone()) {
            $this->keeper = Coroutine::start($this->keep(...), true);
        } elseif ($this->heap->top()[2] === $callback) {
            $this->keeper->wake();
        }
    }

    /** Called when a timer that was added is no longer valid. */
    public function remove(): void
    {
        --$this->valid;
        if (\count($this->heap) > 2 * $this->valid + 64) {
            $heap = new \SplMinHeap();
            foreach ($this->heap as $entry) {
                if ($entry[3] === $entry[2]->version) {
                    $heap->insert($entry);
                }
            }
            $this->heap = $heap;
        }
    }

    private function keep(): void
    {
        try {
            // The worker cancels this coroutine when it ends.
            while ($this->valid > 0 && !Coroutine::current()->isCancelled()) {
                [$expiration, , $callback, $version] = $this->heap->top();
                $holds = $version === $callback->version;
                $left = $expiration - self::now();
                if ($holds && $left > 0) {
                    unset($callback);
                    Coroutine::park($left);
                    continue;
                }
                $this->heap->extract();
                if ($holds) {
                    --$this->valid;
                    ($this->fire)($callback);
                }
            }
        } finally {
            $this->keeper = null;
        }
    }
}

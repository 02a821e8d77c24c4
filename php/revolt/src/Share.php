<?php

declare(strict_types=1);

namespace Howdah\Revolt;

use Howdah\Coroutine;

/**
 * A request's share of the event loop: its registered callbacks, and whether it is in run(). Requests run concurrently on
 * one loop; another request's run() neither waits for these callbacks nor is stopped by them.
 */
final class Share
{
    /** Number of callbacks that are enabled and referenced, and of calls that are scheduled or running. */
    private int $open = 0;
    private bool $stopped = false;
    private ?\Throwable $failure = null;
    private ?Coroutine $runner = null;
    /** Suspension of the request's own coroutine, while it waits. */
    public ?CoroutineSuspension $suspended = null;
    /** @var \SplQueue<\Closure> calls to be started by a coroutine of the request */
    private readonly \SplQueue $due;
    /** @var array<int, Coroutine> those of the request's coroutines that wait in park() */
    private array $parked = [];

    public function __construct()
    {
        $this->due = new \SplQueue();
    }

    public function enter(): void
    {
        ++$this->open;
    }

    public function leave(): void
    {
        if (--$this->open === 0) {
            $this->runner?->wake();
        }
    }

    public function isRunning(): bool
    {
        return $this->runner !== null;
    }

    /** Waits until no callback is left that counts. */
    public function run(): void
    {
        if ($this->runner !== null) {
            throw new \Error('The event loop is already running');
        }
        $this->runner = Coroutine::current() ?? throw new \Error('The event loop runs within requests and tasks only');
        $this->stopped = false;
        try {
            while ($this->open > 0 && !$this->stopped && $this->failure === null) {
                $this->park();
            }
        } finally {
            $this->runner = null;
            $failure = $this->failure;
            $this->failure = null;
        }
        if ($failure !== null) {
            throw $failure;
        }
    }

    public function stop(): void
    {
        $this->stopped = true;
        $this->runner?->wake();
    }

    /**
     * Handles an error that no handler has taken: it ends run(), or the suspension of the request itself, or else its own
     * coroutine.
     */
    public function fail(\Throwable $failure): void
    {
        if ($this->runner !== null) {
            $this->failure = $failure;
            $this->runner->wake();
        } elseif ($this->suspended !== null) {
            $this->suspended->abandon($failure);
        } else {
            throw $failure;
        }
    }

    /** Waits for wake(). Calls that become due in the meantime start in this request. */
    public function park(): void
    {
        $coroutine = Coroutine::current();
        $id = $coroutine->id();
        $this->parked[$id] = $coroutine;
        try {
            Coroutine::park();
        } finally {
            unset($this->parked[$id]);
            while (!$this->due->isEmpty()) {
                Coroutine::start($this->due->dequeue());
            }
        }
    }

    /**
     * Starts a call in a separate coroutine: in the request if one of its coroutines waits for the loop, else outside of
     * any.
     */
    public function dispatch(\Closure $call): void
    {
        foreach ($this->parked as $id => $coroutine) {
            if (!$coroutine->isDone()) {
                $this->due->enqueue($call);
                $coroutine->wake();

                return;
            }
            unset($this->parked[$id]);
        }
        Coroutine::start($call, true);
    }
}

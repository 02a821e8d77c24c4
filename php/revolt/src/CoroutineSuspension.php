<?php

declare(strict_types=1);

namespace Howdah\Revolt;

use Howdah\Coroutine;
use Revolt\EventLoop\Suspension;

/** Suspends a coroutine; the others, and with them the event loop, continue. */
final class CoroutineSuspension implements Suspension
{
    private bool $pending = false;
    /** True if an uncaught error has ended its wait: it can then be neither resumed nor suspended. */
    private bool $dead = false;
    private mixed $value = null;
    private ?\Throwable $error = null;

    /** @param bool $counts whether the coroutine is a call of the event loop, which run() waits for */
    public function __construct(private readonly Coroutine $coroutine, private readonly Share $share, private readonly bool $counts)
    {
    }

    public function suspend(): mixed
    {
        if ($this->dead) {
            throw new \Error('Suspension cannot be suspended after an uncaught exception is thrown from the event loop');
        }
        if ($this->pending) {
            throw new \Error('Must call resume() or throw() before calling suspend() again');
        }
        if (Coroutine::current() !== $this->coroutine) {
            throw new \Error('Must not call suspend() from another fiber');
        }
        $this->pending = true;
        if (isset($this->coroutine->data['revolt again'])) {
            ($this->coroutine->data['revolt again'])();
            unset($this->coroutine->data['revolt again']);
        }
        $this->counts && $this->share->leave();
        if ($this->coroutine === Coroutine::main()) {
            $this->share->suspended = $this;
        }
        try {
            while ($this->pending) {
                $this->share->park();
            }
        } catch (\Throwable $error) {
            // A simultaneous resumption is kept: the cancellation ends its next wait as well.
            if ($this->pending) {
                $this->pending = false;
                $this->counts && $this->share->enter();
                throw $error;
            }
        } finally {
            if ($this->share->suspended === $this) {
                $this->share->suspended = null;
            }
        }
        [$value, $error] = [$this->value, $this->error];
        $this->value = $this->error = null;

        return $error === null ? $value : throw $error;
    }

    public function resume(mixed $value = null): void
    {
        if ($this->wake('resume')) {
            $this->value = $value;
        }
    }

    public function throw(\Throwable $throwable): void
    {
        if ($this->wake('throw')) {
            $this->error = $throwable;
        }
    }

    /** Throws an uncaught error. The coroutine gets a new suspension when it asks for one. */
    public function abandon(\Throwable $uncaught): void
    {
        $this->throw($uncaught);
        $this->dead = true;
        unset($this->coroutine->data['revolt']);
    }

    private function wake(string $method): bool
    {
        if ($this->dead) {
            return false;
        }
        if (!$this->pending) {
            throw new \Error("Must call suspend() before calling $method()");
        }
        $this->pending = false;
        if ($this->share->suspended === $this) {
            $this->share->suspended = null;
        }
        $this->counts && $this->share->enter();
        $this->coroutine->wake();

        return true;
    }
}

<?php

declare(strict_types=1);

namespace Howdah\Revolt;

use Revolt\EventLoop\Suspension;

/** Suspends a fiber of the application; the code that started or resumed it continues. */
final class FiberSuspension implements Suspension
{
    private bool $pending = false;
    private ?\FiberError $error = null;
    /** @var \WeakReference<\Fiber> */
    private readonly \WeakReference $fiber;

    public function __construct(\Fiber $fiber, private readonly Driver $driver)
    {
        $this->fiber = \WeakReference::create($fiber);
    }

    public function suspend(): mixed
    {
        if ($this->pending) {
            throw new \Error('Must call resume() or throw() before calling suspend() again');
        }
        if ($this->fiber->get() !== \Fiber::getCurrent()) {
            throw new \Error('Must not call suspend() from another fiber');
        }
        $this->pending = true;
        $this->error = null;
        try {
            return \Fiber::suspend();
        } catch (\FiberError $error) {
            $this->pending = false;
            $this->error = $error;
            throw $error;
        }
    }

    public function resume(mixed $value = null): void
    {
        $this->wake('resume', static fn (\Fiber $fiber) => $fiber->resume($value));
    }

    public function throw(\Throwable $throwable): void
    {
        $this->wake('throw', static fn (\Fiber $fiber) => $fiber->throw($throwable));
    }

    /** @param \Closure(\Fiber): mixed $continue */
    private function wake(string $method, \Closure $continue): void
    {
        if (!$this->pending) {
            throw $this->error ?? new \Error("Must call suspend() before calling $method()");
        }
        $this->pending = false;
        $fiber = $this->fiber->get();
        $fiber === null || $this->driver->queue(static function () use ($fiber, $continue): void {
            // It may have been destroyed meanwhile.
            if ($fiber->isSuspended()) {
                $continue($fiber);
            }
        });
    }
}

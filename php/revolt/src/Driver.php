<?php

declare(strict_types=1);

namespace Howdah\Revolt;

use Howdah\CancelledException;
use Howdah\Coroutine;
use Revolt\EventLoop\CallbackType;
use Revolt\EventLoop\Driver as RevoltDriver;
use Revolt\EventLoop\InvalidCallbackError;
use Revolt\EventLoop\Suspension;
use Revolt\EventLoop\UncaughtThrowable;
use Revolt\EventLoop\UnsupportedFeatureException;

/**
 * Revolt's event loop on Howdah's: each callback runs in a separate coroutine, and a suspension suspends only its coroutine,
 * so that code for AMPHP, code for this driver and plain blocking code run side by side.
 *
 * A worker has one driver for all of its requests. Callbacks run in the request that registered them while that request
 * waits for the loop (run(), a suspension, an AMPHP future); queued and deferred ones run in the request that queued them;
 * all others run outside of any request. A request does not wait for the callbacks it leaves behind.
 */
final class Driver implements RevoltDriver
{
    /** Seconds between two checks for signals, while there are callbacks for any. */
    private const SIGNAL_PERIOD = 0.02;

    /** @var array<string, Callback> */
    private array $callbacks = [];
    /** @var \WeakMap<Coroutine, Share> by the requests' main coroutines */
    private \WeakMap $shares;
    /** Share of the callbacks that belong to no request. */
    private readonly Share $common;
    /** @var \WeakMap<\Fiber, \WeakReference<FiberSuspension>> */
    private \WeakMap $fibers;
    private readonly Timers $timers;
    /** @var array<int, array<string, Callback>> */
    private array $signals = [];
    /** The application's setting of pcntl_async_signals(). */
    private bool $asyncSignals = false;
    private ?Coroutine $signalPoller = null;
    private ?\Closure $errorHandler = null;
    private int $numbers = 0;

    public function __construct()
    {
        $this->shares = new \WeakMap();
        $this->fibers = new \WeakMap();
        $this->common = new Share();
        $this->timers = new Timers($this->arrange(...));
    }

    public function run(): void
    {
        $this->share()->run();
    }

    public function stop(): void
    {
        $this->share()->stop();
    }

    public function isRunning(): bool
    {
        return $this->share()->isRunning();
    }

    public function getSuspension(): Suspension
    {
        $fiber = \Fiber::getCurrent();
        if ($fiber !== null && $fiber->isRunning()) {
            $suspension = ($this->fibers[$fiber] ?? null)?->get();
            if ($suspension === null) {
                $suspension = new FiberSuspension($fiber, $this);
                $this->fibers[$fiber] = \WeakReference::create($suspension);
            }

            return $suspension;
        }
        $coroutine = Coroutine::current() ?? throw new \Error('Only requests and tasks can be suspended');

        return $coroutine->data['revolt'] ??= new CoroutineSuspension($coroutine, $this->share(), isset($coroutine->data['revolt call']));
    }

    public function queue(\Closure $closure, mixed ...$args): void
    {
        $share = $this->share();
        $share->enter();
        $parent = Coroutine::current();
        // By reference, so that the arguments are freed as soon as the closure frees them.
        $run = function () use ($closure, &$args, $share): void {
            Coroutine::current()->data['revolt call'] = $share;
            try {
                $closure(...$args, ...($args = []));
            } catch (\Throwable $error) {
                $this->failed($share, $closure, $error);
            } finally {
                $share->leave();
            }
        };
        $coroutine = Coroutine::start($run, $parent === null);
        if (isset($parent->data['context'])) {
            $coroutine->data['context'] = $parent->data['context'];
        }
    }

    public function defer(\Closure $closure): string
    {
        return $this->add(new Callback($this->nextId(), CallbackType::Defer, $closure, $this->share()));
    }

    public function delay(float $delay, \Closure $closure): string
    {
        if ($delay < 0) {
            throw new \Error('Delay must be greater than or equal to zero');
        }

        return $this->add(new Callback($this->nextId(), CallbackType::Delay, $closure, $this->share(), interval: $delay));
    }

    public function repeat(float $interval, \Closure $closure): string
    {
        if ($interval < 0) {
            throw new \Error('Interval must be greater than or equal to zero');
        }

        return $this->add(new Callback($this->nextId(), CallbackType::Repeat, $closure, $this->share(), interval: $interval));
    }

    public function onReadable(mixed $stream, \Closure $closure): string
    {
        return $this->add(new Callback($this->nextId(), CallbackType::Readable, $closure, $this->share(), $stream));
    }

    public function onWritable(mixed $stream, \Closure $closure): string
    {
        return $this->add(new Callback($this->nextId(), CallbackType::Writable, $closure, $this->share(), $stream));
    }

    public function onSignal(int $signal, \Closure $closure): string
    {
        if (!\function_exists('pcntl_signal')) {
            throw new UnsupportedFeatureException('Signal handling requires the pcntl extension');
        }

        return $this->add(new Callback($this->nextId(), CallbackType::Signal, $closure, $this->share(), signal: $signal));
    }

    public function enable(string $callbackId): string
    {
        $callback = $this->find($callbackId);
        if ($callback->enabled) {
            return $callbackId;
        }
        $callback->enabled = true;
        ++$callback->version;
        $this->count($callback);
        switch ($callback->type) {
            case CallbackType::Defer:
                $this->arrange($callback);
                break;
            case CallbackType::Delay:
            case CallbackType::Repeat:
                $callback->expiration = Timers::now() + $callback->interval;
                $this->timers->add($callback);
                break;
            case CallbackType::Readable:
            case CallbackType::Writable:
                // A watcher that has just called back and was disabled then may still exist.
                $callback->watcher ??= Coroutine::start(fn () => $this->watch($callback), true);
                break;
            case CallbackType::Signal:
                $this->listen($callback);
                break;
        }

        return $callbackId;
    }

    public function cancel(string $callbackId): void
    {
        $callback = $this->callbacks[$callbackId] ?? null;
        if ($callback !== null) {
            $this->disable($callbackId);
            unset($this->callbacks[$callbackId]);
            // Timers release theirs only when they expire.
            $callback->closure = null;
        }
    }

    public function disable(string $callbackId): string
    {
        $callback = $this->callbacks[$callbackId] ?? null;
        if ($callback === null || !$callback->enabled) {
            return $callbackId;
        }
        $callback->enabled = false;
        ++$callback->version;
        $this->count($callback);
        switch ($callback->type) {
            case CallbackType::Delay:
            case CallbackType::Repeat:
                $callback->due || $this->timers->remove();
                break;
            case CallbackType::Readable:
            case CallbackType::Writable:
                if ($callback->selecting) {
                    $watcher = $callback->watcher;
                    $callback->watcher = null;
                    $callback->selecting = false;
                    $watcher->cancel();
                } elseif ($callback->due) {
                    $callback->watcher?->wake();
                }
                break;
            case CallbackType::Signal:
                unset($this->signals[$callback->signal][$callback->id]);
                if ($this->signals[$callback->signal] === []) {
                    unset($this->signals[$callback->signal]);
                    pcntl_signal($callback->signal, \SIG_DFL);
                }
                break;
            default:
        }
        $callback->due = false;

        return $callbackId;
    }

    public function reference(string $callbackId): string
    {
        $callback = $this->find($callbackId);
        $callback->referenced = true;
        $this->count($callback);

        return $callbackId;
    }

    public function unreference(string $callbackId): string
    {
        $callback = $this->callbacks[$callbackId] ?? null;
        if ($callback !== null) {
            $callback->referenced = false;
            $this->count($callback);
        }

        return $callbackId;
    }

    public function setErrorHandler(?\Closure $errorHandler): void
    {
        $this->errorHandler = $errorHandler;
    }

    public function getErrorHandler(): ?\Closure
    {
        return $this->errorHandler;
    }

    public function getHandle(): mixed
    {
        return null;
    }

    public function getIdentifiers(): array
    {
        return array_keys($this->callbacks);
    }

    public function getType(string $callbackId): CallbackType
    {
        return $this->find($callbackId)->type;
    }

    public function isEnabled(string $callbackId): bool
    {
        return $this->find($callbackId)->enabled;
    }

    public function isReferenced(string $callbackId): bool
    {
        return $this->find($callbackId)->referenced;
    }

    public function __debugInfo(): array
    {
        return array_map(static fn (Callback $callback): array => [
            'type' => $callback->type,
            'enabled' => $callback->enabled,
            'referenced' => $callback->referenced,
        ], $this->callbacks);
    }

    private function share(): Share
    {
        $share = Coroutine::current()?->data['revolt call'] ?? null;
        if ($share !== null) {
            return $share;
        }
        $request = Coroutine::main();
        if ($request === null) {
            return $this->common;
        }

        return $this->shares[$request] ??= new Share();
    }

    private function nextId(): string
    {
        return 'h' . ++$this->numbers;
    }

    private function find(string $id): Callback
    {
        return $this->callbacks[$id] ?? throw InvalidCallbackError::invalidIdentifier($id);
    }

    private function add(Callback $callback): string
    {
        $this->callbacks[$callback->id] = $callback;

        return $this->enable($callback->id);
    }

    private function count(Callback $callback): void
    {
        $counts = $callback->enabled && $callback->referenced;
        if ($counts !== $callback->counted) {
            $callback->counted = $counts;
            $counts ? $callback->share->enter() : $callback->share->leave();
        }
    }

    /** Calls the callback in a separate coroutine, unless it is disabled before that begins. */
    private function arrange(Callback $callback): void
    {
        $callback->due = true;
        $version = $callback->version;
        $inRequest = $callback->type === CallbackType::Defer && Coroutine::main() !== null;
        $call = function () use ($callback, $version): void {
            if ($callback->version === $version) {
                $callback->due = $callback->watcher !== null;
                $this->call($callback);
            }
        };
        $inRequest ? Coroutine::start($call) : $callback->share->dispatch($call);
    }

    private function call(Callback $callback): void
    {
        $share = $callback->share;
        // Its registrations belong to the same request.
        $coroutine = Coroutine::current();
        $coroutine->data['revolt call'] = $share;
        $again = null;
        $closure = $callback->closure;
        $share->enter();
        try {
            if ($callback->type === CallbackType::Repeat) {
                $again = $this->repetition($callback);
            } elseif ($callback->watcher !== null) {
                $version = $callback->version;
                $again = static function () use ($callback, $version): void {
                    if ($callback->version === $version) {
                        $callback->due = false;
                        $callback->watcher?->wake();
                    }
                };
            } elseif ($callback->type === CallbackType::Defer || $callback->type === CallbackType::Delay) {
                // It is no longer in the heap.
                $callback->due = true;
                $this->cancel($callback->id);
            }
            if ($again !== null) {
                // For the first suspension. Not earlier: while the call waits in a blocking function, another call would
                // surprise code that expects such functions to block.
                $coroutine->data['revolt again'] = $again;
            }
            $result = match ($callback->type) {
                CallbackType::Readable, CallbackType::Writable => $closure($callback->id, $callback->stream),
                CallbackType::Signal => $closure($callback->id, $callback->signal),
                default => $closure($callback->id),
            };
            if ($result !== null) {
                throw InvalidCallbackError::nonNullReturn($callback->id, $closure);
            }
        } catch (\Throwable $error) {
            $this->failed($share, $closure, $error);
        } finally {
            $again === null || $again();
            $share->leave();
        }
    }

    /** Schedules the next call of a repeated callback, at the end of this call or at its first suspension. */
    private function repetition(Callback $callback): \Closure
    {
        // It is not in the heap now.
        $callback->due = true;
        $version = $callback->version;
        $expiration = Timers::now() + $callback->interval;

        return function () use ($callback, $version, $expiration): void {
            if ($callback->version === $version && $callback->enabled) {
                ++$callback->version;
                $callback->due = false;
                $callback->expiration = $expiration;
                $this->timers->add($callback);
            }
        };
    }

    private function failed(Share $share, \Closure $closure, \Throwable $error): void
    {
        if ($error instanceof CancelledException && Coroutine::current()->isCancelled()) {
            return;
        }
        if ($this->errorHandler === null) {
            $share->fail($error instanceof UncaughtThrowable ? $error : UncaughtThrowable::throwingCallback($closure, $error));

            return;
        }
        $handler = $this->errorHandler;
        try {
            $handler($error);
        } catch (\Throwable $error) {
            $share->fail($error instanceof UncaughtThrowable ? $error : UncaughtThrowable::throwingErrorHandler($handler, $error));
        }
    }

    /** Waits for a stream as long as its callback is enabled. */
    private function watch(Callback $callback): void
    {
        $self = $callback->watcher;
        try {
            while ($callback->enabled) {
                $read = $callback->type === CallbackType::Readable ? [$callback->stream] : null;
                $write = $read === null ? [$callback->stream] : null;
                $except = null;
                $callback->selecting = true;
                $ready = @stream_select($read, $write, $except, null);
                if ($callback->watcher !== $self) {
                    return;
                }
                $callback->selecting = false;
                if ($ready > 0 && $callback->enabled) {
                    $this->arrange($callback);
                    // Until the call has ended or is suspended.
                    while ($callback->due) {
                        Coroutine::park();
                    }
                }
            }
        } catch (CancelledException) {
            // It was disabled.
        } catch (\TypeError|\ValueError $error) {
            $closed = new \Error('stream_select() failed: ensure all callbacks on closed stream resources are cancelled', 0, $error);
            $this->disable($callback->id);
            $this->failed($callback->share, $callback->closure, $closed);
        } finally {
            if ($callback->watcher === $self) {
                $callback->watcher = null;
                $callback->selecting = false;
            }
        }
    }

    private function listen(Callback $callback): void
    {
        if ($this->signalPoller === null || $this->signalPoller->isDone()) {
            $this->asyncSignals = pcntl_async_signals(true);
            $this->signalPoller = Coroutine::start($this->pollSignals(...), true);
        }
        if (!isset($this->signals[$callback->signal])) {
            $handler = function (int $signal): void {
                array_map($this->arrange(...), $this->signals[$signal] ?? []);
            };
            if (!@pcntl_signal($callback->signal, $handler)) {
                throw new UnsupportedFeatureException("Failed to register a handler of signal $callback->signal");
            }
        }
        $this->signals[$callback->signal][$callback->id] = $callback;
    }

    /** Keeps some code running, because PHP calls the handlers of signals only while it runs code. */
    private function pollSignals(): void
    {
        while ($this->signals !== []) {
            Coroutine::park(self::SIGNAL_PERIOD);
        }
        $this->signalPoller = null;
        pcntl_async_signals($this->asyncSignals);
    }
}

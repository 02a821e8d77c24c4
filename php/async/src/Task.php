<?php

/* A function that runs in a separate coroutine, and its result. */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\Connections;
use Howdah\Internal\Members;
use Howdah\Internal\Report;
use Howdah\Internal\TaskBody;
use Howdah\Internal\WaitQueue;

final class Task implements Awaitable
{
    private Coroutine $coroutine;
    private bool $settled = false;
    private bool $looked = false;
    private mixed $result = null;
    private ?\Throwable $error = null;
    private ?Members $scope = null;
    /** @var array<int, \Closure(): void> */
    private array $watchers = [];

    private function __construct()
    {
    }

    /**
     * Implements go(). A detached task belongs to the worker and not to the request that started it.
     *
     * @internal
     *
     * @param array<mixed> $arguments
     */
    public static function start(callable $function, array $arguments, bool $detached = false, ?Members $members = null): self
    {
        $task = new self();
        $parent = Coroutine::current();
        $detached = $detached || $parent === null;
        $task->coroutine = $coroutine = Coroutine::start([new TaskBody($task, $function(...), $arguments), 'run'], $detached);
        $data = ['task' => $task];
        if (!$detached) {
            if (isset($parent->data['context'])) {
                $data['context'] = $parent->data['context'];
            }
            $members ??= $parent->data['scope'] ?? null;
        }
        if ($members !== null) {
            $data['scope'] = $task->scope = $members;
            $members->adopt($task);
        }
        $coroutine->data = $data;

        return $task;
    }

    public function id(): int
    {
        return $this->coroutine->id();
    }

    /**
     * Waits for the task's end. Returns its result, or throws its error.
     *
     * @param float|null $timeout seconds; after the timeout, the task continues
     *
     * @throws TimeoutException
     */
    public function await(?float $timeout = null): mixed
    {
        if (!$this->settled) {
            $this->wait($timeout);
        }

        return $this->result();
    }

    /**
     * Cancels the task: its current wait and every later one fail with a CancelledException. The task ends when its function
     * lets that exception pass, so it can clean up first.
     */
    public function cancel(string $why = ''): void
    {
        if (!$this->settled) {
            $this->coroutine->cancel($why);
        }
    }

    public function isDone(): bool
    {
        return $this->settled;
    }

    public function isCancelled(): bool
    {
        return $this->coroutine->isCancelled();
    }

    /** @return array<array<string, mixed>> the stack of a waiting task, in the format of debug_backtrace() */
    public function backtrace(): array
    {
        return $this->settled ? [] : $this->coroutine->backtrace();
    }

    /** @internal */
    public function coroutine(): Coroutine
    {
        return $this->coroutine;
    }

    /**
     * Waits for the end, with or without an error.
     *
     * @internal
     */
    public function wait(?float $timeout = null): void
    {
        if ($this->coroutine === WaitQueue::coroutine()) {
            throw new MisuseError('A task cannot wait for itself');
        }
        if (!$this->coroutine->join($timeout)) {
            throw new TimeoutException(\sprintf('The task has not ended within %g s', $timeout));
        }
        // A fatal error ends a coroutine without unwinding it.
        $this->settle(null, new TaskExitedException('The task has ended through a fatal error'));
    }

    /**
     * Returns the result of a task that has ended.
     *
     * @internal
     */
    public function result(): mixed
    {
        $this->looked = true;

        return $this->error === null ? $this->result : throw $this->error;
    }

    /** @internal */
    public function error(): ?\Throwable
    {
        $this->looked = true;

        return $this->error;
    }

    /**
     * Calls the function when the task has ended.
     *
     * @internal
     *
     * @param \Closure(): void $watcher must not wait
     */
    public function watch(\Closure $watcher): void
    {
        if ($this->settled) {
            $watcher();
        } else {
            $this->watchers[] = $watcher;
        }
    }

    /** @internal */
    public function settle(mixed $result, ?\Throwable $error): void
    {
        if ($this->settled) {
            return;
        }
        $this->settled = true;
        $this->result = $result;
        $this->error = $error;
        Connections::comeBack($this->coroutine);
        $this->coroutine->data = [];
        $this->scope?->release($this);
        $this->scope = null;
        $watchers = $this->watchers;
        $this->watchers = [];
        foreach ($watchers as $watcher) {
            $watcher();
        }
    }

    public function __destruct()
    {
        if ($this->error !== null && !$this->looked && !$this->error instanceof CancelledException && !$this->error instanceof TaskExitedException) {
            Report::uncaught($this->error, 'in a task that was not awaited');
        }
    }
}

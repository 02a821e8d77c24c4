<?php

/* Tasks that end together. Leaving a scope waits for its tasks or cancels them: none is left running. */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\Members;
use Howdah\Internal\WaitQueue;

final class Scope
{
    /** @var array<Task> started by go(), for wait() */
    private array $own = [];
    private readonly Members $members;
    private ?Semaphore $limit = null;

    /** @param int|null $concurrency maximum number of go()'s tasks that run at once; go() waits for its turn */
    public function __construct(?int $concurrency = null)
    {
        $this->members = new Members();
        if ($concurrency !== null) {
            $this->limit = new Semaphore($concurrency);
        }
    }

    /**
     * Calls $fn($scope), then waits for the scope's tasks. The first error, or the timeout, cancels the rest and is thrown.
     * Errors of tasks take effect when $fn has returned.
     *
     * @return mixed the return value of $fn
     */
    public static function run(callable $fn, ?int $concurrency = null, ?float $timeout = null): mixed
    {
        if ($timeout !== null) {
            return timeout($timeout, static fn () => self::run($fn, $concurrency));
        }
        $scope = new self($concurrency);
        try {
            $result = $fn($scope);
            $scope->wait();

            return $result;
        } finally {
            $scope->cancel();
        }
    }

    /**
     * Starts a task. Tasks that it starts with go() belong to the scope as well, but wait() does not return their results.
     */
    public function go(callable $fn, mixed ...$args): Task
    {
        if ($this->members->closed) {
            throw new MisuseError('The scope was cancelled: it accepts no further tasks');
        }
        $this->limit?->acquire();
        $task = $this->own[] = Task::start($fn, $args, members: $this->members);
        if ($this->limit !== null) {
            $task->watch($this->limit->release(...));
        }

        return $task;
    }

    /**
     * Waits for all tasks of the scope. The first error of go()'s tasks, or the timeout, cancels the rest and is thrown.
     *
     * @return array<mixed> the results of go()'s tasks since the last wait(), in their order
     */
    public function wait(?float $timeout = null): array
    {
        $own = $this->own;
        $this->own = [];
        $end = $timeout === null ? null : WaitQueue::now() + $timeout;
        try {
            $results = all($own, $timeout);
            while ($this->members->running !== []) {
                $task = $this->members->running[array_key_first($this->members->running)];
                $task->wait($end === null ? null : max(0.0, $end - WaitQueue::now()));
            }
        } catch (\Throwable $error) {
            $this->members->end();
            throw $error;
        }

        return $results;
    }

    /** Cancels all tasks of the scope and waits until they have ended. The scope accepts no further tasks. */
    public function cancel(): void
    {
        $this->members->closed = true;
        $this->own = [];
        $this->members->end();
    }

    public function __destruct()
    {
        // A destructor cannot wait.
        $this->members->closed = true;
        foreach ($this->members->running as $task) {
            $task->cancel('Its scope was left');
        }
    }
}

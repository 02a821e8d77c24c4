<?php

/* Waits for several tasks together, for all(), any(), race(), map() and Scope. */

declare(strict_types=1);

namespace Howdah\Internal;

use Howdah\Awaitable;
use Howdah\Coroutine;
use Howdah\Task;
use Howdah\TimeoutException;

final class Gathering
{
    /** @var array<Task> tasks that next() has not returned yet, by number */
    private array $open = [];
    /** @var array<mixed> the callers' keys, by number */
    private array $keys = [];
    /** @var \SplQueue<int> */
    private readonly \SplQueue $ended;
    private readonly WaitQueue $line;
    private readonly ?float $end;
    private int $numbers = 0;

    public function __construct(private readonly ?float $timeout = null)
    {
        $this->ended = new \SplQueue();
        $this->line = new WaitQueue();
        $this->end = $timeout === null ? null : WaitQueue::now() + $timeout;
    }

    public function add(mixed $key, mixed $what): void
    {
        $task = match (true) {
            $what instanceof Task => $what,
            $what instanceof \Closure => Task::start($what, []),
            $what instanceof Awaitable => Task::start($what->await(...), []),
            default => throw new \TypeError('Expected a task, another Howdah\Awaitable or a closure, got ' . get_debug_type($what)),
        };
        $number = $this->numbers++;
        $this->open[$number] = $task;
        $this->keys[$number] = $key;
        $ended = $this->ended;
        $line = $this->line;
        $task->watch(static function () use ($ended, $line, $number): void {
            $ended->enqueue($number);
            $line->serve();
        });
    }

    /** @param iterable<mixed> $tasks */
    public function addAll(iterable $tasks): void
    {
        foreach ($tasks as $key => $task) {
            $this->add($key, $task);
        }
    }

    /** @return int number of tasks that next() has not returned yet */
    public function open(): int
    {
        return \count($this->open);
    }

    /**
     * Waits for the next task that ends.
     *
     * @return array{mixed, Task} its key and the task
     *
     * @throws TimeoutException
     */
    public function next(): array
    {
        while ($this->ended->isEmpty()) {
            $left = $this->end === null ? null : max(0.0, $this->end - WaitQueue::now());
            if ($this->line->wait($left) === null) {
                throw new TimeoutException(\sprintf('%d of %d tasks have not ended within %g s', \count($this->open), $this->numbers, $this->timeout));
            }
        }
        $number = $this->ended->dequeue();
        $found = [$this->keys[$number], $this->open[$number]];
        unset($this->keys[$number], $this->open[$number]);

        return $found;
    }

    /** Cancels the remaining tasks and waits until they have ended, so that none continues after the call. */
    public function abandon(): void
    {
        self::end($this->open);
        $this->open = $this->keys = [];
    }

    /**
     * Cancels tasks and waits for their end.
     *
     * @param iterable<Task> $tasks
     */
    public static function end(iterable $tasks): void
    {
        $self = Coroutine::current()?->data['task'] ?? null;
        $left = [];
        foreach ($tasks as $task) {
            if ($task !== $self && !$task->isDone()) {
                $task->cancel();
                $left[] = $task;
            }
        }
        if ($left === []) {
            return;
        }
        Coroutine::shield(true);
        try {
            foreach ($left as $task) {
                $task->wait();
                $task->error();
            }
        } finally {
            Coroutine::shield(false);
        }
    }
}

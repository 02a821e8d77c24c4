<?php

/* A counter of pending work, with a method that waits until it is zero. */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\WaitQueue;

final class WaitGroup implements \Countable
{
    private int $open = 0;
    private readonly WaitQueue $line;

    public function __construct()
    {
        $this->line = new WaitQueue();
    }

    public function add(int $n = 1): void
    {
        if ($this->open + $n < 0) {
            throw new MisuseError('WaitGroup: more done() than add()');
        }
        $this->open += $n;
        if ($this->open === 0) {
            $this->line->serveAll();
        }
    }

    public function done(): void
    {
        $this->add(-1);
    }

    /** Calls add(), starts a task, and calls done() when the task has ended, with or without an error. */
    public function go(callable $fn, mixed ...$args): Task
    {
        $this->add();
        $task = Task::start($fn, $args);
        $task->watch($this->done(...));

        return $task;
    }

    /** @throws TimeoutException */
    public function wait(?float $timeout = null): void
    {
        if ($this->open > 0 && $this->line->wait($timeout) === null) {
            throw new TimeoutException(\sprintf('WaitGroup: %d are not done within %g s', $this->open, $timeout));
        }
    }

    public function count(): int
    {
        return $this->open;
    }
}

<?php

/* The running tasks of a scope. Tasks refer to this object and not to the scope itself, so that an unreferenced scope is
 * destroyed, which cancels them. */

declare(strict_types=1);

namespace Howdah\Internal;

use Howdah\Task;

final class Members
{
    /** @var array<int, Task> */
    public array $running = [];
    public bool $closed = false;
    private ?Members $heir = null;

    public function adopt(Task $task): void
    {
        if ($this->heir !== null) {
            $this->heir->adopt($task);

            return;
        }
        $this->running[$task->id()] = $task;
        if ($this->closed) {
            $task->cancel('Its scope was cancelled');
        }
    }

    public function release(Task $task): void
    {
        unset($this->running[$task->id()]);
        $this->heir?->release($task);
    }

    /** Moves the running tasks, and those that they start, to another scope, or to none. */
    public function dissolve(?self $heir): void
    {
        if ($heir !== null) {
            foreach ($this->running as $task) {
                $heir->adopt($task);
            }
        }
        $this->heir = $heir;
        $this->running = [];
    }

    /** Cancels the tasks and waits until they have ended, including those that they start meanwhile. */
    public function end(): void
    {
        do {
            $before = \count($this->running);
            Gathering::end($this->running);
            // One may be left: the calling task.
        } while ($this->running !== [] && \count($this->running) < $before);
    }
}

<?php

/* The body of a task's coroutine. Its destructor makes sure that the task ends when its coroutine calls exit(), which runs
 * destructors but neither `catch` nor `finally`. */

declare(strict_types=1);

namespace Howdah\Internal;

use Howdah\CancelledException;
use Howdah\Coroutine;
use Howdah\Task;
use Howdah\TaskExitedException;

final class TaskBody
{
    /** @param array<mixed> $arguments */
    public function __construct(private ?Task $task, private readonly \Closure $function, private readonly array $arguments)
    {
    }

    public function run(): void
    {
        $coroutine = Coroutine::current();
        $result = $error = null;
        try {
            if ($coroutine->isCancelled()) {
                throw new CancelledException('Cancelled before it began');
            }
            $result = ($this->function)(...$this->arguments);
        } catch (\Throwable $error) {
        }
        if (isset($coroutine->data['deferred'])) {
            $error = $coroutine->data['deferred']->run($error);
        }
        $this->end($result, $error);
    }

    public function __destruct()
    {
        if ($this->task !== null) {
            $this->end(null, new TaskExitedException('The task has ended through exit()'));
        }
    }

    private function end(mixed $result, ?\Throwable $error): void
    {
        $task = $this->task;
        $this->task = null;
        $task->settle($result, $error);
    }
}

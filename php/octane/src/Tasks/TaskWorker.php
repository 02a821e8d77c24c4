<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

use Howdah\Octane\BootedWorker;
use Laravel\Octane\Exceptions\TaskExceptionResult;
use Laravel\Octane\Worker;

/** A worker of the pool octane-tasks: runs one task or tick after the other. */
final class TaskWorker
{
    private readonly Seal $seal;

    public function __construct(private readonly string $base, private readonly TaskDirectory $directory)
    {
        $this->seal = $directory->seal();
    }

    public function run(): void
    {
        // Without a dispatcher: tasks started by a task run inside it, as it must not wait for its own pool.
        $booted = new BootedWorker($this->base, ['octane.cacheTable' => $this->directory->cache()]);
        // This limit is meant for requests; for tasks, only the time that a caller waits is limited.
        set_time_limit(0);
        $booted->serve($this->handle(...));
    }

    private function handle(Worker $worker): void
    {
        $sealed = (string) file_get_contents('php://input');
        $order = Order::open($this->seal, $sealed);
        if ($order === null || $order->until < hrtime(true)) {
            http_response_code($order === null ? 403 : 408);

            return;
        }
        if ($order->kind !== 'resolve') {
            http_response_code(202);
            $order->kind === 'dispatch' && fastcgi_finish_request();
        }
        ob_start();
        $result = match ($order->kind) {
            'tick' => $this->directory->alone($worker->handleTick(...)),
            default => self::result($worker, $order->task),
        };
        $printed = (string) ob_get_clean();
        $printed === '' || error_log("A task has printed: $printed");
        if ($order->kind === 'resolve') {
            header('Content-Type: application/octet-stream');
            echo $this->seal->put(Order::purposeOfResult($sealed), $result);
        }
    }

    private static function result(Worker $worker, string $task): string
    {
        try {
            return serialize($worker->handleTask(unserialize($task)));
        } catch (\Throwable $why) {
            // The task cannot be unserialized here, or its result cannot be serialized.
            return serialize(TaskExceptionResult::from($why));
        }
    }
}

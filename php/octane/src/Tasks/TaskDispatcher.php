<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

use Closure;
use Laravel\Octane\Contracts\DispatchesTasks;
use Laravel\Octane\Exceptions\TaskExceptionResult;
use Laravel\Octane\Exceptions\TaskTimeoutException;
use Laravel\Octane\Swoole\TaskResult;
use Laravel\SerializableClosure\SerializableClosure;

/** Octane's concurrent tasks: each goes to a separate worker in the pool of the tasks. */
final class TaskDispatcher implements DispatchesTasks
{
    /** Nanoseconds that a task without a waiting caller may be queued: longer than the server allows. */
    private const MAX_QUEUED = 60_000_000_000;

    private const WHY = [
        403 => 'the task workers have refused it',
        408 => 'no task worker was free in time',
        413 => 'it is too large',
        500 => 'its worker failed during the task',
        502 => 'its worker ended during the task',
        503 => 'no task worker was free in time',
        504 => 'it took longer than the deadline of the pool octane-tasks',
    ];

    private readonly Seal $seal;

    /** @var list<Connection> those whose workers have not begun yet */
    private array $dispatched = [];

    public function __construct(private readonly TaskDirectory $directory)
    {
        $this->seal = $directory->seal();
    }

    public function resolve(array $tasks, int $waitMilliseconds = 3000): array
    {
        $until = hrtime(true) + $waitMilliseconds * 1_000_000;
        $connections = $this->send('resolve', $tasks, $until);
        if (!Connection::await($connections, $until)) {
            throw TaskTimeoutException::after($waitMilliseconds);
        }
        $results = array_map($this->result(...), $connections);
        foreach ($results as $result) {
            if ($result instanceof TaskExceptionResult) {
                throw $result->getOriginal();
            }
        }

        return array_map(static fn (TaskResult $result): mixed => $result->result, $results);
    }

    public function dispatch(array $tasks): void
    {
        array_push($this->dispatched, ...array_values($this->send('dispatch', $tasks, hrtime(true) + self::MAX_QUEUED)));
    }

    /**
     * Waits until workers have started the dispatched tasks. This runs after the response, so the client does not wait for
     * it.
     */
    public function settle(): void
    {
        [$dispatched, $this->dispatched] = [$this->dispatched, []];
        Connection::await($dispatched, hrtime(true) + self::MAX_QUEUED);
        foreach ($dispatched as $connection) {
            if ($connection->status() !== 202) {
                error_log('A dispatched task is lost: ' . self::why($connection) . '.');
            }
        }
    }

    /**
     * @param array<array-key, mixed> $tasks
     *
     * @return array<array-key, Connection>
     */
    private function send(string $kind, array $tasks, int $until): array
    {
        // All are serialized before the first is sent: if one cannot be serialized, none has begun.
        $orders = array_map(function (mixed $task) use ($kind, $until): string {
            return (new Order($kind, $until, serialize($task instanceof Closure ? new SerializableClosure($task) : $task)))->sealed($this->seal);
        }, $tasks);

        return array_map(fn (string $order): Connection => Connection::open($this->directory->socket(), $order), $orders);
    }

    private function result(Connection $connection): TaskResult|TaskExceptionResult
    {
        $text = $this->seal->open(Order::purposeOfResult($connection->order), $connection->body());
        $result = $connection->status() === 200 && $text !== null ? unserialize($text) : null;

        return $result instanceof TaskResult || $result instanceof TaskExceptionResult
            ? $result
            : TaskExceptionResult::from(new \RuntimeException('The task has no result: ' . self::why($connection) . '.'));
    }

    private static function why(Connection $connection): string
    {
        // A worker whose script has ended by exit() responds with 200 and its output.
        return self::WHY[$connection->status()] ?? 'its script ended during the task';
    }
}

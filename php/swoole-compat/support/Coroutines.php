<?php

declare(strict_types=1);

namespace Howdah\SwooleCompat;

use Howdah\CancelledException;
use Howdah\Coroutine;
use Howdah\Task;

/** Maps Swoole's numbers to coroutines. */
final class Coroutines
{
    /** @var array<int, Known> */
    private static array $known = [];
    private static int $peak = 0;

    /**
     * Starts a coroutine and, in a coroutine that is not cancelled, lets it run to its first wait, as Swoole does.
     *
     * @param array<mixed> $arguments
     */
    public static function create(callable $function, array $arguments): int
    {
        $parent = Coroutine::current();
        $coroutine = Task::start($function, $arguments)->coroutine();
        self::know($coroutine, $parent?->id() ?? -1);
        if ($parent !== null && !$parent->isCancelled()) {
            try {
                \Howdah\suspend();
            } catch (CancelledException) {
                // Swoole reports a cancellation at the caller's own next wait.
            }
        }

        return $coroutine->id();
    }

    public static function current(): ?Known
    {
        $coroutine = Coroutine::current();
        if ($coroutine === null) {
            return null;
        }

        return self::$known[$coroutine->id()] ?? self::know($coroutine, -1);
    }

    /** @param int $id 0 for the current one */
    public static function find(int $id): ?Known
    {
        return $id === 0 ? self::current() : self::$known[$id] ?? null;
    }

    /** @return list<int> */
    public static function ids(): array
    {
        return array_keys(self::$known);
    }

    public static function peak(): int
    {
        return self::$peak;
    }

    public static function forget(int $id): void
    {
        unset(self::$known[$id]);
    }

    private static function know(Coroutine $coroutine, int $parent): Known
    {
        $id = $coroutine->id();
        // The coroutine's data is released when it ends.
        $coroutine->data['swoole'] = new class($id) {
            public function __construct(private readonly int $id)
            {
            }

            public function __destruct()
            {
                Coroutines::forget($this->id);
            }
        };
        $known = self::$known[$id] = new Known($coroutine, $parent);
        self::$peak = max(self::$peak, \count(self::$known));

        return $known;
    }
}

<?php

declare(strict_types=1);

namespace Swoole;

/** Timers belong to the worker. A tick that is due while the previous one is running is skipped. */
class Timer
{
    /** @var array<int, array{\Howdah\Timer, int, bool}> timer, milliseconds, whether it repeats */
    private static array $timers = [];
    private static int $numbers = 0;

    /** @param callable(int, mixed...): mixed $callback gets the timer's id first */
    public static function tick(int $ms, callable $callback, mixed ...$params): int
    {
        $id = ++self::$numbers;
        self::$timers[$id] = [\Howdah\Timer::every($ms, $callback, $id, ...$params), $ms, true];

        return $id;
    }

    public static function after(int $ms, callable $callback, mixed ...$params): int
    {
        $id = ++self::$numbers;
        $once = static function () use ($id, $callback, $params): void {
            unset(self::$timers[$id]);
            $callback(...$params);
        };
        self::$timers[$id] = [\Howdah\Timer::after($ms, $once), $ms, false];

        return $id;
    }

    public static function exists(int $timer_id): bool
    {
        return isset(self::$timers[$timer_id]);
    }

    public static function clear(int $timer_id): bool
    {
        if (!isset(self::$timers[$timer_id])) {
            return false;
        }
        self::$timers[$timer_id][0]->cancel();
        unset(self::$timers[$timer_id]);

        return true;
    }

    public static function clearAll(): bool
    {
        array_map(self::clear(...), array_keys(self::$timers));

        return true;
    }

    /** @return array{exec_msec: int, interval: int}|null */
    public static function info(int $timer_id): ?array
    {
        [, $ms, $again] = self::$timers[$timer_id] ?? [null, 0, false];

        return isset(self::$timers[$timer_id]) ? ['exec_msec' => $ms, 'interval' => $again ? $ms : 0] : null;
    }

    /** @return \ArrayIterator<int, int> */
    public static function list(): \ArrayIterator
    {
        return new \ArrayIterator(array_keys(self::$timers));
    }

    /** @return array<string, int> */
    public static function stats(): array
    {
        return ['num' => \count(self::$timers)];
    }
}

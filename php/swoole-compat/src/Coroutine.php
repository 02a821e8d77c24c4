<?php

declare(strict_types=1);

namespace Swoole;

use Howdah\CancelledException;
use Howdah\Internal\WaitQueue;
use Howdah\MisuseError;
use Howdah\SwooleCompat\Coroutines;
use Howdah\SwooleCompat\Known;
use Swoole\Coroutine\Context;

/**
 * Swoole's class of this name, as far as it applies to Howdah's async mode.
 *
 * A cancelled coroutine stays cancelled: its current wait ends, and so does every later one.
 */
class Coroutine
{
    /** @var array<string, mixed> */
    private static array $options = [];

    public static function create(callable $func, mixed ...$param): int|false
    {
        return Coroutines::create($func, $param);
    }

    public static function defer(callable $callback): void
    {
        \Howdah\defer($callback);
    }

    /** @param array<string, mixed> $options kept for getOptions(); only Howdah's settings take effect */
    public static function set(array $options): bool
    {
        self::$options = $options + self::$options;

        return true;
    }

    /** @return array<string, mixed> */
    public static function getOptions(): array
    {
        return self::$options;
    }

    public static function exists(int $cid): bool
    {
        $known = Coroutines::find($cid);

        return $known !== null && !$known->coroutine->isDone();
    }

    /** Waits for resume(). */
    public static function yield(): bool
    {
        try {
            self::need()->line->wait();
        } catch (CancelledException) {
            return false;
        }

        return true;
    }

    public static function suspend(): bool
    {
        return self::yield();
    }

    public static function resume(int $cid): bool
    {
        return Coroutines::find($cid)?->line->serve() !== null;
    }

    public static function cancel(int $cid): bool
    {
        $known = Coroutines::find($cid);
        if ($known === null || $known->coroutine->isDone()) {
            return false;
        }
        $known->coroutine->cancel('Swoole\Coroutine::cancel()');

        return true;
    }

    public static function isCanceled(): bool
    {
        return self::need()->coroutine->isCancelled();
    }

    /** @param array<int> $cid_array */
    public static function join(array $cid_array, float $timeout = -1): bool
    {
        $end = $timeout > 0 ? WaitQueue::now() + $timeout : null;
        try {
            foreach ($cid_array as $cid) {
                $known = Coroutines::find($cid);
                if ($known !== null && !$known->coroutine->join($end === null ? null : max(0.0, $end - WaitQueue::now()))) {
                    return false;
                }
            }
        } catch (CancelledException) {
            return false;
        }

        return true;
    }

    public static function getCid(): int
    {
        return Coroutines::current()?->coroutine->id() ?? -1;
    }

    public static function getuid(): int
    {
        return self::getCid();
    }

    public static function getPcid(int $cid = 0): int|false
    {
        return Coroutines::find($cid)?->parent ?? false;
    }

    public static function getContext(int $cid = 0): ?Context
    {
        return Coroutines::find($cid)?->context();
    }

    /** Returns the milliseconds since it began. */
    public static function getElapsed(int $cid = 0): int
    {
        $known = Coroutines::find($cid);

        return $known === null ? -1 : (int) ((WaitQueue::now() - $known->began) * 1000);
    }

    /** @return array<mixed>|false */
    public static function getBackTrace(int $cid = 0, int $options = DEBUG_BACKTRACE_PROVIDE_OBJECT, int $limit = 0): array|false
    {
        $known = Coroutines::find($cid);
        if ($known === null) {
            return false;
        }

        return $known === Coroutines::current() ? debug_backtrace($options, $limit) : $known->coroutine->backtrace();
    }

    /** @return \ArrayIterator<int, int> */
    public static function list(): \ArrayIterator
    {
        return new \ArrayIterator(Coroutines::ids());
    }

    /** @return \ArrayIterator<int, int> */
    public static function listCoroutines(): \ArrayIterator
    {
        return self::list();
    }

    /** @return array<string, int> */
    public static function stats(): array
    {
        return ['coroutine_num' => \count(Coroutines::ids()), 'coroutine_peak_num' => Coroutines::peak()];
    }

    public static function sleep(float $seconds): bool
    {
        try {
            \Howdah\delay($seconds);
        } catch (CancelledException) {
            return false;
        }

        return true;
    }

    private static function need(): Known
    {
        return Coroutines::current() ?? throw new MisuseError('This must be called in a coroutine');
    }
}

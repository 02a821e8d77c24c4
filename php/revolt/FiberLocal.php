<?php

/* Revolt's FiberLocal distinguishes fibers. In async mode code runs in coroutines, which are not fibers: this class with the
 * same name and methods distinguishes both. It is loaded before Revolt's own would be. */

declare(strict_types=1);

namespace Revolt\EventLoop;

use Howdah\Coroutine;

final class FiberLocal
{
    /** @var \WeakMap<object, \WeakMap<self, array{mixed}>>|null by fiber or coroutine */
    private static ?\WeakMap $storages = null;
    /** Represents code outside of both. */
    private static ?\stdClass $outside = null;

    public function __construct(private readonly \Closure $initializer)
    {
    }

    /** Clears all values of the running fiber or coroutine. */
    public static function clear(): void
    {
        if (self::$storages !== null) {
            unset(self::$storages[self::here()]);
        }
    }

    public function set(mixed $value): void
    {
        self::storage()[$this] = [$value];
    }

    public function unset(): void
    {
        unset(self::storage()[$this]);
    }

    public function get(): mixed
    {
        $storage = self::storage();
        if (!isset($storage[$this])) {
            $storage[$this] = [($this->initializer)()];
        }

        return $storage[$this][0];
    }

    private static function here(): object
    {
        return \Fiber::getCurrent() ?? Coroutine::current() ?? self::$outside ??= new \stdClass();
    }

    private static function storage(): \WeakMap
    {
        self::$storages ??= new \WeakMap();

        return self::$storages[self::here()] ??= new \WeakMap();
    }
}

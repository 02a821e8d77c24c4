<?php

/* Revolt's FiberLocal tells fibers apart. In async mode code runs in coroutines, which are none: this class of the same
 * name and the same methods tells both apart. It is there before Revolt's own would be loaded. */

declare(strict_types=1);

namespace Revolt\EventLoop;

use Howdah\Coroutine;

final class FiberLocal
{
    /** @var \WeakMap<object, \WeakMap<self, array{mixed}>>|null by fiber or coroutine */
    private static ?\WeakMap $storages = null;
    /** Stands for code outside of both. */
    private static ?\stdClass $outside = null;

    public function __construct(private readonly \Closure $initializer)
    {
    }

    /** Forgets all values of the running fiber or coroutine. */
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

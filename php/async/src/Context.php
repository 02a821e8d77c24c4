<?php

/* Values that belong to a coroutine, such as request ids, users and locales. A task starts with a copy of its parent's
 * values, a detached one with none; values that it sets are not visible to its parent. */

declare(strict_types=1);

namespace Howdah;

use Howdah\Internal\WaitQueue;

final class Context
{
    private function __construct()
    {
    }

    /** @param string|object $key an object is a key that no other code can use */
    public static function get(string|object $key, mixed $default = null): mixed
    {
        $context = WaitQueue::coroutine()->data['context'] ?? [];
        $name = self::name($key);

        return isset($context[$name]) ? $context[$name][0] : $default;
    }

    public static function set(string|object $key, mixed $value): void
    {
        // The key is kept with the value, so that its id is not given to another object.
        WaitQueue::coroutine()->data['context'][self::name($key)] = [$value, $key];
    }

    public static function has(string|object $key): bool
    {
        return isset(WaitQueue::coroutine()->data['context'][self::name($key)]);
    }

    public static function remove(string|object $key): void
    {
        unset(WaitQueue::coroutine()->data['context'][self::name($key)]);
    }

    /** Returns the request's own values, one object for all of its tasks. In a detached task: the task's own. */
    public static function request(): \ArrayObject
    {
        $coroutine = Coroutine::main() ?? WaitQueue::coroutine();

        return $coroutine->data['request'] ??= new \ArrayObject();
    }

    private static function name(string|object $key): string
    {
        return \is_string($key) ? "s$key" : 'o' . spl_object_id($key);
    }
}

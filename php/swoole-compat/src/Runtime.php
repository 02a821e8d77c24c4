<?php

declare(strict_types=1);

namespace Swoole;

/** In async mode the hooked calls always wait without blocking; there is nothing to enable. */
class Runtime
{
    public static function enableCoroutine(bool|int $flags = SWOOLE_HOOK_ALL, int $legacy = SWOOLE_HOOK_ALL): bool
    {
        return true;
    }

    public static function getHookFlags(): int
    {
        return SWOOLE_HOOK_ALL;
    }

    public static function setHookFlags(int $flags): bool
    {
        return true;
    }
}

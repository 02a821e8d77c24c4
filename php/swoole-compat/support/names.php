<?php

/* Definitions of the Swoole extension other than classes with long names. Loaded only if the extension is absent. */

declare(strict_types=1);

namespace {
    use Howdah\SwooleCompat\Coroutines;

    foreach (['SWOOLE_CHANNEL_OK' => 0, 'SWOOLE_CHANNEL_TIMEOUT' => -1, 'SWOOLE_CHANNEL_CLOSED' => -2, 'SWOOLE_CHANNEL_CANCELED' => -3] as $name => $value) {
        define($name, $value);
    }
    $websocket = [
        'OPCODE_CONTINUATION' => 0, 'OPCODE_TEXT' => 1, 'OPCODE_BINARY' => 2, 'OPCODE_CLOSE' => 8, 'OPCODE_PING' => 9, 'OPCODE_PONG' => 10,
        'STATUS_CONNECTION' => 1, 'STATUS_HANDSHAKE' => 2, 'STATUS_ACTIVE' => 3, 'STATUS_CLOSING' => 4,
        'FLAG_FIN' => 1, 'FLAG_COMPRESS' => 2, 'CLOSE_NORMAL' => 1000,
    ];
    foreach ($websocket as $name => $value) {
        define("SWOOLE_WEBSOCKET_$name", $value);
        define("WEBSOCKET_$name", $value);
    }
    // Howdah hooks everything it can, or nothing: it ignores the bits.
    foreach (['TCP', 'UDP', 'UNIX', 'UDG', 'SSL', 'TLS', 'STREAM_FUNCTION', 'FILE', 'SLEEP', 'PROC', 'CURL', 'NATIVE_CURL', 'BLOCKING_FUNCTION', 'SOCKETS', 'STDIO', 'PDO_PGSQL', 'PDO_ODBC', 'PDO_ORACLE', 'PDO_SQLITE'] as $bit => $name) {
        define("SWOOLE_HOOK_$name", 1 << ($bit + 1));
    }
    define('SWOOLE_HOOK_ALL', 0x7fffffff);

    if (!function_exists('go')) {
        /** @return int|false the coroutine's id */
        function go(callable $fn, mixed ...$args): int|false
        {
            return Coroutines::create($fn, $args);
        }
    }
    if (!function_exists('defer')) {
        function defer(callable $fn): void
        {
            Howdah\defer($fn);
        }
    }
    if (!function_exists('swoole_timer_after')) {
        function swoole_timer_after(int $ms, callable $fn, mixed ...$params): int
        {
            return Swoole\Timer::after($ms, $fn, ...$params);
        }

        function swoole_timer_tick(int $ms, callable $fn, mixed ...$params): int
        {
            return Swoole\Timer::tick($ms, $fn, ...$params);
        }

        function swoole_timer_clear(int $id): bool
        {
            return Swoole\Timer::clear($id);
        }
    }

    // Co, Co\Channel, chan … are other names of Swoole\Coroutine and the classes in it.
    spl_autoload_register(static function (string $class): void {
        $long = match (true) {
            $class === 'chan' => Swoole\Coroutine\Channel::class,
            strcasecmp($class, 'co') === 0 => Swoole\Coroutine::class,
            strncasecmp($class, 'Co\\', 3) === 0 => Swoole\Coroutine::class . substr($class, 2),
            default => null,
        };
        if ($long !== null && class_exists($long)) {
            class_alias($long, $class);
        }
    });
}

namespace Swoole\Coroutine {
    use Howdah\Scope;
    use Howdah\SwooleCompat\Coroutines;

    /** Calls the function in a coroutine and waits until it and all coroutines it has started have ended. */
    function run(callable $fn, mixed ...$args): bool
    {
        Scope::run(static fn (Scope $scope) => $scope->go($fn, ...$args));

        return true;
    }

    function go(callable $fn, mixed ...$args): int|false
    {
        return Coroutines::create($fn, $args);
    }

    function defer(callable $fn): void
    {
        \Howdah\defer($fn);
    }

    /**
     * Calls all of them concurrently.
     *
     * @param array<callable> $tasks
     *
     * @return array<mixed> the results, with the tasks' keys; null for those not ready in time
     */
    function batch(array $tasks, float $timeout = -1): array
    {
        $results = array_fill_keys(array_keys($tasks), null);
        $group = new WaitGroup();
        foreach ($tasks as $key => $task) {
            $group->add();
            Coroutines::create(static function () use ($key, $task, &$results, $group): void {
                \Howdah\defer($group->done(...));
                $results[$key] = $task();
            }, []);
        }
        $group->wait($timeout);

        // Late tasks must not write into the returned results.
        return array_map(static fn (mixed $result): mixed => $result, $results);
    }

    function parallel(int $n, callable $fn): void
    {
        batch(array_fill(0, max(0, $n), $fn));
    }

    /**
     * @param array<mixed> $list
     *
     * @return array<mixed>
     */
    function map(array $list, callable $fn, float $timeout = -1): array
    {
        return batch(array_map(static fn (mixed $item): \Closure => static fn () => $fn($item), $list), $timeout);
    }
}

namespace Co {
    function run(callable $fn, mixed ...$args): bool
    {
        return \Swoole\Coroutine\run($fn, ...$args);
    }

    function go(callable $fn, mixed ...$args): int|false
    {
        return \Swoole\Coroutine\go($fn, ...$args);
    }

    function defer(callable $fn): void
    {
        \Howdah\defer($fn);
    }
}

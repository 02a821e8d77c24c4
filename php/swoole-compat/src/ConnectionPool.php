<?php

declare(strict_types=1);

namespace Swoole;

use Howdah\Pool;
use Howdah\TimeoutException;

/**
 * A pool with the interface of Swoole's library, based on Howdah's: a connection that is not put back returns when its
 * coroutine ends. Only the pools of databases check and reset connections.
 */
class ConnectionPool
{
    public const DEFAULT_SIZE = 64;

    protected Pool $pool;

    public function __construct(callable $constructor, int $size = self::DEFAULT_SIZE, ?string $proxy = null)
    {
        $this->pool = new Pool($proxy === null ? $constructor : static fn (): object => new $proxy($constructor), $size, waitTimeout: null);
    }

    /** Opens connections up to the limit now, not at their first use. */
    public function fill(): void
    {
        $taken = [];
        try {
            while (\count($this->pool) < $this->pool->stats()['limit']) {
                $taken[] = $this->pool->get();
            }
        } finally {
            array_map($this->pool->put(...), $taken);
        }
    }

    /** @return mixed a connection; false if none is free in time. A timeout of 0 or less means none. */
    public function get(float $timeout = -1): mixed
    {
        try {
            return $this->pool->get($timeout > 0 ? $timeout : null);
        } catch (TimeoutException) {
            return false;
        }
    }

    /** @param object|null $connection null for a broken one: the pools of databases detect it when its coroutine ends */
    public function put(?object $connection): void
    {
        if ($connection !== null) {
            $this->pool->put($connection);
        }
    }

    public function close(): void
    {
        $this->pool->close();
    }
}

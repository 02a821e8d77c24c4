<?php

/* Connections of any kind, by the functions given to the pool. */

declare(strict_types=1);

namespace Howdah\Internal;

final class CallableDriver implements PoolDriver
{
    /**
     * @param \Closure(): object          $open
     * @param \Closure(object): mixed|null $isAlive returns false if it is dead
     * @param \Closure(object): mixed|null $reset   returns false if the connection cannot be used again
     * @param \Closure(object): mixed|null $close
     */
    public function __construct(
        private readonly \Closure $open,
        private readonly ?\Closure $isAlive,
        private readonly ?\Closure $reset,
        private readonly ?\Closure $close,
    ) {
    }

    public function open(ConnectionState $state): object
    {
        return ($this->open)();
    }

    public function isAlive(object $connection): bool
    {
        return $this->isAlive === null || ($this->isAlive)($connection) !== false;
    }

    public function isAsNew(object $connection, ConnectionState $state): bool
    {
        return $this->reset === null;
    }

    public function inTransaction(object $connection, ConnectionState $state): bool
    {
        return false;
    }

    public function reset(object $connection, ConnectionState $state): bool
    {
        return $this->reset === null || ($this->reset)($connection) !== false;
    }

    public function close(object $connection): void
    {
        $this->close === null || ($this->close)($connection);
    }
}

<?php

/* A pool's operations on one kind of connection. All methods but isAsNew() and inTransaction() may wait. */

declare(strict_types=1);

namespace Howdah\Internal;

interface PoolDriver
{
    public function open(ConnectionState $state): object;

    /** Asks the other side. */
    public function isAlive(object $connection): bool;

    /** True if nothing is to be undone before its next use. Must not wait, nor ask the other side. */
    public function isAsNew(object $connection, ConnectionState $state): bool;

    /** True if a transaction is open that the reset would roll back. Must not wait, nor ask the other side. */
    public function inTransaction(object $connection, ConnectionState $state): bool;

    /**
     * Makes the connection as it was when it was opened.
     *
     * @return bool false: it cannot be used again
     */
    public function reset(object $connection, ConnectionState $state): bool;

    public function close(object $connection): void;
}

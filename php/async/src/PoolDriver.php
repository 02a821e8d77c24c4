<?php

/* A pool's operations on one kind of connection. All methods except isAsNew() and inTransaction() may wait. */

declare(strict_types=1);

namespace Howdah\Internal;

interface PoolDriver
{
    public function open(ConnectionState $state): object;

    /** Checks the connection with the server. */
    public function isAlive(object $connection): bool;

    /** Returns true if nothing has to be undone before its next use. Must not wait or contact the server. */
    public function isAsNew(object $connection, ConnectionState $state): bool;

    /** Returns true if a transaction is open that the reset would roll back. Must not wait or contact the server. */
    public function inTransaction(object $connection, ConnectionState $state): bool;

    /**
     * Resets the connection to its state after opening.
     *
     * @return bool false: it cannot be used again
     */
    public function reset(object $connection, ConnectionState $state): bool;

    public function close(object $connection): void;
}

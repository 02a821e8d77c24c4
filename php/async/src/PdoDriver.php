<?php

/* Pooled PDO connections. A return costs no additional query unless there is something to undo, or after an error. */

declare(strict_types=1);

namespace Howdah\Internal;

final class PdoDriver implements PoolDriver
{
    /** @param array<int, mixed> $options */
    public function __construct(
        private readonly string $dsn,
        private readonly ?string $user,
        #[\SensitiveParameter] private readonly ?string $password,
        private readonly array $options,
    ) {
    }

    public function open(ConnectionState $state): object
    {
        return new PooledPdo($state, $this->dsn, $this->user, $this->password, $this->options);
    }

    public function isAlive(object $connection): bool
    {
        $answer = $connection->query('SELECT 1');

        return $answer !== false && $answer->closeCursor();
    }

    public function isAsNew(object $connection, ConnectionState $state): bool
    {
        return !$state->changed && $state->attributes === [] && $connection->buffered && !$connection->inTransaction();
    }

    public function inTransaction(object $connection, ConnectionState $state): bool
    {
        return $connection->inTransaction();
    }

    public function reset(object $connection, ConnectionState $state): bool
    {
        if ($connection->inTransaction()) {
            if (!$connection->rollBack()) {
                return false;
            }
            $state->rolledBack = true;
        }
        if ($connection->driver === 'mysql' && !$connection->getAttribute(PooledPdo::BUFFERED_QUERY)) {
            // Rows of an unfinished result would appear in the next query.
            $state->doubtful = true;
        }
        foreach ($state->attributes as $attribute => $value) {
            if (!$connection->setAttribute($attribute, $value)) {
                return false;
            }
        }
        if (!$state->changed) {
            return true;
        }
        // PDO has no function that resets a MySQL session, and SQLite has none either.
        return $connection->driver === 'pgsql' && $connection->exec('DISCARD ALL') !== false;
    }

    public function close(object $connection): void
    {
        // PDO closes a connection with its last object.
    }
}

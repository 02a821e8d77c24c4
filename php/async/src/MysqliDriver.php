<?php

/* Pooled mysqli connections. Unless `reset` is false, each return resets the session by COM_CHANGE_USER, in one exchange
 * with the server: mysqli_query() and the like bypass any class of ours, so a connection's changes are not known. */

declare(strict_types=1);

namespace Howdah\Internal;

if (class_exists(\mysqli::class, false)) {
    final class PooledMysqli extends \mysqli
    {
        public function __construct(private readonly ConnectionState $state)
        {
            parent::__construct();
        }

        public function begin_transaction(int $flags = 0, ?string $name = null): bool
        {
            $this->state->check();
            $begun = parent::begin_transaction($flags, $name);
            $this->state->begun = Stack::full();

            return $begun;
        }

        public function commit(int $flags = 0, ?string $name = null): bool
        {
            $this->state->check();
            $this->state->begun = null;

            return parent::commit($flags, $name);
        }

        public function rollback(int $flags = 0, ?string $name = null): bool
        {
            $this->state->check();
            $this->state->begun = null;

            return parent::rollback($flags, $name);
        }

        public function query(string $query, int $result_mode = MYSQLI_STORE_RESULT): \mysqli_result|bool
        {
            $this->state->check();

            return parent::query($query, $result_mode);
        }

        public function prepare(string $query): \mysqli_stmt|false
        {
            $this->state->check();

            return parent::prepare($query);
        }
    }
}

final class MysqliDriver implements PoolDriver
{
    /** @param array<int, mixed> $options for mysqli_options() */
    public function __construct(
        private readonly ?string $host,
        private readonly ?string $user,
        #[\SensitiveParameter] private readonly ?string $password,
        private readonly ?string $database,
        private readonly ?int $port,
        private readonly ?string $socket,
        private readonly ?string $charset,
        private readonly array $options,
        private readonly bool $reset,
    ) {
    }

    public function open(ConnectionState $state): object
    {
        $mysqli = new PooledMysqli($state);
        foreach ($this->options as $option => $value) {
            $mysqli->options($option, $value);
        }
        if (!$mysqli->real_connect($this->host, $this->user, $this->password, $this->database, $this->port, $this->socket)) {
            throw new \mysqli_sql_exception($mysqli->connect_error ?? 'cannot connect', $mysqli->connect_errno);
        }
        $this->useCharset($mysqli);

        return $mysqli;
    }

    public function isAlive(object $connection): bool
    {
        return $connection->query('DO 1') !== false;
    }

    public function isAsNew(object $connection, ConnectionState $state): bool
    {
        return !$this->reset && !$this->inTransaction($connection, $state);
    }

    public function inTransaction(object $connection, ConnectionState $state): bool
    {
        return ConnectionState::mysqliInTransaction($connection) ?? $state->begun !== null;
    }

    public function reset(object $connection, ConnectionState $state): bool
    {
        $open = $this->inTransaction($connection, $state);
        if (!$this->reset) {
            $good = !$open || $connection->rollback();
        } else {
            $good = $connection->change_user($this->user ?? '', $this->password ?? '', $this->database) && $this->useCharset($connection);
        }
        $state->rolledBack = $open && $good;

        return $good;
    }

    public function close(object $connection): void
    {
        $connection->close();
    }

    private function useCharset(\mysqli $mysqli): bool
    {
        return $this->charset === null || $mysqli->character_set_name() === $this->charset || $mysqli->set_charset($this->charset);
    }
}

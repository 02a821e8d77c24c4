<?php

/* A PDO of a pool: notes what has to be undone at its return, and refuses its use after that. */

declare(strict_types=1);

namespace Howdah\Internal;

if (class_exists(\PDO::class, false)) {
    final class PooledPdo extends \PDO
    {
        /** @param array<int, mixed> $options */
        public function __construct(private readonly ConnectionState $state, string $dsn, ?string $user, ?string $password, array $options)
        {
            unset($options[\PDO::ATTR_PERSISTENT]);
            parent::__construct($dsn, $user, $password, $options);
            if (!isset($options[\PDO::ATTR_STATEMENT_CLASS])) {
                parent::setAttribute(\PDO::ATTR_STATEMENT_CLASS, [PooledStatement::class, [$state]]);
            }
            $this->driver = parent::getAttribute(\PDO::ATTR_DRIVER_NAME);
        }

        public readonly string $driver;

        public function prepare(string $query, array $options = []): \PDOStatement|false
        {
            $this->look($query);
            try {
                return parent::prepare($query, $options);
            } catch (\PDOException $error) {
                $this->state->doubtful = true;
                throw $error;
            }
        }

        public function query(string $query, ?int $fetchMode = null, mixed ...$fetchModeArgs): \PDOStatement|false
        {
            $this->look($query);
            try {
                return parent::query($query, $fetchMode, ...$fetchModeArgs);
            } catch (\PDOException $error) {
                $this->state->doubtful = true;
                throw $error;
            }
        }

        public function exec(string $statement): int|false
        {
            $this->look($statement);
            try {
                return parent::exec($statement);
            } catch (\PDOException $error) {
                $this->state->doubtful = true;
                throw $error;
            }
        }

        public function beginTransaction(): bool
        {
            $this->state->check();
            $begun = parent::beginTransaction();
            $this->state->begun = (new \Exception())->getTraceAsString();

            return $begun;
        }

        public function commit(): bool
        {
            $this->state->check();

            return parent::commit();
        }

        public function rollBack(): bool
        {
            $this->state->check();

            return parent::rollBack();
        }

        public function setAttribute(int $attribute, mixed $value): bool
        {
            $this->state->check();
            if (!\array_key_exists($attribute, $this->state->attributes)) {
                try {
                    $this->state->attributes[$attribute] = parent::getAttribute($attribute);
                } catch (\PDOException) {
                    // It can be set only.
                    $this->state->changed = true;
                }
            }

            return parent::setAttribute($attribute, $value);
        }

        private function look(string $sql): void
        {
            $this->state->check();
            $this->state->changed = $this->state->changed || SessionSql::mayChange($this->driver, $sql);
        }
    }

    final class PooledStatement extends \PDOStatement
    {
        private function __construct(private readonly ConnectionState $state)
        {
        }

        public function execute(?array $params = null): bool
        {
            $this->state->check();
            try {
                return parent::execute($params);
            } catch (\PDOException $error) {
                $this->state->doubtful = true;
                throw $error;
            }
        }
    }
}

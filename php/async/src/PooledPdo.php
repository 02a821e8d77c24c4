<?php

/* A PDO of a pool: records the changes to undo at its return, and refuses to be used after that. */

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
                parent::setAttribute(\PDO::ATTR_STATEMENT_CLASS, [PooledStatement::class]);
            }
            $this->driver = parent::getAttribute(\PDO::ATTR_DRIVER_NAME);
            $this->buffered = $this->driver !== 'mysql' || parent::getAttribute(self::BUFFERED_QUERY);
        }

        /** PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, whose name depends on PHP's version. */
        public const BUFFERED_QUERY = 1000;

        public readonly string $driver;
        /** True if a new connection cannot have rows left of an unfinished result. */
        public readonly bool $buffered;

        public function prepare(string $query, array $options = []): \PDOStatement|false
        {
            $this->state->look($this->driver, $query);
            try {
                $statement = parent::prepare($query, $options);
                if ($statement instanceof PooledStatement) {
                    $statement->state = $this->state;
                }

                return $statement;
            } catch (\PDOException $error) {
                $this->state->doubtful = true;
                throw $error;
            }
        }

        public function query(string $query, ?int $fetchMode = null, mixed ...$fetchModeArgs): \PDOStatement|false
        {
            $this->state->look($this->driver, $query);
            try {
                $statement = $fetchMode === null ? parent::query($query) : parent::query($query, $fetchMode, ...$fetchModeArgs);
                if ($statement instanceof PooledStatement) {
                    $statement->state = $this->state;
                }

                return $statement;
            } catch (\PDOException $error) {
                $this->state->doubtful = true;
                throw $error;
            }
        }

        public function exec(string $statement): int|false
        {
            $this->state->look($this->driver, $statement);
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
            $this->state->begun = Stack::full();

            return $begun;
        }

        public function commit(): bool
        {
            $this->state->check();
            $ended = parent::commit();
            $this->state->begun = null;

            return $ended;
        }

        public function rollBack(): bool
        {
            $this->state->check();
            $ended = parent::rollBack();
            $this->state->begun = null;

            return $ended;
        }

        public function setAttribute(int $attribute, mixed $value): bool
        {
            $this->state->check();
            if (!\array_key_exists($attribute, $this->state->attributes)) {
                try {
                    $this->state->attributes[$attribute] = parent::getAttribute($attribute);
                } catch (\PDOException) {
                    // It can be set but not read.
                    $this->state->changed = true;
                }
            }

            return parent::setAttribute($attribute, $value);
        }
    }

    final class PooledStatement extends \PDOStatement
    {
        /** @var ConnectionState|null set by its PDO: a constructor with arguments would cost more; untyped, as in Waiter */
        public $state = null;

        public function execute(?array $params = null): bool
        {
            $this->state?->check();
            try {
                return parent::execute($params);
            } catch (\PDOException $error) {
                if ($this->state !== null) {
                    $this->state->doubtful = true;
                }
                throw $error;
            }
        }
    }
}

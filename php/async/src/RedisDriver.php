<?php

/* Pooled connections of phpredis. A return costs no exchange with the server unless there is something to undo, or
 * after an error in use(). */

declare(strict_types=1);

namespace Howdah\Internal;

if (class_exists(\Redis::class, false)) {
    final class PooledRedis extends \Redis
    {
        /** True if a key is watched: the next transaction would depend on it. */
        public bool $watching = false;
        /** True if it was closed: phpredis would reconnect automatically, but to database 0. */
        public bool $closed = false;
        /** True if a method was called that changes the connection; the return finds out the changes. */
        public bool $touched = false;
        /** Position in the code that called multi() or pipeline(). */
        public ?string $begun = null;

        public function watch(...$keys): \Redis|bool
        {
            $this->watching = true;
            $this->touched = true;

            return parent::watch(...$keys);
        }

        public function close(): bool
        {
            $this->closed = true;
            $this->touched = true;

            return parent::close();
        }

        public function connect(...$arguments): bool
        {
            $this->touched = true;

            return parent::connect(...$arguments);
        }

        public function multi(...$arguments): \Redis|bool
        {
            $this->touched = true;
            $this->begun = Stack::full();

            return parent::multi(...$arguments);
        }

        public function pipeline(): \Redis|bool
        {
            $this->touched = true;
            $this->begun = Stack::full();

            return parent::pipeline();
        }

        public function select(...$arguments): \Redis|bool
        {
            $this->touched = true;

            return parent::select(...$arguments);
        }

        public function setOption(...$arguments): bool
        {
            $this->touched = true;

            return parent::setOption(...$arguments);
        }
    }
}

final class RedisDriver implements PoolDriver
{
    /** Options that change the behaviour or results of commands; only those constants that this phpredis has. */
    private const OPTIONS = ['OPT_SERIALIZER', 'OPT_PREFIX', 'OPT_READ_TIMEOUT', 'OPT_SCAN', 'OPT_COMPRESSION', 'OPT_COMPRESSION_LEVEL',
        'OPT_REPLY_LITERAL', 'OPT_NULL_MULTIBULK_AS_NULL', 'OPT_PACK_IGNORE_NUMBERS'];

    /** @var array<int, mixed>|null their values on a new connection */
    private ?array $options = null;

    /**
     * @param string|array<string>|null $auth     password, or user and password
     * @param array<int, mixed>         $settings for Redis::setOption()
     */
    public function __construct(
        private readonly string $host,
        private readonly int $port,
        #[\SensitiveParameter] private readonly string|array|null $auth,
        private readonly int $database,
        private readonly float $connectTimeout,
        private readonly float $readTimeout,
        private readonly array $settings,
    ) {
    }

    public function open(ConnectionState $state): object
    {
        $redis = new PooledRedis();
        if (!$redis->connect($this->host, str_starts_with($this->host, '/') ? 0 : $this->port, $this->connectTimeout, null, 0, $this->readTimeout)) {
            throw new \RedisException("Cannot connect to Redis at $this->host");
        }
        if ($this->auth !== null && !$redis->auth($this->auth) || $this->database !== 0 && !$redis->select($this->database)) {
            throw new \RedisException($redis->getLastError() ?? 'Redis refuses the password or the database');
        }
        foreach ($this->settings as $option => $value) {
            $redis->setOption($option, $value);
        }
        if ($this->options === null) {
            $options = [];
            foreach (self::OPTIONS as $name) {
                if (\defined("Redis::$name")) {
                    $option = \constant("Redis::$name");
                    $options[$option] = $redis->getOption($option);
                }
            }
            $this->options = $options;
        }
        $redis->touched = false;

        return $redis;
    }

    public function isAlive(object $connection): bool
    {
        return $connection->ping() !== false;
    }

    public function isAsNew(object $connection, ConnectionState $state): bool
    {
        return !$connection->touched && $connection->isConnected() && $connection->clearLastError();
    }

    public function inTransaction(object $connection, ConnectionState $state): bool
    {
        if (!$connection->touched || !$connection->isConnected() || $connection->getMode() === \Redis::ATOMIC) {
            return false;
        }
        $state->begun = $connection->begun;

        return true;
    }

    public function reset(object $connection, ConnectionState $state): bool
    {
        if ($connection->closed || !$connection->isConnected()) {
            return false;
        }
        if ($connection->getMode() !== \Redis::ATOMIC) {
            $connection->discard();
            $state->rolledBack = true;
        }
        if ($connection->watching) {
            $connection->watching = false;
            if (!$connection->unwatch()) {
                return false;
            }
        }
        foreach ($this->options as $option => $value) {
            if ($connection->getOption($option) !== $value) {
                $connection->setOption($option, $value);
            }
        }
        $connection->clearLastError();

        $good = $connection->getDbNum() === $this->database || $connection->select($this->database);
        $connection->touched = false;

        return $good;
    }

    public function close(object $connection): void
    {
        $connection->close();
    }
}

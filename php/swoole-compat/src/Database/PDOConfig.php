<?php

declare(strict_types=1);

namespace Swoole\Database;

use Howdah\SwooleCompat\DatabaseSettings;

class PDOConfig
{
    use DatabaseSettings;

    /** @var array<string, mixed> */
    protected array $values = [
        'driver' => 'mysql',
        'host' => '127.0.0.1',
        'port' => 3306,
        'unixSocket' => null,
        'dbname' => 'test',
        'charset' => 'utf8mb4',
        'username' => 'root',
        'password' => 'root',
        'options' => [],
    ];

    public function withDriver(string $driver): static
    {
        $this->values['driver'] = $driver;

        return $this;
    }

    public function getDriver(): string
    {
        return $this->values['driver'];
    }

    public function hasUnixSocket(): bool
    {
        return $this->values['unixSocket'] !== null;
    }

    /** @internal */
    public function dsn(): string
    {
        if ($this->getDriver() === 'sqlite') {
            return 'sqlite:' . $this->getHost();
        }
        $where = $this->hasUnixSocket() ? "unix_socket={$this->getUnixSocket()}" : "host={$this->getHost()};port={$this->getPort()}";
        $charset = $this->getDriver() === 'mysql' ? ";charset={$this->getCharset()}" : '';

        return "{$this->getDriver()}:$where;dbname={$this->getDbname()}$charset";
    }
}

<?php

declare(strict_types=1);

namespace Swoole\Database;

use Howdah\SwooleCompat\ServerSettings;

class RedisConfig
{
    use ServerSettings;

    /** @var array<string, mixed> */
    protected array $values = [
        'host' => '127.0.0.1',
        'port' => 6379,
        'timeout' => 0.0,
        'reserved' => '',
        'retryInterval' => 0,
        'readTimeout' => 0.0,
        'auth' => '',
        'dbIndex' => 0,
        'options' => [],
    ];

    public function withTimeout(float $timeout): static
    {
        $this->values['timeout'] = $timeout;

        return $this;
    }

    public function getTimeout(): float
    {
        return $this->values['timeout'];
    }

    public function withReserved(string $reserved): static
    {
        $this->values['reserved'] = $reserved;

        return $this;
    }

    public function getReserved(): string
    {
        return $this->values['reserved'];
    }

    public function withRetryInterval(int $retryInterval): static
    {
        $this->values['retryInterval'] = $retryInterval;

        return $this;
    }

    public function getRetryInterval(): int
    {
        return $this->values['retryInterval'];
    }

    public function withReadTimeout(float $readTimeout): static
    {
        $this->values['readTimeout'] = $readTimeout;

        return $this;
    }

    public function getReadTimeout(): float
    {
        return $this->values['readTimeout'];
    }

    public function withAuth(string|array $auth): static
    {
        $this->values['auth'] = $auth;

        return $this;
    }

    public function getAuth(): string|array
    {
        return $this->values['auth'];
    }

    public function withDbIndex(int $dbIndex): static
    {
        $this->values['dbIndex'] = $dbIndex;

        return $this;
    }

    public function getDbIndex(): int
    {
        return $this->values['dbIndex'];
    }
}

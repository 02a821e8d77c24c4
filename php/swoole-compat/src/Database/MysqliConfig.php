<?php

declare(strict_types=1);

namespace Swoole\Database;

class MysqliConfig
{
    /** @var array<string, mixed> */
    protected array $values = [
        'host' => '127.0.0.1',
        'port' => 3306,
        'unixSocket' => null,
        'dbname' => 'test',
        'charset' => 'utf8mb4',
        'username' => 'root',
        'password' => 'root',
        'options' => [],
    ];

    public function withHost(string $host): static
    {
        $this->values['host'] = $host;

        return $this;
    }

    public function getHost(): string
    {
        return $this->values['host'];
    }

    public function withPort(int $port): static
    {
        $this->values['port'] = $port;

        return $this;
    }

    public function getPort(): int
    {
        return $this->values['port'];
    }

    public function withUnixSocket(?string $unixSocket): static
    {
        $this->values['unixSocket'] = $unixSocket;

        return $this;
    }

    public function getUnixSocket(): ?string
    {
        return $this->values['unixSocket'];
    }

    public function withDbname(string $dbname): static
    {
        $this->values['dbname'] = $dbname;

        return $this;
    }

    public function getDbname(): string
    {
        return $this->values['dbname'];
    }

    public function withCharset(string $charset): static
    {
        $this->values['charset'] = $charset;

        return $this;
    }

    public function getCharset(): string
    {
        return $this->values['charset'];
    }

    public function withUsername(string $username): static
    {
        $this->values['username'] = $username;

        return $this;
    }

    public function getUsername(): string
    {
        return $this->values['username'];
    }

    public function withPassword(string $password): static
    {
        $this->values['password'] = $password;

        return $this;
    }

    public function getPassword(): string
    {
        return $this->values['password'];
    }

    public function withOptions(array $options): static
    {
        $this->values['options'] = $options;

        return $this;
    }

    public function getOptions(): array
    {
        return $this->values['options'];
    }
}

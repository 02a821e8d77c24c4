<?php

declare(strict_types=1);

namespace Howdah\SwooleCompat;

/** Common settings of both kinds of database connections. */
trait DatabaseSettings
{
    use ServerSettings;

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
}

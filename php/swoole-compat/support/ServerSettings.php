<?php

declare(strict_types=1);

namespace Howdah\SwooleCompat;

/** Address of a server, and options for its client; the values are in `$values`. */
trait ServerSettings
{
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

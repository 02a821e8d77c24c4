<?php

declare(strict_types=1);

namespace Swoole\Database;

use Howdah\Pool;
use Swoole\ConnectionPool;

class MysqliPool extends ConnectionPool
{
    public function __construct(protected MysqliConfig $config, int $size = self::DEFAULT_SIZE)
    {
        $this->pool = Pool::mysqli(
            $config->getHost(),
            $config->getUsername(),
            $config->getPassword(),
            $config->getDbname(),
            $config->getPort(),
            $config->getUnixSocket(),
            $config->getCharset(),
            $config->getOptions(),
            max: $size,
            waitTimeout: null,
        );
    }
}

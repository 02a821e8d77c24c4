<?php

declare(strict_types=1);

namespace Swoole\Database;

use Howdah\Pool;
use Swoole\ConnectionPool;

class RedisPool extends ConnectionPool
{
    public function __construct(protected RedisConfig $config, int $size = self::DEFAULT_SIZE)
    {
        $auth = $config->getAuth();
        $this->pool = Pool::redis(
            $config->getHost(),
            $config->getPort(),
            $auth === '' || $auth === [] ? null : $auth,
            $config->getDbIndex(),
            $config->getTimeout(),
            $config->getReadTimeout(),
            $config->getOptions(),
            max: $size,
            waitTimeout: null,
        );
    }
}

<?php

declare(strict_types=1);

namespace Swoole\Database;

use Howdah\Pool;
use Swoole\ConnectionPool;

class PDOPool extends ConnectionPool
{
    public function __construct(protected PDOConfig $config, int $size = self::DEFAULT_SIZE)
    {
        $this->pool = Pool::pdo($config->dsn(), $config->getUsername(), $config->getPassword(), $config->getOptions(), max: $size, waitTimeout: null);
    }
}

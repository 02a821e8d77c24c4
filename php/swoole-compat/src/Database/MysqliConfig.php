<?php

declare(strict_types=1);

namespace Swoole\Database;

use Howdah\SwooleCompat\DatabaseSettings;

class MysqliConfig
{
    use DatabaseSettings;

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
}

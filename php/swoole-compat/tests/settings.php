<?php

// Settings of pools, which need no server. Tests in coroutines are in tests/tests/async/php/library/swoole.php.

declare(strict_types=1);

use Swoole\Database\PDOConfig;
use Swoole\Database\RedisConfig;

spl_autoload_register(static function (string $class): void {
    $file = __DIR__ . '/..' . strtr($class, ['Howdah\SwooleCompat' => '/support', 'Swoole' => '/src', '\\' => '/']) . '.php';
    if (is_file($file)) {
        require $file;
    }
});

$check = static function (mixed $got, mixed $expected, string $what): void {
    if ($got !== $expected) {
        fwrite(STDERR, "settings: $what: " . var_export($got, true) . ' instead of ' . var_export($expected, true) . "\n");
        exit(1);
    }
};

$pdo = (new PDOConfig())->withHost('db')->withPort(3307)->withDbname('shop');
$check($pdo->dsn(), 'mysql:host=db;port=3307;dbname=shop;charset=utf8mb4', 'by host');
$check($pdo->withUnixSocket('/run/db.sock')->dsn(), 'mysql:unix_socket=/run/db.sock;dbname=shop;charset=utf8mb4', 'by socket');
$check((new PDOConfig())->withDriver('pgsql')->dsn(), 'pgsql:host=127.0.0.1;port=3306;dbname=test', 'another driver');
$check((new PDOConfig())->withDriver('sqlite')->withHost('/tmp/x')->dsn(), 'sqlite:/tmp/x', 'a file');
$check((new RedisConfig())->withHost('cache')->getHost(), 'cache', 'Redis');

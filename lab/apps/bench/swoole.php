<?php
// The same cases on Swoole's HTTP server: coroutine hooks for everything, and Swoole's own pools of connections per worker.
$env = require __DIR__ . '/environment.php';
$workers = (int) getenv('LAB_WORKERS');
$server = new Swoole\Http\Server(getenv('LAB_HOST'), (int) getenv('LAB_PORT'), SWOOLE_PROCESS);
$server->set([
    'worker_num' => $workers,
    'hook_flags' => SWOOLE_HOOK_ALL,
    'enable_coroutine' => true,
    'http_compression' => getenv('LAB_COMPRESSION') === '1',
    // By default it compresses from 20 bytes on, which costs more than it saves.
    'compression_min_length' => 1024,
    'enable_static_handler' => true,
    'document_root' => getenv('LAB_ROOT'),
    'log_file' => getenv('LAB_LOG'),
    'log_level' => SWOOLE_LOG_WARNING,
    'backlog' => 1024,
]);

$cases = [];
$server->on('workerStart', function () use (&$cases, $env, $workers): void {
    $share = max(1, intdiv(100, $workers));
    $mysqlPool = new Swoole\Database\PDOPool(
        (new Swoole\Database\PDOConfig())
            ->withUnixSocket($env['mysql'])
            ->withDbName('lab')
            ->withCharset('utf8mb4')
            ->withUsername('lab')
            ->withPassword('lab'),
        $share,
    );
    // Port 0: the host is the path of a socket.
    $redisPool = new Swoole\Database\RedisPool(
        (new Swoole\Database\RedisConfig())->withHost($env['redis'])->withPort(0),
        $share,
    );
    $with = static function (Swoole\ConnectionPool $pool, callable $use): mixed {
        $connection = $pool->get();
        try {
            return $use($connection);
        } finally {
            $pool->put($connection);
        }
    };
    $mysql = static fn (callable $use): mixed => $with($mysqlPool, $use);
    $redis = static fn (callable $use): mixed => $with($redisPool, $use);
    $lines = static function (callable $line): string {
        $text = '';
        for ($i = 0; $i < 50; $i++) {
            $text .= $line() . "\n";
        }
        return $text;
    };
    $html = static fn () => $lines(static fn () => str_repeat('x', 1023));
    $cases = [
        '/hello.php' => static fn () => ['text/html', 'Hello, world!'],
        '/html.php' => static fn () => ['text/html', $html()],
        '/pdf.php' => static fn () => ['application/pdf', $html()],
        '/random.php' => static fn () => ['text/html', $lines(static fn () => base64_encode(random_bytes(768)))],
        '/fibonacci.php' => static function (): array {
            $a = 0.0;
            $b = 1.0;
            for ($i = 0; $i < 100; $i++) {
                [$a, $b] = [$b, $a + $b];
            }
            return ['text/html', sprintf('%.0f', $a)];
        },
        '/usleep.php' => static function (): array {
            usleep(20000);
            return ['text/html', 'slept'];
        },
        '/work.php' => static function (array $query): array {
            $n = (int) $query['n'];
            $x = 1;
            for ($i = 0; $i < $n; $i++) {
                $x = ($x * 1103515245 + 12345) & 0x7fffffff;
            }
            return ['text/html', (string) $x];
        },
        '/mysql-key.php' => static function () use ($mysql): array {
            $row = $mysql(static fn ($db) =>
                $db->query('SELECT id, name FROM item WHERE id = 4711')->fetch(PDO::FETCH_ASSOC));
            return ['application/json', json_encode(['id' => (int) $row['id'], 'name' => $row['name']])];
        },
        '/mysql-rows.php' => static function () use ($mysql): array {
            $rows = $mysql(static fn ($db) =>
                $db->query('SELECT id, name, price, stock FROM small_item ORDER BY id')->fetchAll(PDO::FETCH_ASSOC));
            return ['application/json', json_encode($rows)];
        },
        '/complex.php' => static function () use ($mysql, $redis): array {
            $rows = $mysql(static function ($db): array {
                $rows = [];
                foreach ([1, 2, 3] as $id) {
                    $rows[] = $db->query("SELECT id, name, price, stock FROM item WHERE id = $id")->fetch(PDO::FETCH_ASSOC);
                }
                return $rows;
            });
            $cached = $redis(static function (Redis $redis) use ($rows): array {
                $redis->set('lab:rows', serialize($rows));
                return unserialize($redis->get('lab:rows'));
            });
            $sum = 0;
            for ($i = 1; $i <= 100; $i++) {
                $sum += ($i * $i) % 7;
            }
            foreach ($cached as $row) {
                $sum += (int) $row['price'] * (int) $row['stock'];
            }
            return ['application/json', json_encode(['rows' => $rows, 'cached' => count($cached), 'sum' => $sum])];
        },
        '/probe.php' => static function (): array {
            ob_start();
            require getenv('LAB_ROOT') . '/probe.php';
            return ['application/json', ob_get_clean()];
        },
    ];
});
$server->on('request', function (Swoole\Http\Request $request, Swoole\Http\Response $response) use (&$cases): void {
    $case = $cases[$request->server['request_uri']] ?? null;
    if ($case === null) {
        $response->status(404);
        $response->end('no such case');
        return;
    }
    try {
        [$type, $body] = $case($request->get ?? []);
    } catch (Throwable $error) {
        $response->status(500);
        $response->end($error->getMessage());
        return;
    }
    $response->header('Content-Type', $type);
    $response->end($body);
});
$server->start();

<?php
// The same cases on Swoole's HTTP server: coroutine hooks for everything, and a pool of connections per worker.
$env = require __DIR__ . '/environment.php';
$workers = (int) getenv('LAB_WORKERS');
$server = new Swoole\Http\Server(getenv('LAB_HOST'), (int) getenv('LAB_PORT'), SWOOLE_PROCESS);
$server->set([
    'worker_num' => $workers,
    'hook_flags' => SWOOLE_HOOK_ALL,
    'enable_coroutine' => true,
    'http_compression' => getenv('LAB_COMPRESSION') === '1',
    'enable_static_handler' => true,
    'document_root' => getenv('LAB_ROOT'),
    'log_file' => getenv('LAB_LOG'),
    'log_level' => SWOOLE_LOG_WARNING,
    'backlog' => 1024,
]);

/** A pool that opens connections when they are first needed, up to a limit, and then lets coroutines wait. */
final class Pool
{
    private Swoole\Coroutine\Channel $idle;
    private int $open = 0;

    public function __construct(private int $limit, private Closure $connect)
    {
        $this->idle = new Swoole\Coroutine\Channel($limit);
    }

    public function with(callable $use): mixed
    {
        $connection = null;
        if ($this->idle->isEmpty() && $this->open < $this->limit) {
            $this->open++;
            $connection = ($this->connect)();
        }
        $connection ??= $this->idle->pop();
        try {
            return $use($connection);
        } finally {
            $this->idle->push($connection);
        }
    }
}

$cases = [];
$server->on('workerStart', function () use (&$cases, $env, $workers): void {
    $share = max(1, intdiv(100, $workers));
    $mysql = new Pool($share, static fn () => new mysqli('localhost', 'lab', 'lab', 'lab', 0, $env['mysql']));
    $redis = new Pool($share, static function () use ($env): Redis {
        $redis = new Redis();
        $redis->connect($env['redis']);
        return $redis;
    });
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
        '/mysql-key.php' => static function () use ($mysql): array {
            $row = $mysql->with(static fn (mysqli $db) => $db->query('SELECT id, name FROM item WHERE id = 4711')->fetch_assoc());
            return ['application/json', json_encode(['id' => (int) $row['id'], 'name' => $row['name']])];
        },
        '/mysql-rows.php' => static function () use ($mysql): array {
            $rows = $mysql->with(static fn (mysqli $db) =>
                $db->query('SELECT id, name, price, stock FROM small_item ORDER BY id')->fetch_all(MYSQLI_ASSOC));
            return ['application/json', json_encode($rows)];
        },
        '/complex.php' => static function () use ($mysql, $redis): array {
            $rows = $mysql->with(static function (mysqli $db): array {
                $rows = [];
                foreach ([1, 2, 3] as $id) {
                    $rows[] = $db->query("SELECT id, name, price, stock FROM item WHERE id = $id")->fetch_assoc();
                }
                return $rows;
            });
            $cached = $redis->with(static function (Redis $redis) use ($rows): array {
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
        [$type, $body] = $case();
    } catch (Throwable $error) {
        $response->status(500);
        $response->end($error->getMessage());
        return;
    }
    $response->header('Content-Type', $type);
    $response->end($body);
});
$server->start();

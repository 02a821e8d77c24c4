<?php
// The same cases for runtimes that boot a script once and then call it for each request. Like other resident
// applications, it keeps its connections to MariaDB and Redis.
$env = require __DIR__ . '/../environment.php';
$db = null;
$redis = null;
// In Howdah's snapshot mode each process that is forked from the boot opens its own connections.
$open = static fn (callable $connect) =>
    function_exists('Howdah\connect_each_worker') ? Howdah\connect_each_worker($connect) : $connect();
$mysql = static function () use ($env, $open, &$db): mysqli {
    if ($db === null) {
        $open(static function () use ($env, &$db): void {
            $db = null;
            $db = new mysqli('localhost', 'lab', 'lab', 'lab', 0, $env['mysql']);
        });
    }
    return $db;
};
$cache = static function () use ($env, $open, &$redis): Redis {
    if ($redis === null) {
        $open(static function () use ($env, &$redis): void {
            $redis = null;
            $redis = new Redis();
            $redis->connect($env['redis']);
        });
    }
    return $redis;
};
$lines = static function (callable $line): void {
    for ($i = 0; $i < 50; $i++) {
        echo $line(), "\n";
    }
};
$cases = [
    '/hello.php' => static function (): void {
        echo 'Hello, world!';
    },
    '/html.php' => static fn () => $lines(static fn () => str_repeat('x', 1023)),
    '/pdf.php' => static function () use ($lines): void {
        header('Content-Type: application/pdf');
        $lines(static fn () => str_repeat('x', 1023));
    },
    '/random.php' => static fn () => $lines(static fn () => base64_encode(random_bytes(768))),
    '/fibonacci.php' => static function (): void {
        $a = 0.0;
        $b = 1.0;
        for ($i = 0; $i < 100; $i++) {
            [$a, $b] = [$b, $a + $b];
        }
        echo sprintf('%.0f', $a);
    },
    '/usleep.php' => static function (): void {
        usleep(20000);
        echo 'slept';
    },
    '/work.php' => static function (): void {
        $n = (int) $_GET['n'];
        $x = 1;
        for ($i = 0; $i < $n; $i++) {
            $x = ($x * 1103515245 + 12345) & 0x7fffffff;
        }
        echo $x;
    },
    '/mysql-key.php' => static function () use ($mysql): void {
        $row = $mysql()->query('SELECT id, name FROM item WHERE id = 4711')->fetch_assoc();
        header('Content-Type: application/json');
        echo json_encode(['id' => (int) $row['id'], 'name' => $row['name']]);
    },
    '/mysql-rows.php' => static function () use ($mysql): void {
        $rows = $mysql()->query('SELECT id, name, price, stock FROM small_item ORDER BY id')->fetch_all(MYSQLI_ASSOC);
        header('Content-Type: application/json');
        echo json_encode($rows);
    },
    '/complex.php' => static function () use ($mysql, $cache): void {
        $rows = [];
        foreach ([1, 2, 3] as $id) {
            $rows[] = $mysql()->query("SELECT id, name, price, stock FROM item WHERE id = $id")->fetch_assoc();
        }
        $cache()->set('lab:rows', serialize($rows));
        $cached = unserialize($cache()->get('lab:rows'));
        $sum = 0;
        for ($i = 1; $i <= 100; $i++) {
            $sum += ($i * $i) % 7;
        }
        foreach ($cached as $row) {
            $sum += (int) $row['price'] * (int) $row['stock'];
        }
        header('Content-Type: application/json');
        echo json_encode(['rows' => $rows, 'cached' => count($cached), 'sum' => $sum]);
    },
    '/probe.php' => static function (): void {
        require __DIR__ . '/probe.php';
    },
];
$handle = static function () use ($cases): void {
    $path = strtok($_SERVER['REQUEST_URI'], '?');
    if (isset($cases[$path])) {
        $cases[$path]();
    } else {
        http_response_code(404);
        echo 'no such case';
    }
};
while (frankenphp_handle_request($handle)) {
}

<?php
// The same cases for Howdah's async mode: many requests at once in one process, and pools of connections for each process.
$env = require __DIR__ . '/environment.php';
$share = max(1, intdiv(100, (int) getenv('LAB_WORKERS')));
$mysql = Howdah\Pool::pdo("mysql:unix_socket={$env['mysql']};dbname=lab;charset=utf8mb4", 'lab', 'lab', max: $share);
$redis = Howdah\Pool::redis($env['redis'], 0, max: $share);
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
        $row = $mysql->use(static fn (PDO $db) =>
            $db->query('SELECT id, name FROM item WHERE id = 4711')->fetch(PDO::FETCH_ASSOC));
        header('Content-Type: application/json');
        echo json_encode(['id' => (int) $row['id'], 'name' => $row['name']]);
    },
    '/mysql-rows.php' => static function () use ($mysql): void {
        $rows = $mysql->use(static fn (PDO $db) =>
            $db->query('SELECT id, name, price, stock FROM small_item ORDER BY id')->fetchAll(PDO::FETCH_ASSOC));
        header('Content-Type: application/json');
        echo json_encode($rows);
    },
    '/complex.php' => static function () use ($mysql, $redis): void {
        $rows = $mysql->use(static function (PDO $db): array {
            $rows = [];
            foreach ([1, 2, 3] as $id) {
                $rows[] = $db->query("SELECT id, name, price, stock FROM item WHERE id = $id")->fetch(PDO::FETCH_ASSOC);
            }
            return $rows;
        });
        $cached = $redis->use(static function (Redis $redis) use ($rows): array {
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
        header('Content-Type: application/json');
        echo json_encode(['rows' => $rows, 'cached' => count($cached), 'sum' => $sum]);
    },
    '/probe.php' => static function (): void {
        require __DIR__ . '/public/probe.php';
    },
];
frankenphp_handle_request(static function () use ($cases): void {
    $path = strtok($_SERVER['REQUEST_URI'], '?');
    if (isset($cases[$path])) {
        $cases[$path]();
    } else {
        http_response_code(404);
        echo 'no such case';
    }
});

<?php
// A small application in async mode: a page that sends three queries at once. While one waits for the database, the
// others and other requests run, in ordinary functions with PHP's own PDO.

declare(strict_types=1);

use Howdah\Pool;
use function Howdah\{all, handle_request};

// One pool per worker, so MySQL sees at most workers × max connections. They are opened on demand.
$pool = Pool::pdo(
    getenv('DB_DSN') ?: 'mysql:host=127.0.0.1;dbname=test',
    getenv('DB_USER') ?: 'root',
    getenv('DB_PASSWORD') ?: '',
    max: 8,
    name: 'example',
);
$ask = static fn (string $sql): array => $pool->use(static fn (PDO $db): array => $db->query($sql)->fetch(PDO::FETCH_ASSOC));

$dashboard = static function () use ($ask): array {
    // Three tasks, each with its own connection. The first error would cancel the others and be thrown here.
    return all([
        'version' => static fn () => $ask('SELECT VERSION() AS version, CONNECTION_ID() AS connection'),
        'tables' => static fn () => $ask('SELECT COUNT(*) AS tables, CONNECTION_ID() AS connection FROM information_schema.tables'),
        'slow' => static fn () => $ask('SELECT SLEEP(0.2) AS slept, CONNECTION_ID() AS connection'),
    ], timeout: 5.0);
};

handle_request(static function () use ($dashboard, $pool): void {
    header('Content-Type: application/json');
    try {
        $result = match (strtok($_SERVER['REQUEST_URI'], '?')) {
            '/' => $dashboard(),
            '/pool' => $pool->stats(),
            default => null,
        };
    } catch (PDOException | Howdah\TimeoutException $error) {
        error_log((string) $error);
        http_response_code(503);
        $result = ['error' => 'The database does not answer'];
    }
    if ($result === null) {
        http_response_code(404);
        $result = ['error' => 'Nothing here'];
    }
    echo json_encode($result), "\n";
});

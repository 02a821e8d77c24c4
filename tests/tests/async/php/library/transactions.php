<?php
/* Transactions left open: an error with locations if it can be thrown, otherwise a log line. */
use Howdah\{OpenTransactionError, Pool};
use function Howdah\go;

function begins(PDO|mysqli|Redis $db): void
{
    match (true) {
        $db instanceof PDO => $db->beginTransaction(),
        $db instanceof mysqli => $db->begin_transaction(),
        default => $db->multi(),
    };
}

return static function (callable $is, callable $error): void {
    $sql = (int) $_GET['sql'];
    $pdo = Pool::pdo("mysql:host=127.0.0.1;port=$sql", 'tester', '', name: 'shop');
    $pdo->use(static fn ($db) => $db->exec('CREATE OR REPLACE DATABASE open; CREATE TABLE open.t (a INT) ENGINE=InnoDB'));
    $rows = static fn (): int => (int) $pdo->use(static fn ($db) => $db->query('SELECT COUNT(*) FROM open.t')->fetchColumn());
    $insert = 'INSERT INTO open.t VALUES (1)';
    $pools = [
        'PDO' => [$pdo, static fn ($db) => $db->exec($insert)],
        'mysqli' => [Pool::mysqli('127.0.0.1', 'tester', '', 'open', $sql), static fn ($db) => mysqli_query($db, $insert)],
        'mysqli, not reset' => [Pool::mysqli('127.0.0.1', 'tester', '', 'open', $sql, reset: false), static fn ($db) => mysqli_query($db, $insert)],
        'redis' => [Pool::redis('127.0.0.1', (int) $_GET['redis']), static fn ($db) => $db->set('a', '1')],
    ];
    foreach ($pools as $name => [$pool, $work]) {
        $left = static function ($db) use ($work): void { begins($db); $work($db); };
        try {
            $pool->use($left);
            $is("$name: told", false, true);
        } catch (OpenTransactionError $told) {
            $is("$name: places", [str_contains($told->getTakenTraceAsString(), __FILE__), str_contains($told->getBegunTraceAsString(), 'begins('),
                str_contains($told->getTraceAsString(), __FILE__), str_contains($told, $told->getBegunTraceAsString())], [true, true, true, true]);
        }
        $db = $pool->get();
        $left($db);
        $is("$name: put", [$error(static fn () => $pool->put($db)), $error(static fn () => $pool->put($db))], ['OpenTransactionError', 'MisuseError']);
        $is("$name: errors come first", $error(static fn () => $pool->use(static function ($db) use ($left): void { $left($db); throw new DomainException(); })), 'DomainException');
        go(static fn () => $left($pool->mine()))->await();
        while ($pool->stats()['idle'] < 1) { Howdah\suspend(); }
        $is("$name: counted", $pool->stats()['open_transactions'], 4);
        $is("$name: one connection, nothing left", [$pool->stats()['opened'], $rows()], [1, 0]);
    }
    foreach (['PDO', 'mysqli'] as $name) {
        [$pool] = $pools[$name];
        try {
            $pool->use(static fn ($db) => $db->query('BEGIN') && $db->query($insert));
            $is("$name: told of a statement", false, true);
        } catch (OpenTransactionError $told) {
            $is("$name: begun by a statement", $told->getBegunTraceAsString(), null);
        }
    }
    // Ended by other means than it was begun: no error.
    $pools['mysqli'][0]->use(static function ($db) use ($insert): void { $db->begin_transaction(); $db->query($insert); mysqli_commit($db); });
    $pdo->use(static function ($db) use ($insert): void { $db->beginTransaction(); $db->exec($insert); $db->exec('COMMIT'); });
    $is('committed', $rows(), 2);
    // The server ends a transaction together with its connection: that is the error.
    $one = $pdo->get();
    $two = $pdo->get();
    begins($one);
    $two->exec('KILL ' . $one->query('SELECT CONNECTION_ID()')->fetchColumn());
    $is('lost', [$error(static fn () => $one->query('SELECT 1')), $error(static fn () => $pdo->put($one))], ['PDOException', 'none']);
    $pdo->put($two);
};

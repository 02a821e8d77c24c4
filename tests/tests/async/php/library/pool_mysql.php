<?php
/* Pooled PDO and mysqli connections with a real server. */
use Howdah\Pool;
use function Howdah\timeout;

return static function (callable $is, callable $error): void {
    $port = (int) $_GET['port'];
    $id = static fn ($db) => $db->query('SELECT CONNECTION_ID()');
    $pool = Pool::pdo("mysql:host=127.0.0.1;port=$port;charset=utf8mb4", 'tester', '', [PDO::ATTR_PERSISTENT => true], max: 2);
    $pool->use(static fn ($db) => $db->exec('CREATE OR REPLACE DATABASE pool; CREATE TABLE pool.t (a INT)'));
    $state = static fn ($db): array => [(int) $db->query('SELECT COUNT(*) FROM pool.t')->fetchColumn(), $id($db)->fetchColumn()];
    [, $first] = $pool->use($state);
    $is('told', $error(static fn () => $pool->use(static function ($db): void { $db->beginTransaction(); $db->exec('INSERT INTO pool.t VALUES (1)'); })), 'OpenTransactionError');
    $is('an open transaction', $pool->use($state), [0, $first]);
    $pool->use(static function ($db): void { $db->setAttribute(PDO::ATTR_DEFAULT_FETCH_MODE, PDO::FETCH_OBJ); $db->setAttribute(PDO::ATTR_ERRMODE, 0); });
    $is('attributes', $pool->use(static fn ($db) => [$db->getAttribute(PDO::ATTR_DEFAULT_FETCH_MODE), $db->getAttribute(PDO::ATTR_ERRMODE), $id($db)->fetchColumn()]), [PDO::FETCH_BOTH, 2, $first]);
    $look = static fn ($db) => $id($db)->fetchColumn();
    $ids = [$pool->use($look)];
    foreach ([1, 2] as $i) {
        // The same statements each time: those that change nothing are remembered, those that do are not.
        $pool->use(static fn ($db) => $db->exec('SET @y = 1'));
        $ids[] = $pool->use($look);
        $ids[] = $pool->use($look);
    }
    $is('statements seen before', [$ids[1] !== $ids[0], $ids[2] === $ids[1], $ids[3] !== $ids[2], $ids[4] === $ids[3]], [true, true, true, true]);
    $pool->use(static fn ($db) => $db->query('SELECT @x := 5'));
    $is('user variables', $pool->use(static fn ($db) => [$db->query('SELECT @x')->fetchColumn(), $id($db)->fetchColumn() === $first]), [null, false]);
    [$kept, $statement] = $pool->use(static function ($db): array { $s = $db->prepare('SELECT 1'); $s->execute(); return [$db, $s]; });
    $is('after the return', [$error(static fn () => $kept->query('SELECT 1')), $error(static fn () => $statement->execute()), $error(static fn () => $kept->beginTransaction())], ['MisuseError', 'MisuseError', 'MisuseError']);
    $one = $pool->get();
    $two = $pool->get();
    $one->exec('KILL ' . $id($two)->fetchColumn());
    $is('killed in use', $error(static fn () => $two->query('SELECT 1')), 'PDOException');
    $pool->put($two);
    $pool->put($one);
    $is('not kept', $pool->stats()['idle'], 1);
    $pool->use(static function ($db): void { $db->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false); $GLOBALS['rest'] = $db->query('SELECT 1 UNION SELECT 2'); $GLOBALS['rest']->fetch(); });
    $is('rows left over', $pool->use(static fn ($db) => $db->query('SELECT 7')->fetchColumn()), 7);
    $db = $pool->get();
    $is('in a child', timeout(60, static fn () => $db->query('SELECT 8')->fetchColumn()), 8);

    $pool = Pool::mysqli('127.0.0.1', 'tester', '', 'pool', $port, charset: 'latin1');
    $is('mysqli: told', $error(static fn () => $pool->use(static function ($db): void { $db->begin_transaction(); mysqli_query($db, 'INSERT INTO t VALUES (1)'); mysqli_query($db, 'SET @v = 3, sql_mode = ""'); mysqli_query($db, 'USE mysql'); })), 'OpenTransactionError');
    $is('mysqli', $pool->use(static fn ($db) => array_map(static fn ($sql) => $db->query("SELECT $sql")->fetch_row()[0], ['(SELECT COUNT(*) FROM pool.t)', '@v', 'DATABASE()', '@@character_set_client'])), ['0', null, 'pool', 'latin1']);
    $is('mysqli: one connection', $pool->stats()['opened'], 1);
    $kept = $pool->use(static fn ($db) => $db);
    $is('mysqli: after the return', $error(static fn () => $kept->query('SELECT 1')), 'MisuseError');
    $refused = Pool::mysqli('127.0.0.1', 'nobody', 'wrong', port: $port);
    $is('mysqli: refused', [$error(static fn () => $refused->get()), count($refused)], ['mysqli_sql_exception', 0]);
};

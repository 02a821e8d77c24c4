<?php
$db = new PDO('pgsql:host=127.0.0.1;dbname=postgres;port=__PORT__', 'tester', '', [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
meet('a');
$s = $db->prepare('SELECT ?::text, pg_sleep(0.05)');
$s->execute([$m]);
echo $s->fetchColumn();
$db->exec('CREATE TEMP TABLE t (m text)');
$db->pgsqlCopyFromArray('t', [$m, $m]);
$db->beginTransaction();
$db->exec("INSERT INTO t VALUES ('$m')");
meet('b');
$db->rollBack();
echo $db->query('SELECT COUNT(*) FROM t')->fetchColumn(), trim($db->pgsqlCopyToArray('t')[0]);
$db->exec("LISTEN c$m");
$t = Howdah\go(fn () => $db->pgsqlGetNotify(PDO::FETCH_NUM, 50000));
meet('c');
$other = new PDO('pgsql:host=127.0.0.1;dbname=postgres;port=__PORT__', 'tester', '');
$other->exec("NOTIFY c$m");
echo ' ', Howdah\await($t)[0];
try {
    new PDO('pgsql:host=127.0.0.1;port=1', 'tester', '');
} catch (PDOException $e) {
    echo ' ', $e->getCode();
}

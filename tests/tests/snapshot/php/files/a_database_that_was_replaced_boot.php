<?php
$db = new PDO('sqlite:' . __DIR__ . '/../data.sqlite');
$db->exec('PRAGMA busy_timeout=20000');
$db->exec('PRAGMA journal_mode=__JOURNAL__');
if ($db->query("SELECT name FROM sqlite_master WHERE name = 't'")->fetchAll() === []) {
    $db->exec('CREATE TABLE t (v TEXT)');
    $db->exec("INSERT INTO t VALUES ('boot')");
}
$db->query('SELECT * FROM t')->fetchAll();

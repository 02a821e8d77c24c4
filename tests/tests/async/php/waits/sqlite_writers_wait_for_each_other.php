<?php
$db = new PDO('sqlite:' . dirname(__DIR__) . '/marks/db');
$db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
$db->exec('PRAGMA busy_timeout = 50000; CREATE TABLE IF NOT EXISTS t (m TEXT)');
meet('a');
$db->exec('BEGIN IMMEDIATE');
$n = $db->query('SELECT COUNT(*) FROM t')->fetchColumn();
pause();
$db->exec("INSERT INTO t VALUES ('$m')");
$after = $db->query('SELECT COUNT(*) FROM t')->fetchColumn();
$db->exec('COMMIT');
meet('b');
echo $after - $n, ' ', $db->query('SELECT COUNT(*) FROM t')->fetchColumn(), $db->query("SELECT m FROM t WHERE m = '$m'")->fetchColumn();

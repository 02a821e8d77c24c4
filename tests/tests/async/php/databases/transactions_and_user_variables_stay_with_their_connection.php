<?php
$name = "d$m";
$db->exec("CREATE DATABASE $name; USE $name");
$db->exec('CREATE TABLE t (m VARCHAR(50)) ENGINE=InnoDB');
$db->exec("SET @mark = '$m'");
meet('a');
$db->beginTransaction();
$db->prepare('INSERT INTO t VALUES (?)')->execute([$m]);
meet('b');
$inside = $db->query('SELECT GROUP_CONCAT(m) FROM t')->fetchColumn();
$db->rollBack();
meet('c');
echo $inside, $db->query('SELECT @mark')->fetchColumn(), $db->query('SELECT COUNT(*) FROM t')->fetchColumn(), $db->inTransaction() ? 'open' : '';

<?php
$path = "/tmp/howdah-$id";
$write = new PDO("sqlite:$path");
$write->exec('CREATE TABLE t (n INT)');
$write->exec('INSERT INTO t VALUES (1), (2)');
$write = null;
$read = new PDO("sqlite:$path", null, null, [PDO::SQLITE_ATTR_OPEN_FLAGS => PDO::SQLITE_OPEN_READONLY]);
$rows = $read->query('SELECT n FROM t');
$rows->fetch();
unlink($path);

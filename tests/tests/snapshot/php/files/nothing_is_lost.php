<?php
define('DB', __DIR__ . '/../data.sqlite');
$db = __OPEN__;
$db->exec('PRAGMA busy_timeout=20000');
$db->exec('PRAGMA journal_mode=__JOURNAL__');
$db->exec('CREATE TABLE IF NOT EXISTS t (v TEXT)');
$db->exec("INSERT INTO t VALUES ('boot')");
$db->query('SELECT count(*) FROM t');

<?php
define('DB', __DIR__ . '/../data.sqlite');
$db = new PDO('sqlite:' . DB);
$db->exec('CREATE TABLE IF NOT EXISTS t (v TEXT)');
$db->exec('PRAGMA foreign_keys=1');

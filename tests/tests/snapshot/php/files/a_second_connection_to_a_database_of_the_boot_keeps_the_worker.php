<?php
define('DB', __DIR__ . '/../data.sqlite');
$db = new PDO('sqlite:' . DB);
$db->exec('PRAGMA journal_mode=WAL');
$db->exec('CREATE TABLE IF NOT EXISTS t (v TEXT)');

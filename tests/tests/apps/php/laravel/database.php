<?php
$db = new PDO('sqlite:' . $argv[1]);
$db->exec('CREATE TABLE sessions (id TEXT PRIMARY KEY, user_id INTEGER, ip_address TEXT, user_agent TEXT, payload TEXT, last_activity INTEGER)');
$db->exec('CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT, password TEXT, remember_token TEXT)');
$db->prepare('INSERT INTO users VALUES (7, ?, ?, NULL)')->execute(['a@shop.example', password_hash('right', PASSWORD_BCRYPT, ['cost' => 10])]);

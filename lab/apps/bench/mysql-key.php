<?php
$env = require __DIR__ . '/../environment.php';
$db = new mysqli('localhost', 'lab', 'lab', 'lab', 0, $env['mysql']);
$row = $db->query('SELECT id, name FROM item WHERE id = 4711')->fetch_assoc();
header('Content-Type: application/json');
echo json_encode(['id' => (int) $row['id'], 'name' => $row['name']]);

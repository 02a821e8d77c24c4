<?php
$env = require __DIR__ . '/../environment.php';
$db = new mysqli('localhost', 'lab', 'lab', 'lab', 0, $env['mysql']);
$rows = $db->query('SELECT id, name, price, stock FROM small_item ORDER BY id')->fetch_all(MYSQLI_ASSOC);
header('Content-Type: application/json');
echo json_encode($rows);

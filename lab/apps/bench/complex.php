<?php
$env = require __DIR__ . '/../environment.php';
$db = new mysqli('localhost', 'lab', 'lab', 'lab', 0, $env['mysql']);
$rows = [];
foreach ([1, 2, 3] as $id) {
    $rows[] = $db->query("SELECT id, name, price, stock FROM item WHERE id = $id")->fetch_assoc();
}
$redis = new Redis();
$redis->connect($env['redis']);
$redis->set('lab:rows', serialize($rows));
$cached = unserialize($redis->get('lab:rows'));
$sum = 0;
for ($i = 1; $i <= 100; $i++) {
    $sum += ($i * $i) % 7;
}
foreach ($cached as $row) {
    $sum += (int) $row['price'] * (int) $row['stock'];
}
header('Content-Type: application/json');
echo json_encode(['rows' => $rows, 'cached' => count($cached), 'sum' => $sum]);

<?php
usleep(2000);
global $db;
$row = $db->query('SELECT CONNECTION_ID(), @@time_zone, @tenant')->fetch(PDO::FETCH_NUM);
$db->exec("SET time_zone = '+01:00'");
$db->exec('SET @tenant = 8');
echo json_encode([$id, getmypid(), posix_getppid(), ...$row]);

<?php
usleep(2000);
global $db;
$statement = $db->prepare("SELECT pg_backend_pid(), extract(timezone from now())::int, current_setting('work_mem') WHERE 1 = ?");
$statement->execute([1]);
$row = $statement->fetch(PDO::FETCH_NUM);
$db->exec("SET TIME ZONE '+01:00'");
$db->exec("SET work_mem = '77MB'");
$db->beginTransaction();
echo json_encode([$id, getmypid(), posix_getppid(), $row[0], $db->pgsqlGetPid() === $row[0], (string) $row[1], $row[2]]);

<?php
usleep(2000);
global $db;
$row = pg_fetch_row(pg_query($db, "SELECT pg_backend_pid(), extract(timezone from now())::int, current_setting('work_mem')"));
pg_prepare($db, 'of_request', 'SELECT 1');
pg_query($db, "SET TIME ZONE '+01:00'");
pg_query($db, "SET work_mem = '77MB'");
pg_query($db, 'BEGIN');
pg_query($db, 'CREATE TEMPORARY TABLE of_request (n int)');
echo json_encode([$id, getmypid(), posix_getppid(), (int) $row[0], pg_get_pid($db) === (int) $row[0], $row[1], $row[2]]);

<?php
__CONNECT__;
meet('a');
$db = pg_connect($where);
$id = pg_fetch_result(pg_query($db, 'SELECT pg_backend_pid()'), 0);
Meeting::$arrived['ids'][] = $id;
meet('b');
echo count(array_unique(Meeting::$arrived['ids'])), pg_connect($where) === $db ? ' same ' : ' other ';
pg_query("SET search_path = '$m'");
meet('c');
echo trim(pg_fetch_result(pg_query('SHOW search_path'), 0), '"');
$kept = pg_pconnect($where);
pg_query($kept, "SET search_path = 'kept$m'");
meet('d');
echo trim(pg_fetch_result(pg_query($kept, 'SHOW search_path'), 0), '"');

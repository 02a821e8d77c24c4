<?php
$db = pg_connect('host=127.0.0.1 port=__PORT__ user=tester dbname=postgres sslmode=require');
pg_close($db);
$reopen = fn () => pg_connect('host=127.0.0.1 port=__PORT__ user=tester dbname=postgres sslmode=require');

<?php
Howdah\connect_each_worker(function () {
    $GLOBALS['db'] = null;
    $GLOBALS['db'] = pg_connect('host=127.0.0.1 port=__PORT__ user=tester dbname=postgres sslmode=disable', PGSQL_CONNECT_FORCE_NEW);
});
pg_query($db, "SET TIME ZONE '-05:00'");

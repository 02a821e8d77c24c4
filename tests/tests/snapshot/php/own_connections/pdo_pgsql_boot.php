<?php
Howdah\connect_each_worker(function () {
    $GLOBALS['db'] = null;
    $GLOBALS['db'] = new PDO('pgsql:host=127.0.0.1;port=__PORT__;dbname=postgres;user=tester;sslmode=disable');
});
$db->exec("SET TIME ZONE '-05:00'");

<?php
$open = function () {
    if (file_exists('broken.txt')) {
        throw new Exception('no way to the server');
    }
    $GLOBALS['db'] = null;
    $GLOBALS['db'] = new PDO('mysql:host=127.0.0.1;port=__PORT__;dbname=mysql', 'tester', '', [PDO::MYSQL_ATTR_INIT_COMMAND => "SET time_zone = '+05:00'"]);
};
Howdah\connect_each_worker($open);
$db->exec('SET @tenant = 7');

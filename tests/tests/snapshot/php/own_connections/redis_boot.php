<?php
Howdah\connect_each_worker(function () {
    $GLOBALS['db'] = null;
    $GLOBALS['db'] = new Redis();
    $GLOBALS['db']->connect('127.0.0.1', __PORT__);
    $GLOBALS['db']->rawCommand('CLIENT', 'SETNAME', 'shop');
});
$db->select(3);

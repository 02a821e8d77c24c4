<?php
$db = new Redis;
$db->__CONNECT__('127.0.0.1', __PORT__);
$db->select(2);
$db->set('k', 'boot');
$db->rawCommand('CLIENT', 'SETNAME', 'boot');

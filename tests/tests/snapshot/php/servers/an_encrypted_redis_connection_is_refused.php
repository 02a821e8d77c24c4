<?php
$db = new Redis;
$db->connect('tls://127.0.0.1', __PORT__, 60, null, 0, 0, ['stream' => ['verify_peer' => false, 'verify_peer_name' => false]]);
$db->ping();

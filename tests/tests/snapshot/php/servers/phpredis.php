<?php
try {
    $db->rawCommand('CLIENT', 'KILL', 'ID', $db->rawCommand('CLIENT', 'ID'), 'SKIPME', 'no');
} catch (RedisException) {}

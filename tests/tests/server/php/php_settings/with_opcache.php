<?php
usleep(20000);
$s = opcache_get_status();
echo json_encode([$s['opcache_enabled'] ?? false, isset($s['scripts'][__DIR__ . '/shared.php']),
    getmypid(), $s['opcache_statistics']['misses'] ?? -1]);

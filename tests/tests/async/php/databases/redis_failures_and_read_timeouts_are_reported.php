<?php
$r->setOption(Redis::OPT_READ_TIMEOUT, 0.3);
meet('a');
try {
    $r->blPop(['never'], 50);
    echo 'popped';
} catch (RedisException $e) {
    echo str_contains($e->getMessage(), 'read error') ? 'timed out' : $e->getMessage();
}
try {
    $bad = new Redis;
    $bad->connect('127.0.0.1', 1, 1);
    echo 'connected';
} catch (RedisException $e) {
    echo ' ', $e->getMessage();
}
echo ' ', $m;

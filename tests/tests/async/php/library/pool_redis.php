<?php
/* Pooled connections of phpredis. */
use Howdah\Pool;

return static function (callable $is, callable $error): void {
    $pool = Pool::redis('127.0.0.1', (int) $_GET['port'], database: 2, settings: [Redis::OPT_PREFIX => 'p:']);
    $left = static function (Redis $redis): void {
        $redis->set('a', '1');
        $redis->select(3);
        $redis->setOption(Redis::OPT_PREFIX, 'other:');
        $redis->watch('a');
        $redis->multi();
        $redis->set('b', '2');
    };
    $is('told', $error(static fn () => $pool->use($left)), 'OpenTransactionError');
    $is('reset', $pool->use(static fn (Redis $r) => [$r->getDbNum(), $r->getOption(Redis::OPT_PREFIX), $r->getMode(), $r->get('a'), $r->get('b')]), [2, 'p:', 0, '1', false]);
    foreach ([static fn ($r) => $r->select(3), static fn ($r) => $r->setOption(Redis::OPT_PREFIX, 'x:'), static fn ($r) => $r->multi(), static fn ($r) => $r->pipeline(), static fn ($r) => $r->watch('a')] as $i => $change) {
        // Each one alone must be detected.
        $told = $error(static fn () => $pool->use(static function (Redis $r) use ($change): void { $change($r); }));
        $is("told $i", $told, $i === 2 || $i === 3 ? 'OpenTransactionError' : 'none');
        $is("change $i", $pool->use(static fn (Redis $r) => [$r->getDbNum(), $r->getOption(Redis::OPT_PREFIX), $r->getMode(), $r->get('a')]), [2, 'p:', 0, '1']);
    }
    $pool->use(static fn (Redis $r) => $r->eval('return redis.error_reply("ours")'));
    $is('no error is left', $pool->use(static fn (Redis $r) => $r->getLastError()), null);
    $is('one connection', $pool->stats()['opened'], 1);
    $pool->use(static fn (Redis $r) => $r->close());
    $is('closed ones are not kept', $pool->use(static fn (Redis $r) => $r->get('a')), '1');
    $unreachable = Pool::redis('127.0.0.1', 1);
    $is('unreachable', [$error(static fn () => $unreachable->get()), count($unreachable)], ['RedisException', 0]);
};

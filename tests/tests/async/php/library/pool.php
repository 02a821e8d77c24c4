<?php
/* Pools of any objects: limits, waiting, returns of every kind. */
use Howdah\Pool;
use function Howdah\{all, delay, go, map, suspend};

return static function (callable $is, callable $error): void {
    $stats = static fn (Pool $pool, string ...$names): array => array_map(static fn ($n) => $pool->stats()[$n], $names);
    $made = 0;
    $closed = [];
    $pool = new Pool(
        static function () use (&$made): stdClass { $o = new stdClass(); $o->n = ++$made; delay(0.001); return $o; },
        max: 2,
        checkAfter: 0.01,
        check: static fn (stdClass $o) => !isset($o->dead),
        reset: static fn (stdClass $o) => !isset($o->broken),
        close: static function (stdClass $o) use (&$closed): void { $closed[] = $o->n; },
    );
    $a = $pool->get();
    $b = $pool->get();
    $is('none in time', [$error(static fn () => $pool->get(0.001)), ...$stats($pool, 'timeouts', 'open')], ['TimeoutException', 1, 2]);
    $next = go(static fn () => $pool->use(static fn (stdClass $o) => $o->n));
    suspend();
    $pool->put($a);
    $is('handed on', $next->await(), 1);
    $is('misuse', [$error(static fn () => $pool->put($a)), $error(static fn () => $pool->put(new stdClass()))], ['MisuseError', 'MisuseError']);
    $b->broken = true;
    $pool->put($b);
    $is('not to be reset', [$closed, count($pool)], [[2], 1]);
    $is('errors pass', [$error(static fn () => $pool->use(static fn () => throw new DomainException())), ...$stats($pool, 'idle', 'in_use')], ['DomainException', 1, 0]);
    $a = $pool->get();
    $a->dead = true;
    $pool->put($a);
    delay(0.02);
    $is('checked before use', $pool->use(static fn (stdClass $o) => $o->n), 3);
    go(static function () use ($pool): void { $pool->mine(); $pool->mine(); })->await();
    while ($pool->stats()['in_use'] + $pool->stats()['idle'] < 1) { suspend(); }
    $is('forgotten', $stats($pool, 'idle', 'in_use', 'forgotten'), [1, 0, 1]);
    $error(static fn () => go(static fn () => $pool->use(static function () { exit; }))->await());
    while ($pool->stats()['idle'] < 1) { suspend(); }
    $is('exit', $stats($pool, 'idle', 'in_use'), [1, 0]);
    $task = go(static fn () => $pool->use(static fn () => delay(60)));
    suspend();
    $task->cancel();
    $error(static fn () => $task->await());
    $is('cancelled', $stats($pool, 'idle', 'in_use'), [1, 0]);
    $count = new ArrayObject(['now' => 0, 'most' => 0]);
    map(range(1, 40), static fn () => $pool->use(static function () use ($count): void { $count['most'] = max($count['most'], ++$count['now']); delay(0.001); $count['now']--; }), 40);
    $is('never more than the limit', [$count['most'], count($pool)], [2, 2]);
    $unused = new Pool(static fn () => new stdClass(), max: 2, idleTimeout: 0.1);
    $a = $unused->get();
    $unused->use(static fn () => null);
    $unused->put($a);
    while (count($unused) > 0) { delay(0.01); }
    $is('unused ones are closed', $stats($unused, 'open', 'idle', 'closed'), [0, 0, 2]);
    $a = $pool->get();
    $b = $pool->get();
    $waiting = go(static fn () => $pool->get());
    suspend();
    $pool->close();
    $is('closed', [$error(static fn () => $waiting->await()), $error(static fn () => $pool->get())], ['PoolClosedException', 'PoolClosedException']);
    $pool->put($a);
    $pool->put($b);
    $is('closed at return', count($pool), 0);

    // Returning this one requires no reset, so it takes the fast path.
    $alive = $opened = 0;
    $plain = new Pool(static function () use (&$opened): stdClass { $o = new stdClass(); $o->n = ++$opened; return $o; },
        max: 2, checkAfter: 3600, check: static function () use (&$alive): void { $alive++; });
    $n = static fn (stdClass $o) => $o->n;
    $a = $plain->get();
    $b = $plain->get();
    $second = go(static fn () => $plain->use($n));
    $third = go(static fn () => $plain->use($n));
    suspend();
    $is('both wait', $stats($plain, 'waiting', 'in_use', 'idle'), [2, 2, 0]);
    $plain->put($b);
    $is('served in order', [$second->await(), $third->await()], [2, 2]);
    $plain->put($a);
    $is('the one used last first', $plain->use($n), 1);
    $is('returned twice', $error(static fn () => $plain->put($a)), 'MisuseError');
    go(static function () use ($plain): void { $plain->mine(); })->await();
    while ($plain->stats()['idle'] < 2) { suspend(); }
    $error(static fn () => go(static fn () => $plain->use(static function () { exit; }))->await());
    while ($plain->stats()['idle'] < 2) { suspend(); }
    $is('forgotten and exit', $stats($plain, 'in_use', 'idle', 'forgotten', 'opened'), [0, 2, 2, 2]);
    $is('no check without need', $alive, 0);
    $error(static fn () => $plain->use(static fn () => throw new DomainException()));
    $is('doubtful ones are checked', $alive, 1);
    $short = new Pool(static fn () => new stdClass(), lifetime: 0.01);
    $short->use(static fn () => delay(0.02));
    $is('too old ones are closed', $stats($short, 'closed', 'open'), [1, 0]);

    $tries = 0;
    $flaky = new Pool(static function () use (&$tries): stdClass { delay(0.001); return $tries++ === 0 ? throw new DomainException() : new stdClass(); }, max: 1);
    $is('the place of one that failed', all([static fn () => $error(static fn () => $flaky->use(static fn () => 1)), static fn () => $flaky->use(static fn () => 2)]), ['DomainException', 2]);
};

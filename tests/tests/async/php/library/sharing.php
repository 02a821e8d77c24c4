<?php
/* Channel, WaitGroup, Mutex, Semaphore, Scope, Context, Timer. */
use Howdah\{Channel, Context, Mutex, Scope, Semaphore, Timer, WaitGroup};
use function Howdah\{all, await, delay, go, suspend, timeout};

return static function (callable $is, callable $error): void {
    $channel = new Channel();
    go(static function () use ($channel): void {
        foreach ([1, 2, 3] as $i) { $channel->send($i); }
        $channel->close();
    });
    $is('channel', iterator_to_array($channel), [1, 2, 3]);
    $is('channel: closed', [$error(static fn () => $channel->receive()), $error(static fn () => $channel->send(1))], ['ChannelClosedException', 'ChannelClosedException']);
    $channel = new Channel(2);
    $is('channel: full', [$channel->trySend(1), $channel->trySend(2), $channel->trySend(3), count($channel)], [true, true, false, 2]);
    $is('channel: no room in time', $error(static fn () => $channel->send(3, 0.001)), 'TimeoutException');
    go(static fn () => $channel->send(3));
    go(static fn () => $channel->send(4));
    suspend();
    $is('channel: in order', [$channel->receive(), $channel->receive(), $channel->receive(), $channel->receive()], [1, 2, 3, 4]);
    $is('channel: nothing in time', [$error(static fn () => $channel->receive(0.001)), $channel->tryReceive($value)], ['TimeoutException', false]);
    $got = null;
    $receiver = go(static function () use ($channel, &$got): void { $got = $channel->receive(); delay(60); });
    suspend();
    $channel->send('kept');
    $receiver->cancel();
    $is('channel: served and cancelled', [$error(static fn () => $receiver->await()), $got], ['CancelledException', 'kept']);
    $first = go(static fn () => $channel->receive());
    $second = go(static fn () => $channel->receive());
    suspend();
    $first->cancel();
    suspend();
    $channel->send('next');
    $is('channel: one that gave up is left out', $second->await(), 'next');
    $sender = go(static function (): void { $full = new Channel(); go(static function () use ($full) { $full->close(); }); $full->send('x'); });
    $is('channel: closed while sending', $error(static fn () => $sender->await()), 'ChannelClosedException');

    $group = new WaitGroup();
    $done = 0;
    for ($i = 0; $i < 5; $i++) { $group->go(static function () use (&$done): void { delay(0.001); $done++; }); }
    $group->wait();
    $is('wait group', [$done, $error(static fn () => $group->done())], [5, 'MisuseError']);
    $group->add();
    $is('wait group: too late', $error(static fn () => $group->wait(0.001)), 'TimeoutException');

    $mutex = new Mutex();
    $text = '';
    $use = static fn (string $n): Closure => static fn () => $mutex->synchronized(static function () use ($n): void { $GLOBALS['text'] .= "$n("; delay(0.001); $GLOBALS['text'] .= "$n)"; });
    $GLOBALS['text'] = '';
    all([$use('a'), $use('b'), $use('c')]);
    $is('mutex', $GLOBALS['text'], 'a(a)b(b)c(c)');
    $mutex->lock();
    $is('mutex: misuse', [$error(static fn () => $mutex->lock()), $error(static fn () => await(go(static fn () => $mutex->unlock())))], ['MisuseError', 'MisuseError']);
    $is('mutex: too late', $error(static fn () => await(go(static fn () => $mutex->lock(0.001)))), 'TimeoutException');
    $mutex->unlock();
    $is('mutex: not locked', $error(static fn () => $mutex->unlock()), 'MisuseError');
    await(go(static fn () => $mutex->lock()));
    $is('mutex: comes back with its coroutine', [$mutex->isLocked(), $mutex->tryLock()], [false, true]);
    $next = go(static function () use ($mutex) { $mutex->lock(); return 'got'; });
    suspend();
    $mutex->unlock();
    $is('mutex: passed on', $next->await(), 'got');
    $is('mutex: comes back after exit', [$error(static fn () => await(go(static function () use ($mutex) { $mutex->lock(); exit; }))), $mutex->isLocked()], ['TaskExitedException', false]);

    $semaphore = new Semaphore(2);
    $counts = new ArrayObject(['now' => 0, 'most' => 0]);
    $one = static fn () => $semaphore->use(static function () use ($counts): void { $counts['most'] = max($counts['most'], ++$counts['now']); delay(0.001); $counts['now']--; });
    all(array_fill(0, 9, $one));
    $is('semaphore', [$counts['most'], $semaphore->available(), $error(static fn () => $semaphore->release())], [2, 2, 'MisuseError']);
    $error(static fn () => await(go(static fn () => $semaphore->use(static function () { exit; }))));
    $is('semaphore: permit comes back after exit', $semaphore->available(), 2);

    $kept = new stdClass();
    $is('scope', Scope::run(static function (Scope $s) use ($kept) { $kept->task = $s->go(static fn () => delay(0.001)); return 7; }), 7);
    $is('scope: waits', $kept->task->isDone(), true);
    $failing = static function (Scope $s) use ($kept): void { $kept->task = $s->go(static fn () => delay(60)); $s->go(static fn () => throw new DomainException()); };
    $is('scope: error', [$error(static fn () => Scope::run($failing)), $kept->task->isDone()], ['DomainException', true]);
    $is('scope: too late', $error(static fn () => Scope::run(static fn (Scope $s) => $s->go(static fn () => delay(60)), timeout: 0.001)), 'TimeoutException');
    $scope = new Scope(2);
    $counts['most'] = 0;
    for ($i = 0; $i < 6; $i++) { $scope->go(static function () use ($counts, $i) { $counts['most'] = max($counts['most'], ++$counts['now']); delay(0.001); $counts['now']--; return $i; }); }
    $is('scope: limit', [$scope->wait(), $counts['most']], [[0, 1, 2, 3, 4, 5], 2]);
    $scope->go(static function () use ($kept): void { timeout(60, static function () use ($kept) { $kept->task = go(static fn () => delay(0.01)); }); });
    $scope->wait();
    $is('scope: what its tasks started', $kept->task->isDone(), true);
    $task = $scope->go(static fn () => delay(60));
    suspend();
    unset($scope);
    $is('scope: left', $error(static fn () => $task->await()), 'CancelledException');

    $key = new stdClass();
    Context::set('a', 1);
    Context::set($key, 'object');
    $child = await(go(static function () use ($key): array { $seen = [Context::get('a'), Context::get($key)]; Context::set('a', 2); Context::request()['b'] = 3; return $seen; }));
    $is('context', [$child, Context::get('a'), Context::get('c', 'none'), Context::has('a'), Context::request()['b']], [[1, 'object'], 1, 'none', true, 3]);

    $ticks = $once = 0;
    $timer = Timer::every(1, static function () use (&$ticks, &$timer): void { if (++$ticks === 3) { $timer->cancel(); } });
    Timer::after(1, static function (int $n) use (&$once): void { $once += $n; }, 4);
    $never = Timer::after(5, static function () use (&$once): void { $once = -1; });
    $never->cancel();
    while ($timer->isActive() || $once === 0) { delay(0.001); }
    delay(0.01);
    $is('timer', [$ticks, $once], [3, 4]);
};

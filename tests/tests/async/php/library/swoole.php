<?php
/* The package howdah/swoole-compat. */
use Swoole\{Coroutine, Timer};
use Swoole\Coroutine\{Barrier, Channel, Scheduler, System};
use function Swoole\Coroutine\{batch, map, parallel, run};

return static function (callable $is, callable $error): void {
    $package = $_GET['package'];
    spl_autoload_register(static function (string $class) use ($package): void {
        foreach (['Howdah\SwooleCompat\\' => 'support', 'Swoole\\' => 'src'] as $prefix => $directory) {
            $file = "$package/$directory/" . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
            if (str_starts_with($class, $prefix) && is_file($file)) { require $file; }
        }
    });
    require "$package/functions.php";

    Co::set(['hook_flags' => SWOOLE_HOOK_ALL]);
    $is('runtime', Swoole\Runtime::enableCoroutine(), true);
    $order = [];
    $id = go(static function (string $mark) use (&$order): void {
        $order[] = $mark;
        defer(static function () use (&$order): void { $order[] = 'deferred'; });
        Co::sleep(0.001);
        $order[] = 'end';
    }, 'begin');
    $order[] = 'creator';
    $is('runs at once', [$order, Co::exists($id)], [['begin', 'creator'], true]);
    $is('join', [Coroutine::join([$id]), $order, Co::exists($id)], [true, ['begin', 'creator', 'end', 'deferred'], false]);

    $channel = new Channel(2);
    go(static function () use ($channel): void { foreach ([1, 2, 3, 4] as $i) { $channel->push($i); } $channel->close(); });
    $got = [];
    while (($value = $channel->pop()) !== false) { $got[] = $value; }
    $is('channel', [$got, $channel->errCode], [[1, 2, 3, 4], SWOOLE_CHANNEL_CLOSED]);
    $channel = new chan();
    $is('channel: timeout', [$channel->pop(0.001), $channel->errCode], [false, SWOOLE_CHANNEL_TIMEOUT]);
    $seen = null;
    $id = go(static function () use ($channel, &$seen): void { $seen = [$channel->pop(), $channel->errCode]; });
    Co::cancel($id);
    Co::join([$id]);
    $is('channel: cancelled', $seen, [false, SWOOLE_CHANNEL_CANCELED]);

    $group = new Co\WaitGroup();
    $count = 0;
    for ($i = 0; $i < 3; $i++) { $group->add(); go(static function () use ($group, &$count): void { Co::sleep(0.001); $count++; $group->done(); }); }
    $is('wait group', [$group->wait(), $count, $error(static fn () => $group->done())], [true, 3, 'BadMethodCallException']);
    $order = [];
    $id = go(static function () use (&$order): void { $order[] = 1; Co::yield(); $order[] = 3; });
    $order[] = 2;
    $is('resume', [Co::resume($id), Co::resume($id), Co::join([$id]), $order], [true, false, true, [1, 2, 3]]);
    Co::getContext()->user = 'u';
    $is('context', [Co::getContext()['user'], Coroutine::getContext(Co::getCid()) === Co::getContext()], ['u', true]);
    $late = new Channel();
    $is('batch', batch(['a' => static fn () => 1, 'b' => static fn () => $late->pop()], 0.01), ['a' => 1, 'b' => null]);
    $late->push('too late');
    parallel(3, static function () use (&$count): void { $count++; });
    $is('parallel, map', [$count, map([1, 2], static fn ($x) => $x * 2)], [6, [2, 4]]);
    run(static function () use (&$count): void { go(static function () use (&$count): void { Co::sleep(0.001); $count = 9; }); });
    $is('run', $count, 9);
    $scheduler = new Scheduler();
    $scheduler->add(static function (int $n) use (&$count): void { $count = $n; }, 7);
    $is('scheduler', [$scheduler->start(), $count], [true, 7]);
    $barrier = Barrier::make();
    for ($i = 0; $i < 3; $i++) { go(static function () use ($barrier, &$count): void { Co::sleep(0.001); $count++; }); }
    Barrier::wait($barrier);
    $is('barrier', $count, 10);
    $ticks = 0;
    $id = Timer::tick(1, static function (int $id, string $mark) use (&$ticks): void { if ($mark === 'x' && ++$ticks === 3) { Timer::clear($id); } }, 'x');
    while (Timer::exists($id)) { Co::sleep(0.001); }
    $is('timer', [$ticks, Timer::clear($id)], [3, false]);
    $is('exec', System::exec('echo hi; exit 3'), ['code' => 3, 'signal' => 0, 'output' => "hi\n"]);
};

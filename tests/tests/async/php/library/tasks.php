<?php
/* go(), await(), cancellation, the functions that wait for several tasks. */
use Howdah\{CompositeException, Task};
use function Howdah\{all, any, await, current, defer, delay, go, in_coroutine, map, protect, race, suspend, timeout};

return static function (callable $is, callable $error): void {
    $order = [];
    $task = go(static function (int $n) use (&$order): int {
        $order[] = 'task';
        delay(0.001);
        $order[] = 'later';
        return $n * 2;
    }, 21);
    $order[] = 'request';
    $is('result', await($task), 42);
    $is('begins when the current one waits', $order, ['request', 'task', 'later']);
    $is('result again', $task->await(), 42);
    $is('state', [$task->isDone(), $task->isCancelled(), $task->backtrace(), in_coroutine(), current()], [true, false, [], true, null]);
    $is('current', await(go(static fn () => current() instanceof Task)), true);
    $is('error', $error(static fn () => await(go(static fn () => throw new DomainException()))), 'DomainException');
    $is('waits for itself', $error(static fn () => await(go(static fn () => current()->await()))), 'MisuseError');

    $task = go(static fn () => delay(60));
    $is('timeout of await', $error(static fn () => await($task, 0.001)), 'TimeoutException');
    $is('goes on', $task->isDone(), false);
    $is('stands in delay()', in_array('Howdah\delay', array_column($task->backtrace(), 'function'), true), true);
    $task->cancel('enough');
    $is('cancelled', [$error(static fn () => $task->await()), $task->isCancelled()], ['CancelledException', true]);
    $ran = false;
    $task = go(static function () use (&$ran): void { $ran = true; });
    $task->cancel();
    $is('cancelled before it began', [$error(static fn () => $task->await()), $ran], ['CancelledException', false]);
    $task = go(static function (): array {
        $waits = 0;
        for ($i = 0; $i < 3; $i++) {
            try { delay(60); } catch (Howdah\CancelledException) { $waits++; }
        }
        return [$waits, protect(static function () { delay(0.001); return 'protected'; })];
    });
    suspend();
    $task->cancel();
    $is('every wait of a cancelled task fails', $task->await(), [3, 'protected']);
    $slept = null;
    $task = go(static function () use (&$slept): void { $slept = usleep(60_000_000); });
    suspend();
    $task->cancel();
    $is('a cancelled call of PHP ends', [$error(static fn () => $task->await()), $task->isDone()], ['CancelledException', true]);

    $is('all', all(['x' => static function () { delay(0.001); return 1; }, 'y' => go(static fn () => 2)]), ['x' => 1, 'y' => 2]);
    $is('all of nothing', all([]), []);
    $is('all of something else', $error(static fn () => all([3])), 'TypeError');
    $cleaned = [];
    $slow = go(static function () use (&$cleaned): void {
        try {
            delay(60);
        } finally {
            $cleaned[] = 1;
            protect(static fn () => delay(0.001));
            $cleaned[] = 2;
        }
    });
    $is('all: first error', $error(static fn () => all([$slow, static function () { delay(0.001); throw new DomainException(); }])), 'DomainException');
    $is('all: the rest has ended', [$slow->isDone(), $cleaned], [true, [1, 2]]);
    $is('all: too late', $error(static fn () => all([static fn () => delay(60)], 0.001)), 'TimeoutException');
    $is('any', any([static fn () => throw new Exception(), static function () { delay(0.001); return 'ok'; }, static fn () => delay(60)]), 'ok');
    try {
        any(['p' => static fn () => throw new Exception('p1'), 'q' => static fn () => throw new Exception('q1')]);
    } catch (CompositeException $failed) {
        $is('any: all fail', array_map(static fn ($e) => $e->getMessage(), $failed->getErrors()), ['p' => 'p1', 'q' => 'q1']);
    }
    $is('race', $error(static fn () => race([static fn () => throw new DomainException(), static fn () => delay(60)])), 'DomainException');
    $is('of nothing', [$error(static fn () => any([])), $error(static fn () => race([]))], ['ValueError', 'ValueError']);

    $now = $most = 0;
    $items = (static function () { for ($i = 0; $i < 50; $i++) { yield "k$i" => $i; } })();
    $results = map($items, static function (int $i, string $key) use (&$now, &$most): string {
        $most = max($most, ++$now);
        delay((50 - $i) / 10000);
        $now--;
        return "$key:$i";
    }, 7);
    $is('map', [count($results), array_key_first($results), $results['k49'], $most], [50, 'k0', 'k49:49', 7]);
    $is('map: error', $error(static fn () => map(range(1, 20), static fn ($i) => $i === 5 ? throw new DomainException() : delay(0.001), 3)), 'DomainException');

    $order = [];
    await(go(static function () use (&$order): void {
        defer(static function () use (&$order): void { $order[] = 'first'; });
        defer(static function () use (&$order): void { delay(0.001); $order[] = 'second'; });
        $order[] = 'body';
    }));
    $is('defer', $order, ['body', 'second', 'first']);
    $is('defer: error', $error(static fn () => await(go(static function () { defer(static fn () => throw new DomainException()); }))), 'DomainException');
    $order = [];
    $task = go(static function () use (&$order): void {
        defer(static function () use (&$order): void { delay(0.001); $order[] = 'deferred'; });
        exit;
    });
    $is('exit', $error(static fn () => $task->await()), 'TaskExitedException');
    while ($order === []) { suspend(); }
    $is('defer after exit', $order, ['deferred']);
    $is('exit among several', $error(static fn () => all([static function () { exit; }, static fn () => delay(60)])), 'TaskExitedException');

    $is('timeout: in time', timeout(60, static fn () => 5), 5);
    $kept = new stdClass();
    $late = static fn () => timeout(0.001, static function () use ($kept): void { $kept->child = go(static fn () => delay(60)); delay(60); });
    $is('timeout: too late', [$error($late), $kept->child->isDone()], ['TimeoutException', true]);
    $is('timeout: errors pass', $error(static fn () => timeout(60, static fn () => throw new DomainException())), 'DomainException');
    $order = [];
    $turns = static function (string $name) use (&$order): Closure {
        return static function () use ($name, &$order): void { foreach ([1, 2, 3] as $i) { $order[] = "$name$i"; suspend(); } };
    };
    all([$turns('a'), $turns('b')]);
    $is('suspend', $order, ['a1', 'b1', 'a2', 'b2', 'a3', 'b3']);
};

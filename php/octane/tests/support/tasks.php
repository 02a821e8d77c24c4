<?php

// Routes for with-octane-tasks.php. Each closure has its own line, which distinguishes them in serialized form.

use Illuminate\Support\Facades\Cache;
use Illuminate\Support\Facades\Route;
use Laravel\Octane\Exceptions\TaskException;
use Laravel\Octane\Exceptions\TaskTimeoutException;
use Laravel\Octane\Facades\Octane;

$wait = static function (string $file): bool {
    for ($end = microtime(true) + 20; !is_file($file) && microtime(true) < $end; usleep(10000)) {
        clearstatcache();
    }

    return is_file($file);
};
$told = static function (callable $tasks): array {
    try {
        return ['result' => $tasks()];
    } catch (TaskException $failed) {
        return [get_class($failed), $failed->getClass(), $failed->getMessage(), $failed->getCode()];
    } catch (TaskTimeoutException $late) {
        return [get_class($late), $late->getMessage()];
    } catch (Throwable $other) {
        return [get_class($other)];
    }
};
$one = static fn (callable $task, int $milliseconds = 20000): array => $told(static fn () => Octane::concurrently([$task], $milliseconds));

// The first waits for the second and ends after it, so the order of the keys differs from the order in which they end.
Route::get('/tasks/meet', function () use ($wait) {
    [$a, $b] = [storage_path('a.' . request('n')), storage_path('b.' . request('n'))];
    $tasks = [
        'late' => function () use ($a, $b, $wait) {
            touch($a);
            return [$wait($b), getmypid()];
        },
        'early' => function () use ($a, $b, $wait) {
            return [$wait($a) && touch($b), getmypid()];
        },
        7 => static fn () => [env('OWN'), getmypid()],
    ];
    return ['of' => getmypid(), 'results' => array_map(null, array_keys($r = Octane::concurrently($tasks, 30000)), array_values($r))];
});
Route::get('/tasks/values', fn () => $told(fn () => Octane::concurrently([
    'none' => fn () => null,
    'false' => fn () => false,
    'object' => fn () => new ArrayObject([1, 2]),
    'long' => fn () => strlen(str_repeat('x', 300000)),
    'given' => 'phpversion',
], 20000)));
Route::get('/tasks/many', fn () => array_sum(Octane::concurrently(array_map(
    function (int $n) {
        return fn () => $n;
    },
    range(1, 30),
), 30000)));
Route::get('/tasks/large', fn () => strlen(Octane::concurrently([
    (function (string $text) {
        return fn () => $text . $text;
    })(random_bytes(1 << 20)),
], 20000)[0]));
Route::get('/tasks/too-large', function () use ($one) {
    $text = str_repeat('x', 17 << 20);
    return $one(fn () => strlen($text));
});
Route::get('/tasks/throws', fn () => $one(
    fn () => throw new DomainException('on purpose', 7)
));
Route::get('/tasks/unwritable', fn () => $one(
    function () {
        return static fn () => 1;
    }
));
Route::get('/tasks/timeout', fn () => $one(
    fn () => $wait(storage_path('never-before-' . request('n'))),
    300,
));
Route::get('/tasks/dies', fn () => $one(
    fn () => posix_kill(getmypid(), SIGKILL)
));
Route::get('/tasks/exits', fn () => $one(
    function () { exit('in the middle'); }
));
Route::get('/tasks/fatal', fn () => $one(
    fn () => str_repeat('x', PHP_INT_MAX - 100)
));
Route::get('/tasks/pid', fn () => $one(
    fn () => getmypid()
));
Route::get('/tasks/nested', fn () => $one(
    fn () => [getmypid(), ...Octane::concurrently([
        fn () => getmypid(),
    ])]
));
Route::get('/tasks/state', fn () => $one(
    function () {
        config(['app.name' => config('app.name') . '+']);
        return config('app.name');
    }
));
Route::get('/tasks/dispatch', function () use ($wait) {
    [$go, $done] = [storage_path('go.' . request('n')), storage_path('done.' . request('n'))];
    Octane::tasks()->dispatch([
        fn () => $wait($go) && file_put_contents($done, 'x'),
    ]);
    return 'dispatched';
});
Route::get('/cache', function () {
    Cache::store('octane')->put('of a request', $value = bin2hex(random_bytes(4)), 60);
    return [$value, ...Octane::concurrently([
        fn () => Cache::store('octane')->get('of a request'),
    ], 20000), Cache::store('octane')->get('of nobody')];
});
Route::get('/cached', fn () => [Cache::store('octane')->get('of a request'), Cache::store('octane')->get('refreshed')]);

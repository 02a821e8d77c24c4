<?php

// Concurrent tasks and ticks with Octane itself, in a served project (support/Project.php, support/tasks.php). Skipped if
// that is missing.

declare(strict_types=1);

require __DIR__ . '/support/Project.php';
require __DIR__ . '/../src/Tasks/Seal.php';
require __DIR__ . '/../src/Tasks/Order.php';

use Howdah\Octane\Tasks\Order;
use Howdah\Octane\Tasks\Seal;

$project = Project::ofEnvironment();
if ($project === null) {
    exit(0);
}
$project->write('routes/tasks.php', (string) file_get_contents(__DIR__ . '/support/tasks.php'));
$project->addRoutes("require __DIR__ . '/tasks.php';\n");
$project->write('config/cache.php', str_replace("'stores' => [", "'stores' => ['octane' => ['driver' => 'octane'], ", $project->read('config/cache.php')));
$project->write('app/Ticks.php', <<<'PHP'
    <?php
    namespace App;

    use Illuminate\Support\Facades\Cache;
    use Laravel\Octane\Facades\Octane;

    final class Ticks extends \Illuminate\Support\ServiceProvider
    {
        public function boot(): void
        {
            $note = fn (string $text) => file_put_contents(storage_path('ticks'), $text . ' ' . getmypid() . "\n", FILE_APPEND);
            Octane::tick('each', fn () => $note('each'));
            Octane::tick('rare', fn () => $note('rare'), 3600);
            Octane::tick('later', fn () => $note('later'), 3600, false);
            Octane::tick('slow', function () use ($note) {
                if (is_file(storage_path('slow'))) {
                    $note('begins');
                    usleep(1500000);
                    $note('ends');
                }
                if (@unlink(storage_path('dies'))) {
                    posix_kill(getmypid(), SIGKILL);
                }
            });
            Octane::tick('broken', fn () => is_file(storage_path('breaks')) && throw new \RuntimeException('a tick broken on purpose'));
            config('octane.cache') && Cache::store('octane')->interval('refreshed', function () {
                return 'by ' . getmypid() . ' at ' . microtime(true);
            }, seconds: 1);
        }
    }
    PHP);
$project->write('config/app.php', str_replace('HowdahServiceProvider::class', 'HowdahServiceProvider::class, App\Ticks::class', $project->read('config/app.php')));

$number = 0;
$ask = static function (string $path) use ($project, &$number): mixed {
    [$status, $text] = $project->get("$path?n=" . ++$number);

    return json_decode($text, true) ?? "$status $text";
};
$check = $project->check(...);
$exception = static fn (string $class, string $why, int $code = 0): array => ['Laravel\Octane\Exceptions\TaskException', $class, $why, $code];
/** @return array{int, string} response of the tasks' socket to this body */
$send = static function (string $directory, string $body, ?string $length = null): array {
    $stream = stream_socket_client("unix://$directory/tasks.sock");
    fwrite($stream, 'POST ' . Order::PATH . " HTTP/1.0\r\nHost: a\r\nContent-Length: " . ($length ?? strlen($body)) . "\r\n\r\n$body");
    $text = (string) stream_get_contents($stream);

    return [(int) substr($text, 9, 3), explode("\r\n\r\n", $text, 2)[1] ?? ''];
};
$count = static fn (string $what): int => preg_match_all("/^$what \\d+$/m", $project->read('storage/ticks'));

foreach (['worker', 'snapshot'] as $mode) {
    array_map('unlink', array_filter(glob("$project->top/storage/*") ?: [], 'is_file'));
    touch("$project->top/storage/data.sqlite");
    $project->start("--mode=$mode", '--workers=1', '--task-workers=3');
    $directory = json_decode($project->read('storage/logs/octane-server-state.json'), true)['state']['tasks'];
    $check([fileperms($directory) & 0777, fileperms("$directory/key") & 0777], [0700, 0600], 'only for this user');

    // Results: from other processes, concurrently, in the order of the keys.
    $met = $ask('/tasks/meet');
    $check(array_column($met['results'] ?? [], 0), ['late', 'early', 7], 'keys: ' . json_encode($met));
    $check(array_column(array_column($met['results'], 1), 0), [true, true, 'setting'], 'two that wait for each other');
    $processes = array_column(array_column($met['results'], 1), 1);
    $check(count(array_unique([$met['of'], ...array_slice($processes, 0, 2)])), 3, 'each in a process of its own');
    $values = ['none' => null, 'false' => false, 'object' => ['0' => 1, '1' => 2], 'long' => 300000, 'given' => PHP_VERSION];
    $check($ask('/tasks/values')['result'], $values, 'values');
    $check($ask('/tasks/many'), 465, 'more tasks than workers');
    $check($ask('/tasks/large'), 2 << 20, 'a large one');
    $check([$ask('/tasks/state'), $ask('/tasks/state')], array_fill(0, 2, ['result' => ['From the environment+']]), 'a task finds nothing of others');
    $nested = $ask('/tasks/nested')['result'][0];
    $check($nested[0] === $nested[1], true, 'a task of a task runs in it');

    // A failure becomes one of Octane's exceptions, and the next task finds a worker.
    $pid = static fn (): bool => is_int($ask('/tasks/pid')['result'][0] ?? null);
    $check($ask('/tasks/throws'), $exception('DomainException', 'on purpose', 7), 'an exception');
    $check($ask('/tasks/unwritable'), $exception('Exception', "Serialization of 'Closure' is not allowed"), 'a result that cannot be written');
    $gone = static fn (string $why): array => $exception('RuntimeException', "The task has no result: $why.");
    $check($ask('/tasks/dies'), $gone('its worker ended during the task'), 'a worker that dies');
    $check($pid(), true, 'the next one');
    $check($ask('/tasks/exits'), $gone('its script ended during the task'), 'a task that ends its script');
    $check($ask('/tasks/fatal'), $gone('its worker failed during the task'), 'a fatal error');
    $check($ask('/tasks/timeout'), ['Laravel\Octane\Exceptions\TaskTimeoutException', 'Task timed out after 300 milliseconds.'], 'a deadline');
    touch("$project->top/storage/never-before-$number");
    $check($ask('/tasks/too-large'), ['LengthException'], 'a task that is too large');
    $check($pid(), true, 'after all that');

    // Neither the caller nor the client waits for dispatched tasks.
    $check($ask('/tasks/dispatch'), '200 dispatched', 'dispatch()');
    touch("$project->top/storage/go.$number");
    $project->until(static fn () => $project->read("storage/done.$number") === 'x', 'what was dispatched has not run');

    // Only data written by this server is accepted, and only at its socket.
    $seal = new Seal($project->read(substr("$directory/key", strlen("$project->top/"))));
    $mark = "$project->top/storage/forged";
    $task = serialize('phpinfo');
    $late = hrtime(true) + 60_000_000_000;
    $good = (new Order('resolve', $late, serialize('phpversion')))->sealed($seal);
    [$status, $answer] = $send($directory, $good);
    $result = unserialize((string) $seal->open(Order::purposeOfResult($good), $answer), ['allowed_classes' => false]);
    $check([$status, str_contains(serialize($result), PHP_VERSION)], [200, true], 'a signed one');
    $check($seal->open(Order::purposeOfResult((new Order('resolve', $late))->sealed($seal)), $answer), null, 'a result is that of its own task');
    $refused = [
        'unsigned' => "resolve\n$late\n$task",
        'signed with zeros' => str_repeat('0', 64) . "resolve\n$late\n$task",
        "of another server's key" => (new Order('resolve', $late, $task))->sealed(new Seal(random_bytes(32))),
        'with the key of the application' => (new Order('resolve', $late, $task))->sealed(new Seal(str_repeat('k', 32))),
        'changed' => substr($good, 0, -3) . 'x";',
        'another time' => str_replace("\n$late\n", "\n" . ($late + 1) . "\n", $good),
        'signed for another purpose' => $seal->put('result', "resolve\n$late\n$task"),
        'empty' => '',
        'shorter than a signature' => substr($good, 0, 40),
    ];
    foreach ($refused as $what => $body) {
        $check($send($directory, $body), [403, ''], $what);
    }
    $check($send($directory, (new Order('resolve', hrtime(true) - 1, $task))->sealed($seal)), [408, ''], 'one whose caller no longer waits');
    $check($send($directory, 'x', (string) (Order::LIMIT + 1))[0], 413, 'too large');
    $check($project->get(Order::PATH, form: ['a' => $good])[0], 404, 'from an address');

    // All workers share Octane's cache, and it survives requests.
    [$put, $seen, $none] = $ask('/cache');
    $check([$seen === $put, $none, $ask('/cached')[0] === $put], [true, null, true], 'the cache store');

    // Ticks: each second, one at a time, surviving reloads and dead workers; a longer interval applies to the server, not to
    // a process.
    $project->until(static fn () => $count('each') >= 2 && $count('rare') === 1, 'no ticks');
    $refreshed = $ask('/cached')[1];
    $project->until(static fn () => str_starts_with((string) $refreshed, 'by ') && $ask('/cached')[1] !== $refreshed, 'an interval cache is not refreshed');
    touch("$project->top/storage/slow");
    $project->until(static fn () => $count('begins') >= 1, 'a slow tick');
    $check($project->artisan('octane:reload')[0], 0, 'a reload within a tick');
    $seen = $count('ends');
    $project->until(static fn () => $count('ends') >= $seen + 2, 'ticks after a reload');
    touch("$project->top/storage/breaks");
    touch("$project->top/storage/dies");
    $project->until(static fn () => glob("$project->top/storage/dies") === [], 'a tick that dies');
    $seen = $count('each');
    $project->until(static fn () => $count('each') >= $seen + 2, 'ticks after a death');
    $project->until(static fn () => str_contains($project->read('storage/logs/laravel.log'), 'a tick broken on purpose'), 'an error of a tick');
    preg_match_all('/^(begins|ends) \d+$/m', $project->read('storage/ticks'), $marks);
    // The last one may not have ended yet.
    $check(preg_match('/^(begins ends )*(begins )?$/', implode(' ', $marks[1]) . ' '), 1, 'two ticks at a time: ' . implode(' ', $marks[1]));
    $check([$count('rare'), $count('later')], [1, 0], 'rare ones');

    [$status, $said] = $project->artisan('octane:status');
    $check([$status, str_contains($said, 'pool octane-tasks') && str_contains($said, 'pool octane-ticks')], [0, true], $said);
    preg_match_all('/pid\s+(\d+)/', $said, $workers);
    $check($project->artisan('octane:stop')[0], 0, 'a stop');
    $check($project->ended(), 0, 'the exit status');
    $check(array_filter($workers[1], static fn (string $pid): bool => posix_kill((int) $pid, 0)), [], 'workers that are left');
    $check(glob("$directory/tasks.sock"), [], 'the socket is gone');
}

// Without task workers tasks run one after the other, in the request's process.
$project->start('--task-workers=0');
$check($ask('/tasks/nested')['result'][0][0] ?? null, $ask('/tasks/pid')['result'][0] ?? 0, 'no task workers');
$check(str_contains($project->artisan('octane:status')[1], 'octane-'), false, 'no pools');
$check($project->artisan('octane:stop')[0], 0, 'a stop');
$check($project->ended(), 0, 'the exit status');
[$status, $said] = $project->artisan('octane:start', '--task-workers=some');
$check([$status, str_contains($said, '--task-workers is "auto", a number')], [1, true], $said);

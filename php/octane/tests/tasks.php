<?php

// Orders that workers accept and refuse, their directory, their pools and their table; with-octane-tasks.php runs them.

declare(strict_types=1);

use Howdah\Octane\Tasks\CacheTable;
use Howdah\Octane\Tasks\Order;
use Howdah\Octane\Tasks\Seal;
use Howdah\Octane\Tasks\TaskDirectory;
use Howdah\Octane\Tasks\TaskPools;

spl_autoload_register(static function (string $class): void {
    require __DIR__ . '/../src/' . strtr(substr($class, strlen('Howdah\Octane\\')), '\\', '/') . '.php';
});

$check = static function (mixed $got, mixed $expected, string $what): void {
    if ($got !== $expected) {
        fwrite(STDERR, "tasks: $what: " . var_export($got, true) . ' instead of ' . var_export($expected, true) . "\n");
        exit(1);
    }
};
$refused = static function (callable $made): string {
    try {
        $made();
    } catch (InvalidArgumentException | LengthException | RuntimeException $why) {
        return $why->getMessage();
    }

    return 'nothing is refused';
};
$top = sys_get_temp_dir() . '/howdah-octane-tasks-' . getmypid();
mkdir($top);
register_shutdown_function(static fn () => exec('rm -rf ' . escapeshellarg($top)));

// Messages.
$seal = new Seal(str_repeat('a', 32));
$order = new Order('resolve', 12, "a task\nof two lines");
$sealed = $order->sealed($seal);
$check(Order::open($seal, $sealed) == $order, true, 'an order');
$check(Order::open(new Seal(str_repeat('b', 32)), $sealed), null, "another server's");
foreach (['', 'short', substr($sealed, 64), substr($sealed, 0, -1), "$sealed ", strtoupper($sealed), $seal->put('other', substr($sealed, 64))] as $forged) {
    $check(Order::open($seal, $forged), null, "forged: $forged");
}
$check(str_contains($refused(static fn () => (new Order('resolve', 1, str_repeat('x', Order::LIMIT)))->sealed($seal)), 'exceeds the limit'), true, 'too large');
$check($refused(static fn () => new Seal('')), 'The key of the task workers is missing.', 'no key');

// The directory.
$directory = new TaskDirectory("$top/tasks");
$owner = (int) fileowner($top);
umask(0002);
$directory->prepare('text', $owner);
$check([fileperms("$top/tasks"), fileperms("$top/tasks/key"), umask()], [0040700, 0100600, 0002], 'permissions');
$sealed = $order->sealed($directory->seal());
$directory->cache()->set('a', ['value' => 'b', 'expiration' => PHP_INT_MAX]);
$check([file_get_contents($directory->settings()), $directory->cache()->get('a')['value']], ['text', 'b'], 'what is in it');
$directory->prepare('anew', $owner);
$check([file_get_contents($directory->settings()), $directory->cache()->get('a')], ['anew', false], 'made anew');
$check(Order::open($directory->seal(), $sealed), null, 'an order of before');
$times = 0;
$directory->alone(function () use ($directory, &$times): void {
    ++$times;
    $directory->alone(function () use (&$times): void {
        ++$times;
    });
});
$directory->alone(function () use (&$times): void {
    $times += 10;
});
$check($times, 11, 'one at a time');
$alone = 'other users can access it.';
chmod("$top/tasks", 0750);
$check(str_ends_with($refused(static fn () => $directory->prepare('', $owner)), $alone), true, 'open to others');
chmod("$top/tasks", 0700);
symlink("$top/tasks", "$top/link");
$check(str_ends_with($refused(static fn () => (new TaskDirectory("$top/link"))->prepare('', $owner)), $alone), true, 'a link');
$check(TaskDirectory::ofServer(), null, 'no server');
putenv(TaskDirectory::VARIABLE . "=$top/tasks");
$check(TaskDirectory::ofServer()?->path, "$top/tasks", "the server's");

// The table.
$table = new CacheTable("$top/tasks/cache");
$keys = ['plain', '', '../../escape', str_repeat('long', 200), "two\nlines", '12'];
foreach ($keys as $key) {
    $table->set($key, ['value' => "of $key", 'expiration' => time() + 60]);
}
$check(array_map(static fn (string $key) => $table->get($key)['value'], $keys), array_map(static fn (string $key) => "of $key", $keys), 'rows');
$seen = [];
foreach ($table as $key => $row) {
    $seen[] = (string) $key;
}
sort($seen);
sort($keys);
$check($seen, $keys, 'all rows');
$check([$table->del('plain'), $table->del('plain'), $table->get('plain')], [true, false, false], 'a row that is gone');
$table->set('over', ['value' => 'x', 'expiration' => time() - 1]);
for ($n = 0; $table->get('over') !== false && $n < 10000; ++$n) {
    $table->set('other', ['value' => 'x', 'expiration' => time() + 60]);
}
$check([$table->get('over'), $table->get('12')['value']], [false, 'of 12'], 'what is over goes, and nothing else');

// The pools.
$check(str_contains($refused(static fn () => new TaskPools('some', true)), '--task-workers is'), true, 'workers');
$wanted = static fn (string $workers): bool => (new TaskPools($workers, true))->areWanted();
$check(array_map($wanted, ['auto', '0', '4', '0-2', '10-20', '0-0']), [true, false, true, true, true, false], 'wanted');
$text = (new TaskPools('2-8', true))->text();
$check(str_contains($text, 'workers = "2-8"') && str_contains($text, '[pool.octane-ticks]'), true, $text);
$check(str_contains((new TaskPools('auto', false))->text(), 'ticks'), false, 'no ticks');
file_put_contents("$top/own.toml", "[pool.other]\n# [pool.octane-tasks]\n");
$check(TaskPools::areIn("$top/own.toml"), false, 'a file without');
file_put_contents("$top/own.toml", $text);
$check(TaskPools::areIn("$top/own.toml"), true, 'a file with');

<?php

// Arguments that octane:start passes to the server, the search for the program, and requests of later commands; a script
// stands in for the program.

declare(strict_types=1);

namespace Laravel\Octane\Contracts {
    // Octane's interface, as far as these tests need it.
    interface ServerProcessInspector
    {
    }
}

namespace {
    use Howdah\Octane\Binary;
    use Howdah\Octane\ServerProcessInspector;
    use Howdah\Octane\ServerSettings;
    use Howdah\Octane\StateFile;
    use Howdah\Octane\Tasks\TaskDirectory;

    spl_autoload_register(static function (string $class): void {
        require __DIR__ . '/../src/' . strtr(substr($class, strlen('Howdah\Octane\\')), '\\', '/') . '.php';
    });

    $check = static function (mixed $got, mixed $expected, string $what): void {
        if ($got !== $expected) {
            fwrite(STDERR, "settings: $what: " . var_export($got, true) . ' instead of ' . var_export($expected, true) . "\n");
            exit(1);
        }
    };
    $refused = static function (callable $made): string {
        try {
            $made();
        } catch (InvalidArgumentException $why) {
            return $why->getMessage();
        }

        return 'nothing is refused';
    };

    $top = sys_get_temp_dir() . '/howdah-octane-' . getmypid();
    foreach (['app', 'public', 'vendor/bin', 'elsewhere'] as $directory) {
        mkdir("$top/$directory", 0777, true);
    }
    register_shutdown_function(static fn () => exec('rm -rf ' . escapeshellarg($top)));

    // Flags and variables.
    $package = dirname(__DIR__);
    $plain = new ServerSettings($top, "$top/public", '127.0.0.1', 8001, 'unix:/a.sock', maxRequests: 500, maxExecutionTime: 30);
    $start = ['serve', "$top/public", '--config', "$package/src/../config/howdah.toml"];
    $rest = ['--listen', '127.0.0.1:8001', '--admin', 'unix:/a.sock', '--mode', 'worker', '--script', "$package/bin/howdah-worker.php"];
    $check(array_slice($plain->arguments(), 4), [...$rest, '--set', 'max_requests=500'], 'flags');
    $check(is_file($plain->arguments()[3]) && array_slice($plain->arguments(), 0, 3) === array_slice($start, 0, 3), true, 'the file');
    $check($plain->address(), 'http://127.0.0.1:8001', 'the address');
    $variables = ['APP_ENV' => 'production', 'APP_BASE_PATH' => $top, 'APP_PUBLIC_PATH' => "$top/public", 'LARAVEL_OCTANE' => '1',
        'OCTANE_HOWDAH_TASKS' => '', 'REQUEST_MAX_EXECUTION_TIME' => '30'];
    $check($plain->environment(), $variables, 'variables');

    $snapshot = new ServerSettings($top, "$top/public", '::1', 8443, 'unix:/a.sock', 'snapshot', workers: '2-8',
        watch: ['app', '.env', 'public/**/*.php'], warmup: ['/', '/login'], https: true, logLevel: 'WARNING', environment: 'local');
    $check($snapshot->address(), 'https://[::1]:8443', 'an address of IPv6');
    $line = implode(' ', $snapshot->arguments());
    foreach (['--listen https://[::1]:8443', '--mode snapshot', '--workers 2-8', '--tls auto', '--log-level warn',
        '--access-log stdout --set log.format=terminal'] as $flags) {
        $check(str_contains($line, $flags), true, "$flags in $line");
    }
    $check(str_contains($line, 'max_requests'), false, 'no limit of requests');
    $patterns = array_map(static fn (string $ending) => "$top/app/**/*.$ending", ['php', 'json', 'yaml', 'yml']);
    $check($snapshot->environment()['HOWDAH_WATCH'], implode(',', [...$patterns, "$top/.env", "$top/public/**/*.php"]), 'watched');
    $check($snapshot->environment()['HOWDAH_WARMUP'], '/,/login', 'warm-up');

    $make = static fn (mixed ...$more) => new ServerSettings(...['base' => $top, 'public' => $top, 'host' => 'h', 'port' => 1, 'admin' => 'a'] + $more);
    $check($refused(static fn () => $make(mode: 'async')), 'The mode is "worker" or "snapshot", not "async".', 'a mode');
    $check(str_starts_with($refused(static fn () => $make(workers: 'many')), '--workers is'), true, 'workers');
    $check($refused(static fn () => $make(config: '/nowhere.toml')), '/nowhere.toml, which howdah.config names, does not exist.', 'a file');
    file_put_contents("$top/own.toml", '');
    $own = implode(' ', $make(config: "$top/own.toml", https: true, environment: 'local')->arguments());
    $check(str_contains($own, "--config $top/own.toml") && !str_contains($own, '--tls') && !str_contains($own, '--access-log'), true, $own);

    // Task workers: one more address, and a file with their pools.
    $tasks = $make(tasks: new TaskDirectory('/t'));
    $line = implode(' ', $tasks->arguments());
    $check(str_contains($line, '--config /t/howdah.toml --listen h:1 --listen unix:/t/tasks.sock '), true, $line);
    $check($tasks->environment()['OCTANE_HOWDAH_TASKS'], '/t', 'where they are');
    $check($make(tasks: new TaskDirectory('/t'), config: "$top/own.toml")->configFile(), "$top/own.toml", "the project's own file");

    // The program: at the configured path, in the project, in PATH.
    putenv("PATH=$top/elsewhere:/usr/bin:/bin");
    $check(str_contains($refused(static fn () => (new Binary(null, $top))->path()), 'neither in the project nor in PATH'), true, 'no program');
    $check($refused(static fn () => (new Binary("$top/app", $top))->path()), "$top/app, which howdah.binary names, is not a program.", 'a directory');
    $program = <<<'SH'
        #!/bin/sh
        echo "$@" >> "$0.log"
        [ ! -e "$0.fails" ] || { echo "it does not boot" >&2; exit 1; }
        echo "two workers"
        SH;
    $install = static function (string $path) use ($program): void {
        file_put_contents($path, $program);
        chmod($path, 0755);
    };
    $install("$top/elsewhere/howdah");
    $check((new Binary(null, $top))->path(), "$top/elsewhere/howdah", 'in PATH');
    $install("$top/vendor/bin/howdah");
    $check((new Binary(null, $top))->path(), "$top/vendor/bin/howdah", 'in vendor/bin');

    // Later commands contact the server in the state file.
    $note = "$top/state.json";
    $state = new StateFile($note);
    $binary = new Binary(null, $top);
    $inspector = new ServerProcessInspector($state, $binary);
    $check($inspector->serverIsRunning(), false, 'no note');
    file_put_contents($note, '{"masterProcessId": 1, "state": {"admin": "a", "config": "c"}}');
    $check($inspector->serverIsRunning(), false, "another server's note");
    $state->write(1, ['admin' => 'unix:/a.sock', 'config' => '/c.toml']);
    $check($inspector->status(), 'two workers', 'status');
    $inspector->reloadServer();
    $check($inspector->stopServer(), true, 'stop');
    $orders = array_map(static fn (string $name) => "$name --config /c.toml --admin unix:/a.sock", ['status', 'reload', 'stop']);
    $check(file("$top/vendor/bin/howdah.log", FILE_IGNORE_NEW_LINES), $orders, 'orders');
    touch("$top/vendor/bin/howdah.fails");
    $check([$inspector->serverIsRunning(), $inspector->stopServer()], [false, false], 'a server that is gone');
    try {
        $inspector->reloadServer();
        $check(true, false, 'a failed reload is reported');
    } catch (RuntimeException $failure) {
        $check($failure->getMessage(), 'it does not boot', 'why');
    }
    $state->delete();
    $check(is_file($note), false, 'the note is gone');
}

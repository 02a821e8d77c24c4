<?php

// The commands, the worker script and the client with Octane itself, in a project that is served: OCTANE=the directory of
// laravel/octane, HOWDAH_BIN=the server. Laravel is Debian's 8 (for Octane 1) or LARAVEL=an autoloader of another one.
// Nothing is tried where one of them is not there.

declare(strict_types=1);

$octane = getenv('OCTANE');
$laravel = getenv('LARAVEL') ?: '/usr/share/php/Illuminate/autoload.php';
$binary = getenv('HOWDAH_BIN');
if (!is_string($octane) || !is_string($binary) || !is_file($laravel)) {
    exit(0);
}

/** A project as Composer lays it out: that of the server's own tests, with Octane and this package. */
final class Project
{
    public readonly string $top;
    public readonly int $port;
    private mixed $server = null;

    public function __construct(string $octane, string $laravel, private readonly string $binary)
    {
        $this->top = sys_get_temp_dir() . '/howdah-octane-project-' . getmypid();
        $application = dirname(__DIR__, 3) . '/tests/tests/apps/laravel';
        foreach (['bootstrap/cache', 'storage/framework/sessions', 'storage/framework/views', 'storage/logs', 'vendor'] as $directory) {
            mkdir("$this->top/$directory", 0777, true);
        }
        exec('cp -r ' . escapeshellarg($application) . '/. ' . escapeshellarg($this->top));
        exec('rm ' . escapeshellarg("$this->top/autoload.php"));
        touch("$this->top/storage/data.sqlite");
        copy("$octane/config/octane.php", "$this->top/config/octane.php");
        rename("$this->top/config/app.php", "$this->top/config/base.php");
        $this->write('config/app.php', "<?php\n\$app = require __DIR__ . '/base.php';\n\$app['providers'] = array_merge(\$app['providers'],
            [Laravel\\Octane\\OctaneServiceProvider::class, Howdah\\Octane\\HowdahServiceProvider::class]);\nreturn \$app;\n");
        $this->write('.env', "APP_NAME=\"From the environment\"\nOCTANE_SERVER=howdah\nOWN=setting\n");
        $classes = ['Howdah\\Octane\\' => dirname(__DIR__) . '/src/', 'Laravel\\Octane\\' => "$octane/src/", 'App\\' => "$this->top/app/"];
        $this->write('vendor/autoload.php', "<?php\nset_include_path('/usr/share/php');\nrequire_once " . var_export($laravel, true)
            . ";\nspl_autoload_register(static function (string \$class): void {\n    foreach (" . var_export($classes, true)
            . " as \$prefix => \$directory) {\n        \$file = \$directory . strtr(substr(\$class, strlen(\$prefix)), '\\\\', '/') . '.php';\n"
            . "        if (str_starts_with(\$class, \$prefix) && is_file(\$file)) {\n            require_once \$file;\n        }\n    }\n});\n");
        $this->write('artisan', "<?php\nrequire __DIR__ . '/vendor/autoload.php';\n\$app = require __DIR__ . '/bootstrap/app.php';\n"
            . "exit(\$app->make(Illuminate\\Contracts\\Console\\Kernel::class)->handle(new Symfony\\Component\\Console\\Input\\ArgvInput(),\n"
            . "    new Symfony\\Component\\Console\\Output\\ConsoleOutput()));\n");
        $routes = $this->read('routes/web.php');
        $more = "Route::get('/version', fn () => 'one');\nRoute::get('/own', fn () => [env('OWN'), \$_SERVER['OWN'] ?? null, config('app.name'), url('/a')]);\n"
            . "Route::get('/printed', function () { echo 'printed '; return 'returned'; });\n"
            . "Route::get('/together', fn () => Laravel\\Octane\\Facades\\Octane::concurrently([fn () => 1 + 1, fn () => 'two']));\n";
        $this->write('routes/web.php', $routes . $more);
        $socket = stream_socket_server('tcp://127.0.0.1:0');
        $this->port = (int) substr(strrchr(stream_socket_get_name($socket, false), ':'), 1);
        fclose($socket);
    }

    public function __destruct()
    {
        if ($this->server !== null && proc_get_status($this->server)['running']) {
            proc_terminate($this->server, SIGKILL);
        }
        exec('rm -rf ' . escapeshellarg($this->top));
    }

    public function write(string $name, string $text): void
    {
        file_put_contents("$this->top/$name.new", $text);
        rename("$this->top/$name.new", "$this->top/$name");
    }

    public function read(string $name): string
    {
        return (string) @file_get_contents("$this->top/$name");
    }

    /** @return list<string> */
    private function command(string ...$arguments): array
    {
        return [PHP_BINARY, '-d', 'error_reporting=8191', '-d', 'display_errors=stderr', "$this->top/artisan", ...$arguments];
    }

    /** @return array<string, string> */
    private function environment(): array
    {
        return ['OCTANE_HOWDAH_BINARY' => $this->binary, 'HOWDAH_ALLOW_ROOT' => 'true', 'PATH' => (string) getenv('PATH')]
            + array_intersect_key(getenv(), ['HOWDAH_PHP' => 1]);
    }

    /** @return array{int, string} status and output */
    public function artisan(string ...$arguments): array
    {
        $process = proc_open($this->command(...$arguments), [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes, $this->top, $this->environment());
        $text = (string) stream_get_contents($pipes[1]);

        return [proc_close($process), $text];
    }

    public function start(string ...$arguments): void
    {
        $log = ['file', "$this->top/storage/logs/server.log", 'a'];
        $command = $this->command('octane:start', "--port=$this->port", ...$arguments);
        $this->server = proc_open($command, [['file', '/dev/null', 'r'], $log, $log], $pipes, $this->top, $this->environment());
        $this->until(fn () => $this->get('/gate.php')[1] === 'ready', 'it does not serve');
    }

    public function process(): int
    {
        return proc_get_status($this->server)['pid'];
    }

    /** The exit status of what octane:start has started. */
    public function ended(): int
    {
        $this->until(fn () => !($status = proc_get_status($this->server))['running'] && ($this->status = $status['exitcode']) > -2, 'it does not end');
        $this->server = null;

        return $this->status;
    }

    private int $status = -1;

    /**
     * @param array<string, string> $form
     *
     * @return array{int, string, ?string} status, text and cookie
     */
    public function get(string $path, string $cookie = '', array $form = []): array
    {
        $options = ['ignore_errors' => true, 'timeout' => 20, 'follow_location' => 0, 'header' => $cookie === '' ? [] : ["Cookie: $cookie"]];
        if ($form !== []) {
            $options = ['method' => 'POST', 'content' => http_build_query($form)] + $options;
            $options['header'][] = 'Content-Type: application/x-www-form-urlencoded';
        }
        $text = @file_get_contents("http://127.0.0.1:$this->port$path", false, stream_context_create(['http' => $options]));
        $headers = $http_response_header ?? [];
        preg_match('/^HTTP\/\S+ (\d+)/', $headers[0] ?? '', $status);
        preg_match('/^Set-Cookie: (laravel_session=[^;]+)/mi', implode("\n", $headers), $set);

        return [(int) ($status[1] ?? 0), (string) $text, $set[1] ?? null];
    }

    public function until(callable $holds, string $else): void
    {
        for ($end = microtime(true) + 60; microtime(true) < $end; usleep(50000)) {
            if ($holds()) {
                return;
            }
        }
        $this->fail($else);
    }

    public function fail(string $what): never
    {
        fwrite(STDERR, "with-octane: $what\n" . $this->read('storage/logs/server.log') . $this->read('storage/logs/laravel.log') . "\n");
        exit(1);
    }

    public function check(mixed $got, mixed $expected, string $what): void
    {
        $got === $expected || $this->fail("$what: " . var_export($got, true) . ' instead of ' . var_export($expected, true));
    }
}

$project = new Project($octane, $laravel, $binary);
[$status, $said] = $project->artisan('octane:status');
$project->check([$status, str_contains($said, 'not running')], [1, true], "no server: $said");
$project->check($project->artisan('octane:start', '--mode=async')[0], 1, 'a mode that it cannot run in');
[$status, $said] = $project->artisan('octane:start', '--server=nginx');
$project->check([$status, str_contains($said, 'Invalid server')], [1, true], "another server: $said");

foreach (['worker', 'snapshot'] as $mode) {
    $project->start("--mode=$mode", '--workers=1', '--watch');
    $note = json_decode($project->read('storage/logs/octane-server-state.json'), true);
    $project->check([$note['masterProcessId'], $note['state']['mode']], [$project->process(), $mode], 'the note');
    $project->check(str_contains($project->read('storage/logs/server.log'), "Local: http://127.0.0.1:$project->port"), true, 'the address');

    $project->check($project->get('/mode')[1], "$mode 1", 'the mode');
    $first = json_decode($project->get('/items/7?x=1')[1], true);
    $second = json_decode($project->get('/items/8')[1], true);
    // A static stays in worker mode, and nowhere a singleton of a request.
    $project->check([$first['own'], $second['own'], $second['all'] - $first['all']], [1, 1, $mode === 'worker' ? 1 : 0], 'state');
    $project->check($first['url'], "http://127.0.0.1:$project->port/items/7?x=1", 'the address of a request');
    $own = ['setting', 'setting', 'From the environment', "http://127.0.0.1:$project->port/a"];
    $project->check(json_decode($project->get('/own')[1]), $own, 'settings, not those that a request left');
    $project->check(json_decode($project->get('/index.php/items/9')[1], true)['id'] ?? null, 9, 'behind /index.php');
    $project->check($project->get('/printed')[1], 'printed returned', 'what was printed');
    $project->check(json_decode($project->get('/together')[1]), [2, 'two'], 'concurrently()');
    $project->check([$project->get('/nowhere')[0], $project->get('/broken')[0], $project->get('/rows')[0]], [404, 500, 200], 'errors');
    $project->check($project->get('/form', form: ['a' => 'b'])[0], 419, 'a form without a token');
    $tokens = array_map(static fn () => $project->get('/form')[1], [1, 2, 3]);
    $project->check(count(array_unique($tokens)), 3, 'a token for each visitor');
    foreach ([1, 2] as $visitor) {
        $cookie = '';
        foreach ([1, 2, 3] as $visit) {
            [, $text, $set] = $project->get('/visits', $cookie);
            $cookie = $set ?? $cookie;
            $project->check($text, "visits: $visit", "visitor $visitor");
        }
    }
    @unlink("$project->top/storage/terminated");
    $project->get('/terminates');
    $project->until(static fn () => $project->read('storage/terminated') === "x\n", 'terminate() has not run');

    [$status, $said] = $project->artisan('octane:status');
    $project->check([$status, str_contains($said, 'Octane server is running') && str_contains($said, $mode)], [0, true], $said);
    [$status, $said] = $project->artisan('octane:start', "--port=$project->port");
    $project->check([$status, str_contains($said, 'already running')], [1, true], "a second one: $said");
    $project->check($project->artisan('octane:reload')[0], 0, 'a reload');
    $project->check($project->get('/version')[1], 'one', 'before a change');
    $routes = $project->read('routes/web.php');
    $project->write('routes/web.php', str_replace("'one'", "'two'", $routes));
    $project->until(static fn () => $project->get('/version')[1] === 'two', 'a changed file does not count');
    $project->write('routes/web.php', $routes);
    $project->until(static fn () => $project->get('/version')[1] === 'one', 'a file that was changed back does not count');

    $project->check($project->artisan('octane:stop')[0], 0, 'a stop');
    $project->check($project->ended(), 0, 'the exit status');
    $project->check($project->read('storage/logs/octane-server-state.json'), '', 'the note is gone');
}

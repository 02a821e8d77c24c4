<?php

// A served project with Octane itself: OCTANE=the directory of laravel/octane, HOWDAH_BIN=the server. Laravel is Debian's 8
// (for Octane 1), or LARAVEL=an autoloader of another one.

declare(strict_types=1);

/** A project with Composer's layout: that of the server's own tests, with Octane and this package. */
final class Project
{
    public readonly string $top;
    public readonly int $port;
    private mixed $server = null;

    /** Returns null if a requirement is missing. */
    public static function ofEnvironment(): ?self
    {
        [$octane, $binary, $laravel] = [getenv('OCTANE'), getenv('HOWDAH_BIN'), getenv('LARAVEL') ?: '/usr/share/php/Illuminate/autoload.php'];

        return is_string($octane) && is_string($binary) && is_file($laravel) ? new self($octane, $laravel, $binary) : null;
    }

    private function __construct(string $octane, string $laravel, private readonly string $binary)
    {
        $this->top = sys_get_temp_dir() . '/howdah-octane-project-' . getmypid();
        $application = dirname(__DIR__, 4) . '/tests/tests/apps/laravel';
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
        $classes = ['Howdah\\Octane\\' => dirname(__DIR__, 2) . '/src/', 'Laravel\\Octane\\' => "$octane/src/", 'App\\' => "$this->top/app/"];
        $this->write('vendor/autoload.php', "<?php\nset_include_path('/usr/share/php');\nrequire_once " . var_export($laravel, true)
            . ";\nspl_autoload_register(static function (string \$class): void {\n    foreach (" . var_export($classes, true)
            . " as \$prefix => \$directory) {\n        \$file = \$directory . strtr(substr(\$class, strlen(\$prefix)), '\\\\', '/') . '.php';\n"
            . "        if (str_starts_with(\$class, \$prefix) && is_file(\$file)) {\n            require_once \$file;\n        }\n    }\n});\n");
        $this->write('artisan', "<?php\nrequire __DIR__ . '/vendor/autoload.php';\n\$app = require __DIR__ . '/bootstrap/app.php';\n"
            . "exit(\$app->make(Illuminate\\Contracts\\Console\\Kernel::class)->handle(new Symfony\\Component\\Console\\Input\\ArgvInput(),\n"
            . "    new Symfony\\Component\\Console\\Output\\ConsoleOutput()));\n");
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

    public function addRoutes(string $text): void
    {
        $this->write('routes/web.php', $this->read('routes/web.php') . $text);
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

    /** Returns the exit status of the server that octane:start has started. */
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
        fwrite(STDERR, basename($_SERVER['argv'][0]) . ": $what\n" . $this->read('storage/logs/server.log') . $this->read('storage/logs/laravel.log') . "\n");
        exit(1);
    }

    public function check(mixed $got, mixed $expected, string $what): void
    {
        $got === $expected || $this->fail("$what: " . var_export($got, true) . ' instead of ' . var_export($expected, true));
    }
}

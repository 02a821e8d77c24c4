<?php

declare(strict_types=1);

namespace Howdah\Octane\Commands;

use Howdah\Octane\Binary;
use Howdah\Octane\Launcher;
use Howdah\Octane\ServerProcessInspector;
use Howdah\Octane\ServerSettings;
use Howdah\Octane\StateFile;
use Howdah\Octane\Tasks\TaskDirectory;
use Howdah\Octane\Tasks\TaskPools;
use Laravel\Octane\Commands\Concerns\InteractsWithEnvironmentVariables;
use Laravel\Octane\Commands\StartCommand as OctaneStartCommand;
use Symfony\Component\Console\Attribute\AsCommand;

/** Octane's command, with support for the server "howdah". */
#[AsCommand(name: 'octane:start')]
final class StartCommand extends OctaneStartCommand
{
    use ForHowdah;
    use InteractsWithEnvironmentVariables;

    /** Limit for the length of a socket's path, with a margin. */
    private const SOCKET_LENGTH = 100;

    public function __construct()
    {
        $this->signature .= "\n {--mode= : \"worker\" or \"snapshot\" [Howdah only]}";
        parent::__construct();
    }

    public function handle()
    {
        if (!$this->isForHowdah()) {
            return parent::handle();
        }
        try {
            $pools = $this->taskPools();
            $settings = $this->settings($pools);
            $binary = $this->laravel->make(Binary::class)->path();
        } catch (\InvalidArgumentException $wrong) {
            $this->error($wrong->getMessage());

            return 1;
        }
        if ($this->laravel->make(ServerProcessInspector::class)->serverIsRunning()) {
            $this->error('Octane server is already running.');

            return 1;
        }
        if ($this->isTaken($settings->port)) {
            $this->error("Unable to start server. Port $settings->port is already in use.");

            return 1;
        }
        try {
            $settings->tasks?->prepare($pools->text(), (int) fileowner($this->laravel->storagePath() . '/framework'));
        } catch (\InvalidArgumentException $wrong) {
            $this->error($wrong->getMessage());

            return 1;
        }
        $this->laravel->make(StateFile::class)->write((int) getmypid(), [
            'appName' => $this->laravel['config']->get('app.name', 'Laravel'),
            'host' => $settings->host,
            'port' => $settings->port,
            'workers' => $settings->workers,
            'tasks' => $settings->tasks?->path,
            'maxRequests' => $settings->maxRequests,
            'mode' => $settings->mode,
            'admin' => $settings->admin,
            'config' => $settings->configFile(),
        ]);
        $this->info("Starting Howdah in $settings->mode mode…");
        $this->output->writeln(['', "  Local: <fg=white;options=bold>{$settings->address()} </>", '']);
        // The workers read .env themselves.
        $this->forgetEnvironmentVariables();
        $environment = $settings->environment() + array_filter(getenv(), 'is_string');

        return $this->laravel->make(Launcher::class)->launch([$binary, ...$settings->arguments()], $environment, $settings->base);
    }

    private function settings(TaskPools $pools): ServerSettings
    {
        $config = $this->laravel['config'];
        $mode = (string) ($this->option('mode') ?: $config->get('howdah.mode', 'worker'));
        $port = (int) $this->getPort();
        $watch = $this->option('watch') ? (array) $config->get('octane.watch') : [];
        if ($this->option('watch') && $watch === []) {
            throw new \InvalidArgumentException('--watch: octane.watch names no files.');
        }
        $http = $this->hasOption('http-redirect') && $this->option('http-redirect');
        if ($http) {
            throw new \InvalidArgumentException('--http-redirect is not supported: set tls.redirect in the project\'s howdah.toml (howdah.config).');
        }
        // Octane's default limit is meant for workers that keep the state of requests.
        $limit = $mode === 'worker' || $this->input->hasParameterOption('--max-requests');

        return new ServerSettings(
            base: $this->laravel->basePath(),
            public: (string) realpath(public_path()) ?: public_path(),
            host: (string) $this->getHost(),
            port: $port,
            admin: $config->get('howdah.admin') ?? 'unix:' . $this->runtime("howdah-$port.sock"),
            mode: $mode,
            config: $config->get('howdah.config'),
            workers: (string) $this->option('workers'),
            maxRequests: $limit ? (int) $this->option('max-requests') : null,
            watch: array_values($watch),
            warmup: array_values((array) $config->get('howdah.warmup', [])),
            maxExecutionTime: (int) $config->get('octane.max_execution_time', 30),
            https: $this->hasOption('https') && $this->option('https'),
            logLevel: $this->hasOption('log-level') ? $this->option('log-level') : null,
            environment: (string) $this->laravel->environment(),
            tasks: $pools->areWanted() && $this->canHavePools() ? new TaskDirectory($this->runtime("howdah-$port.tasks", '/tasks.sock')) : null,
        );
    }

    private function taskPools(): TaskPools
    {
        $config = $this->laravel['config'];
        $option = $this->option('task-workers');

        return new TaskPools(
            (string) ($option === 'auto' ? $config->get('howdah.task_workers', 'auto') : $option),
            (bool) $config->get('octane.tick', true),
        );
    }

    /** Returns whether pools for tasks may be added: if the project has its own howdah.toml, that one decides. */
    private function canHavePools(): bool
    {
        $own = $this->laravel['config']->get('howdah.config');
        if ($own === null || !is_file($own) || TaskPools::areIn($own)) {
            return true;
        }
        if ($this->option('task-workers') !== 'auto') {
            $this->warn("--task-workers: $own has no pool octane-tasks; Octane::concurrently() runs its tasks one after the other.");
        }

        return false;
    }

    /** Returns a path in storage/framework, or one that is short enough for a socket. */
    private function runtime(string $name, string $socket = ''): string
    {
        $path = $this->laravel->storagePath() . "/framework/$name";

        return \strlen($path . $socket) < self::SOCKET_LENGTH ? $path : sys_get_temp_dir() . '/' . md5($path) . "-$name";
    }

    private function isTaken(int $port): bool
    {
        $host = trim((string) $this->getHost(), '[]');
        $host = ['0.0.0.0' => '127.0.0.1', '::' => '[::1]'][$host] ?? (str_contains($host, ':') ? "[$host]" : $host);
        $connection = @fsockopen($host, $port, timeout: 1.0);

        return $connection !== false && fclose($connection);
    }
}

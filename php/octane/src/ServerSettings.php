<?php

declare(strict_types=1);

namespace Howdah\Octane;

use Howdah\Octane\Tasks\TaskDirectory;

/** Translates the options of octane:start to flags and variables of `howdah serve`. */
final class ServerSettings
{
    private const MODES = ['worker', 'snapshot'];

    /**
     * Extensions of files to watch below a directory: code and settings, but not databases and caches, which requests write.
     */
    private const WATCHED = ['php', 'json', 'yaml', 'yml'];

    /** Howdah's log levels for those of Octane's servers. */
    private const LEVELS = ['warning' => 'warn', 'panic' => 'error', 'fatal' => 'error', 'critical' => 'error'];

    /**
     * @param string        $admin       the server's admin address
     * @param string|null   $config      the project's howdah.toml
     * @param string        $workers     "auto", a number, or "2-8"
     * @param int|null      $maxRequests after which a worker is replaced; null leaves that to $config
     * @param list<string>  $watch       files and directories of the project, as in octane.watch
     * @param list<string>  $warmup      paths
     * @param TaskDirectory|null $tasks  directory of the tasks; null without task workers
     * @param int           $maxExecutionTime seconds for each request, 0 for no limit
     */
    public function __construct(
        public readonly string $base,
        public readonly string $public,
        public readonly string $host,
        public readonly int $port,
        public readonly string $admin,
        public readonly string $mode = 'worker',
        public readonly ?string $config = null,
        public readonly string $workers = 'auto',
        public readonly ?int $maxRequests = null,
        public readonly array $watch = [],
        public readonly array $warmup = [],
        public readonly int $maxExecutionTime = 0,
        public readonly bool $https = false,
        public readonly ?string $logLevel = null,
        public readonly string $environment = 'production',
        public readonly ?TaskDirectory $tasks = null,
    ) {
        if (!\in_array($mode, self::MODES, true)) {
            throw new \InvalidArgumentException("The mode is \"worker\" or \"snapshot\", not \"$mode\".");
        }
        if ($workers !== 'auto' && !preg_match('/^\d+(-\d+)?$/', $workers)) {
            throw new \InvalidArgumentException("--workers is \"auto\", a number, or two as in \"2-8\", not \"$workers\".");
        }
        if ($config !== null && !is_file($config)) {
            throw new \InvalidArgumentException("$config, which howdah.config names, does not exist.");
        }
    }

    /** Returns the address to display. */
    public function address(): string
    {
        return ($this->https ? 'https://' : 'http://') . $this->listen();
    }

    /** Returns the settings file for every command of Howdah, so that none reads a howdah.toml by accident. */
    public function configFile(): string
    {
        return $this->config ?? $this->tasks?->settings() ?? \dirname(__DIR__) . '/config/howdah.toml';
    }

    /** @return list<string> the arguments of `howdah` */
    public function arguments(): array
    {
        $listen = [($this->https ? 'https://' : '') . $this->listen()];
        if ($this->tasks !== null) {
            $listen[] = "unix:{$this->tasks->socket()}";
        }
        $set = $this->maxRequests === null ? [] : ["max_requests=$this->maxRequests"];
        $flags = [
            'config' => $this->configFile(),
            'listen' => $listen,
            'admin' => $this->admin,
            'mode' => $this->mode,
            'script' => \dirname(__DIR__) . '/bin/howdah-worker.php',
            'workers' => $this->workers === 'auto' ? null : $this->workers,
            // The project's own certificates, if any, are configured in its howdah.toml.
            'tls' => $this->https && $this->config === null ? 'auto' : null,
            'log-level' => $this->level(),
        ];
        if ($this->environment === 'local' && $this->config === null) {
            $flags['access-log'] = 'stdout';
            $set[] = 'log.format=terminal';
        }
        $flags['set'] = $set;
        $arguments = ['serve', $this->public];
        foreach ($flags as $name => $value) {
            foreach ((array) $value as $one) {
                array_push($arguments, "--$name", (string) $one);
            }
        }

        return $arguments;
    }

    /** @return array<string, string> variables for the server in addition to those of octane:start */
    public function environment(): array
    {
        $variables = [
            'APP_ENV' => $this->environment,
            'APP_BASE_PATH' => $this->base,
            'APP_PUBLIC_PATH' => $this->public,
            'LARAVEL_OCTANE' => '1',
            // Not the value of another server, if that one runs octane:start.
            TaskDirectory::VARIABLE => $this->tasks?->path ?? '',
            'REQUEST_MAX_EXECUTION_TIME' => (string) $this->maxExecutionTime,
        ];
        if ($this->watch !== []) {
            $variables['HOWDAH_WATCH'] = implode(',', array_merge(...array_map($this->patterns(...), $this->watch)));
        }
        if ($this->mode === 'snapshot' && $this->warmup !== []) {
            $variables['HOWDAH_WARMUP'] = implode(',', $this->warmup);
        }

        return $variables;
    }

    private function listen(): string
    {
        $host = str_contains($this->host, ':') ? '[' . trim($this->host, '[]') . ']' : $this->host;

        return "$host:$this->port";
    }

    private function level(): ?string
    {
        $level = $this->logLevel === null ? null : strtolower($this->logLevel);

        return self::LEVELS[$level ?? ''] ?? $level;
    }

    /** @return list<string> an entry of octane.watch as patterns */
    private function patterns(string $name): array
    {
        $path = $this->base . '/' . trim($name, '/');

        return is_dir($path) ? array_map(static fn (string $ending): string => "$path/**/*.$ending", self::WATCHED) : [$path];
    }
}

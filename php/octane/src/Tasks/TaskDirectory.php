<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

/**
 * The directory of a server's tasks, accessible to one user only: their socket, the key for signing, the table of Octane's
 * cache, and the settings of the pools that run tasks and ticks.
 */
final class TaskDirectory
{
    /** The environment variable with its path, for workers. */
    public const VARIABLE = 'OCTANE_HOWDAH_TASKS';

    private const KEY_BYTES = 32;

    public function __construct(public readonly string $path)
    {
    }

    /** Returns the directory of the server that this process belongs to; null without one, or without task workers. */
    public static function ofServer(): ?self
    {
        $path = getenv(self::VARIABLE);

        return \is_string($path) && $path !== '' ? new self($path) : null;
    }

    public function socket(): string
    {
        return "$this->path/tasks.sock";
    }

    public function settings(): string
    {
        return "$this->path/howdah.toml";
    }

    public function seal(): Seal
    {
        return new Seal((string) file_get_contents("$this->path/key"));
    }

    public function cache(): CacheTable
    {
        return new CacheTable("$this->path/cache");
    }

    /** Calls the function unless another process is running it. */
    public function alone(callable $function): void
    {
        $lock = fopen("$this->path/tick.lock", 'c');
        if ($lock === false) {
            throw new \RuntimeException("$this->path/tick.lock cannot be opened.");
        }
        try {
            flock($lock, LOCK_EX | LOCK_NB) && $function();
        } finally {
            // The lock is released with the last descriptor, and so with its process.
            fclose($lock);
        }
    }

    /**
     * Creates it for a server that is about to start: with a new key, and without any data of an earlier server.
     *
     * @param int $owner the owner to set, if this process has the right to: the application's user
     *
     * @throws \InvalidArgumentException if others could access it, or it cannot be created
     */
    public function prepare(string $settings, int $owner): void
    {
        $mask = umask(0077);
        try {
            if (!@mkdir($this->path, 0700) && !$this->isOurs($owner)) {
                throw new \InvalidArgumentException("$this->path cannot be created, or other users can access it.");
            }
            $cache = "$this->path/cache";
            is_dir($cache) || mkdir($cache, 0700);
            array_map('unlink', array_filter(glob("$cache/*") ?: [], 'is_file'));
            $files = ['key' => random_bytes(self::KEY_BYTES), 'howdah.toml' => $settings, '.gitignore' => "*\n", 'tick.lock' => ''];
            foreach ($files as $name => $text) {
                // Creates a new file instead of new content: the old one may still be open elsewhere.
                @unlink("$this->path/$name");
                if (@file_put_contents("$this->path/$name", $text) !== \strlen($text)) {
                    throw new \InvalidArgumentException("$this->path/$name cannot be written.");
                }
            }
            foreach (self::isRoot() ? [...array_keys($files), 'cache', '.'] : [] as $name) {
                chown("$this->path/$name", $owner);
            }
        } finally {
            umask($mask);
        }
    }

    private function isOurs(int $owner): bool
    {
        clearstatcache();
        $is = @lstat($this->path);
        $user = \function_exists('posix_geteuid') ? posix_geteuid() : getmyuid();

        return $is !== false && ($is['mode'] & 0170777) === 0040700 && \in_array($is['uid'], self::isRoot() ? [$user, $owner] : [$user], true);
    }

    private static function isRoot(): bool
    {
        return \function_exists('posix_geteuid') && posix_geteuid() === 0;
    }
}

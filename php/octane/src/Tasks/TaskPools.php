<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

/** The settings of howdah.toml for tasks and ticks. */
final class TaskPools
{
    /** No workers without tasks; up to 8, depending on the load. */
    private const AUTO = '0-8';

    private readonly string $workers;

    /**
     * @param string $workers as in --task-workers: "auto", a number, or "2-8"
     *
     * @throws \InvalidArgumentException if it is none of these
     */
    public function __construct(string $workers, private readonly bool $ticks)
    {
        if ($workers !== 'auto' && !preg_match('/^\d+(-\d+)?$/', $workers)) {
            throw new \InvalidArgumentException("--task-workers is \"auto\", a number, or two as in \"2-8\", not \"$workers\".");
        }
        $this->workers = $workers === 'auto' ? self::AUTO : $workers;
    }

    /** Returns true if there must be any. */
    public function areWanted(): bool
    {
        return (int) substr((string) strrchr("-$this->workers", '-'), 1) > 0;
    }

    /** Returns true if a project's own howdah.toml defines them. */
    public static function areIn(string $file): bool
    {
        return preg_match('/^\s*\[\s*pool\s*\.\s*["\']?octane-tasks["\']?\s*\]/m', (string) file_get_contents($file)) === 1;
    }

    public function text(): string
    {
        $bin = \dirname(__DIR__, 2) . '/bin';
        [$tasks, $ticks] = array_map(self::quoted(...), ["$bin/howdah-tasks.php", "$bin/howdah-ticks.php"]);
        [$path, $limit] = [self::quoted(Order::PATH), Order::LIMIT];
        $text = <<<TOML
            # Written by octane:start at each start. A howdah.toml of the project (howdah.config) may have these lines too.

            [pool.octane-tasks]
            mode = "worker"
            script = $tasks
            workers = "$this->workers"
            warmup = []
            deadline = 0

            [[rule]]
            path = $path
            pool = "octane-tasks"

            # Refused from the network: only peers of the tasks' socket, which have no address, may use this path.
            [[rule]]
            path = $path
            client = ["0.0.0.0/0", "::/0"]
            status = 404

            [[rule]]
            path = $path
            max_body = $limit
            access_log = false

            TOML;

        return $text . ($this->ticks ? <<<TOML

            [pool.octane-ticks]
            mode = "async"
            script = $ticks
            workers = 1
            warmup = []

            TOML : '');
    }

    /** Returns a text as a TOML string; TOML accepts JSON's strings. */
    private static function quoted(string $text): string
    {
        return json_encode($text, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
    }
}

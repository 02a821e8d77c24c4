<?php

declare(strict_types=1);

namespace Howdah\Octane;

use Laravel\Octane\Contracts\ServerProcessInspector as Contract;

/** Controls the running server with Howdah's own commands, at the admin address that it was started with. */
final class ServerProcessInspector implements Contract
{
    public function __construct(private readonly StateFile $state, private readonly Binary $binary)
    {
    }

    public function serverIsRunning(): bool
    {
        return $this->status() !== null;
    }

    /** Returns the output of `howdah status`; null without a server. */
    public function status(): ?string
    {
        [$status, $text] = $this->order('status');

        return $status === 0 ? $text : null;
    }

    /** @throws \RuntimeException if the new workers do not start; then the old ones continue */
    public function reloadServer(): void
    {
        [$status, $text] = $this->order('reload');
        if ($status !== 0) {
            throw new \RuntimeException($text);
        }
    }

    public function stopServer(): bool
    {
        return $this->order('stop')[0] === 0;
    }

    /** @return array{int, string} exit status and output */
    private function order(string $name): array
    {
        $state = $this->state->read();
        if (!isset($state['admin'], $state['config'])) {
            return [1, 'No server is recorded.'];
        }
        $command = [$this->binary->path(), $name, '--config', $state['config'], '--admin', $state['admin']];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], ['redirect', 1]], $pipes);
        if ($process === false) {
            return [1, "$command[0] cannot be run."];
        }
        $text = trim((string) stream_get_contents($pipes[1]));
        fclose($pipes[1]);

        return [proc_close($process), $text];
    }
}

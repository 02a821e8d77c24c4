<?php

declare(strict_types=1);

namespace Howdah\Octane;

/** Octane's state file of the started server, in Octane's format, for later commands. */
final class StateFile
{
    public function __construct(private readonly string $path)
    {
    }

    /** @return array<string, mixed> the server's start options; [] if there is none */
    public function read(): array
    {
        $noted = json_decode((string) @file_get_contents($this->path), true);
        $state = $noted['state'] ?? null;

        return \is_array($state) && ($state['server'] ?? null) === 'howdah' ? $state : [];
    }

    /** @param array<string, mixed> $state */
    public function write(int $process, array $state): void
    {
        $noted = ['masterProcessId' => $process, 'state' => ['server' => 'howdah'] + $state];
        $text = json_encode($noted, JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_PARTIAL_OUTPUT_ON_ERROR);
        if (@file_put_contents($this->path, $text) === false) {
            throw new \RuntimeException("$this->path cannot be written.");
        }
    }

    public function delete(): void
    {
        @unlink($this->path);
    }
}

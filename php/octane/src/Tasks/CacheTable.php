<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

/**
 * Storage of Octane's cache store "octane" and its ticks: a table that all workers of a server share, as Swoole's does, with
 * a file for each row. It is empty at each start of the server and survives reloads.
 *
 * @implements \IteratorAggregate<string, array{value: string, expiration: int}>
 */
final class CacheTable implements \IteratorAggregate
{
    /** One write in this many removes expired rows. */
    private const SWEEP_ONE_IN = 100;

    public function __construct(private readonly string $directory)
    {
    }

    /** @return array{value: string, expiration: int}|false */
    public function get(string $key): array|false
    {
        return self::read($this->file($key))[1] ?? false;
    }

    /** @param array{value: string, expiration: int} $row */
    public function set(string $key, array $row): bool
    {
        if (random_int(1, self::SWEEP_ONE_IN) === 1) {
            $this->sweep();
        }
        $file = $this->file($key);
        $new = $file . '.' . bin2hex(random_bytes(8));

        return @file_put_contents($new, serialize([$key, $row])) !== false && rename($new, $file);
    }

    public function del(string $key): bool
    {
        return @unlink($this->file($key));
    }

    public function getIterator(): \Generator
    {
        foreach (glob("$this->directory/*.row") ?: [] as $file) {
            $read = self::read($file);
            if ($read !== null) {
                yield $read[0] => $read[1];
            }
        }
    }

    /** Returns the file of a key, which may have any characters and any length. */
    private function file(string $key): string
    {
        return "$this->directory/" . hash('sha256', $key) . '.row';
    }

    /** @return array{string, array{value: string, expiration: int}}|null */
    private static function read(string $file): ?array
    {
        $text = @file_get_contents($file);

        return $text === false ? null : unserialize($text, ['allowed_classes' => false]);
    }

    private function sweep(): void
    {
        foreach ($this as $key => $row) {
            $row['expiration'] > time() || $this->del($key);
        }
    }
}

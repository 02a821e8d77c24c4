<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

/**
 * Signs messages to and from task workers, so that only data written by a process of this server is unserialized and run.
 * The key belongs to this server: messages of another server are refused even if their applications share keys.
 */
final class Seal
{
    private const LENGTH = 64;

    public function __construct(#[\SensitiveParameter] private readonly string $key)
    {
        if (\strlen($key) < self::LENGTH / 2) {
            throw new \RuntimeException('The key of the task workers is missing.');
        }
    }

    /** @param string $purpose the kind of the text; the signature is valid for no other */
    public function put(string $purpose, string $text): string
    {
        return hash_hmac('sha256', "$purpose\n$text", $this->key) . $text;
    }

    /** Returns the text; null if it was not sealed by this server, or for another purpose. */
    public function open(string $purpose, string $sealed): ?string
    {
        $text = substr($sealed, self::LENGTH);

        return hash_equals($this->put($purpose, $text), $sealed) ? $text : null;
    }

    /** Returns a value that identifies a sealed text. */
    public static function mark(string $sealed): string
    {
        return substr($sealed, 0, self::LENGTH);
    }
}

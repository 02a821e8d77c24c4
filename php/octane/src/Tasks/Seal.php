<?php

declare(strict_types=1);

namespace Howdah\Octane\Tasks;

/**
 * Signs what goes to and from task workers, so that only what a process of this very server has written is unserialized and
 * run: the key is the server's own, and another one's messages are refused whatever keys their applications share.
 */
final class Seal
{
    private const LENGTH = 64;

    public function __construct(#[\SensitiveParameter] private readonly string $key)
    {
        if (\strlen($key) < self::LENGTH / 2) {
            throw new \RuntimeException('The key of the task workers is not there.');
        }
    }

    /** @param string $purpose what the text is; it holds for nothing else */
    public function put(string $purpose, string $text): string
    {
        return hash_hmac('sha256', "$purpose\n$text", $this->key) . $text;
    }

    /** The text; null if it is not one of this server's, or for another purpose. */
    public function open(string $purpose, string $sealed): ?string
    {
        $text = substr($sealed, self::LENGTH);

        return hash_equals($this->put($purpose, $text), $sealed) ? $text : null;
    }

    /** Identifies a sealed text. */
    public static function mark(string $sealed): string
    {
        return substr($sealed, 0, self::LENGTH);
    }
}

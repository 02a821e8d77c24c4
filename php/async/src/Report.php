<?php

/* Lines for the server's log about events that no code can handle. */

declare(strict_types=1);

namespace Howdah\Internal;

final class Report
{
    public static function uncaught(\Throwable $error, string $where): void
    {
        self::write(LOG_ERR, \sprintf('Uncaught %s: %s', $where, $error));
    }

    public static function error(string $message): void
    {
        self::write(LOG_ERR, $message);
    }

    /**
     * Returns lines that follow a message: where a connection with an open transaction was taken and the transaction begun.
     */
    public static function origin(string $taken, ?string $begun): string
    {
        return "\nThe connection was taken at:\n$taken" . ($begun === null ? '' : "\nThe transaction was begun at:\n$begun");
    }

    public static function warning(string $message): void
    {
        self::write(LOG_WARNING, $message);
    }

    private static function write(int $level, string $message): void
    {
        \Howdah\log($message, $level);
    }
}

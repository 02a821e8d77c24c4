<?php

/* Lines for the server's log about what no code can be told. */

declare(strict_types=1);

namespace Howdah\Internal;

final class Report
{
    public static function uncaught(\Throwable $error, string $where): void
    {
        self::write(LOG_ERR, \sprintf('Uncaught %s: %s', $where, $error));
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

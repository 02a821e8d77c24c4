<?php

/* Whether a statement may leave something behind in its session: settings, variables, temporary tables, locks, prepared
 * statements. Statements that only look like it cost their connection a reset; nothing else depends on it. What functions
 * and triggers of the database do inside is not seen. */

declare(strict_types=1);

namespace Howdah\Internal;

final class SessionSql
{
    private const START = '~(?:^|;)(?:\s+|/\*.*?\*/|--[^\n]*\n|\()*+';

    private const PATTERNS = [
        'mysql' => self::START . '(?:SET|USE|CALL|PREPARE|DEALLOCATE|LOCK|FLUSH|HANDLER|XA|CREATE\s+(?:OR\s+REPLACE\s+)?TEMPORARY)\b'
            . '|\bGET_LOCK\s*\(|(?<![\w.@])@[\w$`"\']~is',
        'pgsql' => self::START . '(?:SET|RESET|CALL|DO|PREPARE|DEALLOCATE|DISCARD|LISTEN|UNLISTEN|LOAD|DECLARE|CREATE\s+(?:(?:GLOBAL|LOCAL)\s+)?TEMP(?:ORARY)?)\b'
            . '|\bset_config\s*\(|\bpg_(?:try_)?advisory_lock|\bINTO\s+(?:LOCAL\s+)?TEMP~is',
        'sqlite' => self::START . '(?:PRAGMA|ATTACH|DETACH|CREATE\s+TEMP(?:ORARY)?)\b~is',
    ];

    /** @param string $driver PDO's name for it */
    public static function mayChange(string $driver, string $sql): bool
    {
        $pattern = self::PATTERNS[$driver] ?? null;

        // An expression that gives up on a long statement counts as found.
        return $pattern !== null && preg_match($pattern, $sql) !== 0;
    }
}

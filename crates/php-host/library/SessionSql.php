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

    /** Statements to remember, and the longest of them. */
    private const REMEMBERED = 512;
    private const SHORT = 1024;

    /** @var array<string, array<string, true>> by driver and statement: they change nothing */
    private static array $harmless = [];

    /** @param string $driver PDO's name for it */
    public static function mayChange(string $driver, string $sql): bool
    {
        if (isset(self::$harmless[$driver][$sql])) {
            return false;
        }
        $pattern = self::PATTERNS[$driver] ?? null;
        // An expression that gives up on a long statement counts as found.
        if ($pattern !== null && preg_match($pattern, $sql) !== 0) {
            return true;
        }
        if (\strlen($sql) <= self::SHORT) {
            if (\count(self::$harmless[$driver] ?? []) >= self::REMEMBERED) {
                self::$harmless[$driver] = [];
            }
            self::$harmless[$driver][$sql] = true;
        }

        return false;
    }
}

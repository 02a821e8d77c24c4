<?php

declare(strict_types=1);

namespace Swoole\Coroutine;

use Swoole\Coroutine;

/** Functions that wait. In Howdah, PHP's own functions wait without blocking; these are for code that uses Swoole's. */
class System
{
    public static function sleep(float $seconds): bool
    {
        return Coroutine::sleep($seconds);
    }

    /** @return array{code: int, signal: int, output: string}|false */
    public static function exec(string $command, bool $get_error_stream = false): array|false
    {
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => $get_error_stream ? ['redirect', 1] : ['file', '/dev/null', 'w']], $pipes);
        if ($process === false) {
            return false;
        }
        $output = stream_get_contents($pipes[1]);
        fclose($pipes[1]);
        $code = proc_close($process);

        return ['code' => $code, 'signal' => 0, 'output' => (string) $output];
    }

    public static function gethostbyname(string $domain_name): string|false
    {
        $address = gethostbyname($domain_name);

        return $address === $domain_name && filter_var($address, FILTER_VALIDATE_IP) === false ? false : $address;
    }

    public static function readFile(string $filename): string|false
    {
        return file_get_contents($filename);
    }

    public static function writeFile(string $filename, string $fileContent, int $flags = 0): int|false
    {
        return file_put_contents($filename, $fileContent, $flags);
    }
}

<?php

declare(strict_types=1);

namespace Howdah\Octane;

/** Finds the program. */
final class Binary
{
    /** @param string|null $configured its path, or null to look for it */
    public function __construct(private readonly ?string $configured, private readonly string $base)
    {
    }

    /** @throws \InvalidArgumentException if it does not exist */
    public function path(): string
    {
        if ($this->configured !== null) {
            return self::isProgram($this->configured)
                ? $this->configured
                : throw new \InvalidArgumentException("$this->configured, which howdah.binary names, is not a program.");
        }
        $directories = [$this->base, $this->base . '/vendor/bin', ...explode(PATH_SEPARATOR, (string) getenv('PATH'))];
        foreach ($directories as $directory) {
            if ($directory !== '' && self::isProgram("$directory/howdah")) {
                return "$directory/howdah";
            }
        }
        throw new \InvalidArgumentException('`howdah` is neither in the project nor in PATH; set OCTANE_HOWDAH_BINARY to its path.');
    }

    private static function isProgram(string $path): bool
    {
        return is_file($path) && is_executable($path);
    }
}

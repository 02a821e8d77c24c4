<?php

declare(strict_types=1);

namespace Composer;

/**
 * Stands in for Composer's class where Debian's packages are used without Composer: Symfony 6 asks it for installed
 * packages.
 */
final class InstalledVersions
{
    public static function isInstalled(string $package, bool $alsoForDevelopment = true): bool
    {
        return true;
    }

    /** @return array<string, mixed> */
    public static function getRootPackage(): array
    {
        return ['name' => 'app/app', 'dev' => true];
    }

    public static function getInstallPath(string $package): ?string
    {
        return null;
    }
}

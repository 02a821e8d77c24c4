<?php

// Stands in for Composer's: Debian's Symfony and the application's own class.
set_include_path('/usr/share/php');
foreach (['Bundle/FrameworkBundle', 'Component/Runtime', 'Component/Dotenv'] as $part) {
    require_once "Symfony/$part/autoload.php";
}
spl_autoload_register(static function (string $class): void {
    if ($class === 'App\Kernel') {
        require dirname(__DIR__) . '/src/Kernel.php';
    }
});

// Symfony 6 and later require Composer 2 and query the installed packages: none.
eval('namespace Composer; class InstalledVersions { public static function isInstalled(): bool { return false; } }');

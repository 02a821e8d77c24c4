<?php
// Debian's Symfony and Twig, whose autoloaders find each other through the include path.
set_include_path('/usr/share/php');
foreach (['Bundle/FrameworkBundle', 'Bundle/TwigBundle', 'Component/Serializer', 'Component/PropertyAccess', 'Component/Validator'] as $part) {
    require_once "Symfony/$part/autoload.php";
}
// Symfony from 6 on requires Composer 2, and asks it for the installed packages: none.
spl_autoload_register(static function (string $class): void {
    if ($class === 'Composer\\InstalledVersions' && Symfony\Component\HttpKernel\Kernel::MAJOR_VERSION > 5) {
        eval('namespace Composer; class InstalledVersions { public static function isInstalled(): bool { return false; } }');
    }
});
require_once __DIR__ . '/src/Kernel.php';
require_once __DIR__ . '/src/Order.php';
require_once __DIR__ . '/src/OrderController.php';
require_once __DIR__ . '/src/Product.php';
require_once __DIR__ . '/src/ProductController.php';

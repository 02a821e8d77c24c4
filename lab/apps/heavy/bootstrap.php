<?php
// Debian's Symfony and Doctrine ORM, whose autoloaders find each other through the include path.
set_include_path('/usr/share/php');
foreach (['Symfony/Bundle/FrameworkBundle', 'Symfony/Component/Serializer', 'Symfony/Component/PropertyAccess', 'Doctrine/ORM'] as $part) {
    require_once "$part/autoload.php";
}
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Heavy\\')) {
        $file = __DIR__ . '/src/' . str_replace('\\', '/', substr($class, 6)) . '.php';
        if (is_file($file)) {
            require $file;
        }
    }
});

<?php
// Stands in for the autoloader of Composer: Debian's Laravel and the application's own classes.
set_include_path('/usr/share/php');
require_once 'Illuminate/autoload.php';
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'App\\')) {
        require dirname(__DIR__) . '/app/' . strtr(substr($class, 4), '\\', '/') . '.php';
    }
});

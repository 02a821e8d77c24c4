<?php
require __DIR__ . '/gate.php';
require '__PACKAGE__';
spl_autoload_register(function ($class) {
    if (str_starts_with($class, 'Howdah\\Runtime\\')) {
        require '__SRC__' . substr($class, 15) . '.php';
    }
});

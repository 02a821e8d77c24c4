<?php
spl_autoload_register(function ($class) {
    if (str_starts_with($class, 'Howdah\\Runtime\\')) {
        require '__PACKAGE__' . substr($class, 15) . '.php';
    }
});

<?php
spl_autoload_register($loader = function ($c) {
    usleep(2000);
    if ($c === 'Lazy') {
        require_once __DIR__ . '/Lazy.php';
    }
});
meet('a');
echo Lazy::get($m), class_exists('Lazy2') ? 'what' : '', is_callable(['Lazy', 'get']) ? 1 : 0;

<?php
// Debian's Symfony and Doctrine, whose autoloaders find each other through the include path.
set_include_path('/usr/share/php');
require_once 'Symfony/Bundle/FrameworkBundle/autoload.php';
require_once 'Doctrine/DBAL/autoload.php';
require_once __DIR__ . '/src/Kernel.php';
require_once __DIR__ . '/src/ProductController.php';

<?php
// Debian's Symfony and Twig, whose autoloaders find each other through the include path.
set_include_path('/usr/share/php');
foreach (['Bundle/FrameworkBundle', 'Bundle/TwigBundle', 'Component/Serializer', 'Component/PropertyAccess', 'Component/Validator'] as $part) {
    require_once "Symfony/$part/autoload.php";
}
require_once __DIR__ . '/src/Kernel.php';
require_once __DIR__ . '/src/Order.php';
require_once __DIR__ . '/src/OrderController.php';
require_once __DIR__ . '/src/Product.php';
require_once __DIR__ . '/src/ProductController.php';

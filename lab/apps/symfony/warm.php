<?php
// Compiles the container, the routes and the templates before anything is measured.
require_once __DIR__ . '/bootstrap.php';
$kernel = new Orders\Kernel('prod', false);
$kernel->boot();
$container = $kernel->getContainer();
$container->get('cache_warmer')->enableOptionalWarmers();
$container->get('cache_warmer')->warmUp($kernel->getCacheDir());

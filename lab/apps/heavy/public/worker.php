<?php
// The same application for runtimes that boot once: the kernel stays, and with it the connection to MariaDB.
require_once __DIR__ . '/../bootstrap.php';

use Doctrine\ORM\EntityManagerInterface;
use Symfony\Component\HttpFoundation\Request;

$kernel = new Heavy\Kernel('prod', false);
$kernel->boot();
$entities = $kernel->getContainer()->get(EntityManagerInterface::class);
$handle = static function () use ($kernel, $entities): void {
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
    // Entities of one request must not be visible in the next.
    $entities->clear();
};
while (frankenphp_handle_request($handle)) {
}

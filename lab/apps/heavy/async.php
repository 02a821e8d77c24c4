<?php
// The same application for Howdah's async mode: a kernel holds the state of its request, so each request gets a
// separate one from a pool.
require_once __DIR__ . '/bootstrap.php';

use Doctrine\ORM\EntityManagerInterface;
use Symfony\Component\HttpFoundation\Request;

$kernels = new Howdah\Pool(static function (): Heavy\Kernel {
    $kernel = new Heavy\Kernel('prod', false);
    $kernel->boot();
    return $kernel;
}, max: 8);
frankenphp_handle_request(static function () use ($kernels): void {
    $kernels->use(static function (Heavy\Kernel $kernel): void {
        $request = Request::createFromGlobals();
        $response = $kernel->handle($request);
        $response->send();
        $kernel->terminate($request, $response);
        $kernel->getContainer()->get(EntityManagerInterface::class)->clear();
    });
});

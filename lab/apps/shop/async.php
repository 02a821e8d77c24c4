<?php
// The same application for Howdah's async mode. A kernel holds the state of its request, so each request gets a
// separate one from a pool, and with it the kernel's connection to MariaDB.
require_once __DIR__ . '/bootstrap.php';

use Symfony\Component\HttpFoundation\Request;

$kernels = new Howdah\Pool(static function (): Shop\Kernel {
    $kernel = new Shop\Kernel('prod', false);
    $kernel->boot();
    return $kernel;
}, max: max(1, intdiv(100, (int) getenv('LAB_WORKERS'))));
frankenphp_handle_request(static function () use ($kernels): void {
    $kernels->use(static function (Shop\Kernel $kernel): void {
        $request = Request::createFromGlobals();
        $response = $kernel->handle($request);
        $response->send();
        $kernel->terminate($request, $response);
    });
});

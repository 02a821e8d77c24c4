<?php
// The same application for Howdah's async mode. A kernel holds the state of its request, so each request gets a
// separate one from a pool.
require_once __DIR__ . '/bootstrap.php';

use Symfony\Component\HttpFoundation\Request;

$kernels = new Howdah\Pool(static function (): Orders\Kernel {
    $kernel = new Orders\Kernel('prod', false);
    $kernel->boot();
    return $kernel;
}, max: 16);
frankenphp_handle_request(static function () use ($kernels): void {
    $kernels->use(static function (Orders\Kernel $kernel): void {
        $request = Request::createFromGlobals();
        $response = $kernel->handle($request);
        $response->send();
        $kernel->terminate($request, $response);
    });
});

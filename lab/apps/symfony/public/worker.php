<?php
// The same application for runtimes that boot once: the kernel stays.
require_once __DIR__ . '/../bootstrap.php';

use Symfony\Component\HttpFoundation\Request;

$kernel = new Orders\Kernel('prod', false);
$kernel->boot();
$handle = static function () use ($kernel): void {
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
};
while (frankenphp_handle_request($handle)) {
}

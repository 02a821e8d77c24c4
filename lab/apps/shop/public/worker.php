<?php
// The same application for runtimes that boot once: the kernel stays, and with it the connection to MariaDB.
require_once __DIR__ . '/../bootstrap.php';

use Symfony\Component\HttpFoundation\Request;

$kernel = new Shop\Kernel('prod', false);
$kernel->boot();
$handle = static function () use ($kernel): void {
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
};
while (frankenphp_handle_request($handle)) {
}

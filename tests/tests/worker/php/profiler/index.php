<?php
// The bundle's test application, booted once if the mode keeps it, and for each request in classic mode.
require '__PACKAGE__/tests/support/app.php';

use Symfony\Component\HttpFoundation\Request;

App::$top = dirname(__DIR__) . '/app';
$kernel = new App('test', true);
$handle = static function () use ($kernel): void {
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
};
if (Howdah\mode() === 'classic') {
    $handle();

    return;
}
$kernel->boot();
while (frankenphp_handle_request($handle)) {
}

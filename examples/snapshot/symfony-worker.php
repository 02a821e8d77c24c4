<?php
/**
 * A Symfony application in snapshot mode: howdah serve public --mode snapshot --script public/symfony-worker.php
 *
 * The kernel boots once. Set `warmup` in howdah.toml to a few typical paths, so that the services they use are in the snapshot. No
 * service needs to be resettable: whatever a request changes is undone.
 */

use Symfony\Component\HttpFoundation\Request;

require dirname(__DIR__) . '/vendor/autoload.php';

$kernel = new App\Kernel($_SERVER['APP_ENV'] ?? 'prod', (bool) ($_SERVER['APP_DEBUG'] ?? false));
$kernel->boot();

$handle = static function () use ($kernel): void {
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
};

while (frankenphp_handle_request($handle)) {
}

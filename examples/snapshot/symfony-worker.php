<?php
/**
 * A Symfony application in snapshot mode: howdah serve public --mode snapshot --script public/symfony-worker.php
 *
 * The kernel boots once. Set `warmup` in howdah.toml to a few typical paths, so that the services they use are in the snapshot. No
 * service needs to be resettable: whatever a request changes is undone. When the container is built anew (cache:clear,
 * or in debug mode after a change of what it was made from), the application boots anew before the next request.
 */

use Symfony\Component\Config\ConfigCache;
use Symfony\Component\HttpFoundation\Request;

require dirname(__DIR__) . '/vendor/autoload.php';

$kernel = new App\Kernel($_SERVER['APP_ENV'] ?? 'prod', (bool) ($_SERVER['APP_DEBUG'] ?? false));
$kernel->boot();

$container = $kernel->getBuildDir() . '/' . (new ReflectionObject($kernel->getContainer()))->getShortName() . '.php';
$built = @filemtime($container) . ' ' . @fileinode($container);
Howdah\on_restore(static function () use ($container, $built, $kernel): void {
    clearstatcache(true, $container);
    if (@filemtime($container) . ' ' . @fileinode($container) !== $built
        || ($kernel->isDebug() && !(new ConfigCache($container, true))->isFresh())) {
        Howdah\boot_again('the container was built anew');
    }
});

$handle = static function () use ($kernel): void {
    $request = Request::createFromGlobals();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
};

while (frankenphp_handle_request($handle)) {
}

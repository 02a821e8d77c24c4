<?php
/**
 * A Laravel application in snapshot mode: howdah serve public --mode snapshot --script public/laravel-worker.php
 *
 * The application boots once, all of its service providers included. Set `warmup` in howdah.toml to a few typical paths, so that the
 * services they use are in the snapshot. Nothing has to be reset, flushed or bound anew, as Octane does for what it knows of:
 * whatever a request changes is undone. When .env, the files in config, routes and bootstrap/cache or the providers' list change
 * (config:cache, route:cache), the application boots anew before the next request.
 *
 * A service provider must not keep anything of the request that is there at boot (http://localhost).
 */

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;

require dirname(__DIR__) . '/vendor/autoload.php';

$app = require dirname(__DIR__) . '/bootstrap/app.php';
$kernel = $app->make(Kernel::class);
// It stays bound: what the boot makes of it is told of the request that takes its place.
$app->instance('request', Request::create('http://localhost'));
$kernel->bootstrap();

$sources = [
    $app->environmentFilePath(),
    ...glob($app->basePath('{config,routes,bootstrap,bootstrap/cache}'), GLOB_BRACE),
    ...glob($app->basePath('{config,routes,bootstrap,bootstrap/cache}/*.php'), GLOB_BRACE),
];
$state = static function () use ($sources): array {
    clearstatcache();

    return array_map(static fn (string $file): string => @filemtime($file) . ' ' . @fileinode($file), $sources);
};
$booted = $state();
Howdah\on_restore(static function () use ($state, $booted): void {
    if ($state() !== $booted) {
        Howdah\boot_again('the configuration has changed');
    }
});

$handle = static function () use ($app, $kernel): void {
    defined('LARAVEL_START') || define('LARAVEL_START', microtime(true));
    if (is_file($maintenance = $app->storagePath() . '/framework/maintenance.php')) {
        require $maintenance;
    }
    $request = Request::capture();
    $response = $kernel->handle($request);
    $response->send();
    $kernel->terminate($request, $response);
};

while (frankenphp_handle_request($handle)) {
}

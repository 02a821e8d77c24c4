<?php
/**
 * A Symfony application with its plain front controller in snapshot mode:
 * howdah serve public --mode snapshot --boot symfony-boot.php
 *
 * Put this file into the project's directory, next to `vendor`. It loads the classes of the framework, the container
 * and the services that a request needs, and discards the kernel: public/index.php creates its own in each request, as
 * usual. If the container is rebuilt (cache:clear), the application boots again before the next request, since its
 * classes may have changed too.
 */

use Symfony\Component\Dotenv\Dotenv;
use Symfony\Component\HttpFoundation\Request;

require_once __DIR__ . '/vendor/autoload.php';

(static function (): void {
    if (class_exists(Dotenv::class) && (is_file(__DIR__ . '/.env') || is_file(__DIR__ . '/.env.local.php'))) {
        (new Dotenv())->bootEnv(__DIR__ . '/.env', 'prod');
    }
    $kernel = new App\Kernel($_SERVER['APP_ENV'] ?? 'prod', (bool) ($_SERVER['APP_DEBUG'] ?? false));
    // Any response will do, even 404: its purpose is to load classes.
    $kernel->terminate($request = Request::create('/'), $kernel->handle($request));
    $container = $kernel->getBuildDir() . '/' . (new ReflectionObject($kernel->getContainer()))->getShortName() . '.php';
    $kernel->shutdown();

    $built = @filemtime($container) . ' ' . @fileinode($container);
    Howdah\on_restore(static function () use ($container, $built): void {
        clearstatcache(true, $container);
        if (@filemtime($container) . ' ' . @fileinode($container) !== $built) {
            Howdah\boot_again('the container was built anew');
        }
    });
})();

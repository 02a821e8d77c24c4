<?php
/**
 * A Laravel application in snapshot mode: howdah serve public --mode snapshot --script public/laravel-worker.php
 *
 * The application boots once, service providers included. Set `warmup` in howdah.toml to a few typical paths, so that
 * the services they use are in the snapshot. Changes by requests are undone, those by the warm-up are not: the code
 * below therefore resets everything that belongs to a visitor, as Octane does before each request. Reset your own
 * services that keep request data there too, or bind them with scoped(). The server compares two visitors before it
 * serves. If .env or a file in config, routes, bootstrap or bootstrap/cache changes (config:cache, route:cache), the
 * application boots again before the next request.
 *
 * A service provider must not keep the request of the boot (http://localhost).
 */

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Facade;

require dirname(__DIR__) . '/vendor/autoload.php';

$app = require dirname(__DIR__) . '/bootstrap/app.php';
$kernel = $app->make(Kernel::class);
// It stays bound: services made from it during the boot are notified when another request replaces it.
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

/** Restores what warm-up requests have changed to its state after the boot. */
Howdah\after_warmup((static function () use ($app): Closure {
    $peek = static fn (object $of, string $property): mixed => (fn () => $this->$property ?? null)->call($of);
    $poke = static function (object $of, string $property, mixed $value): void {
        (function () use ($property, $value): void {
            if (property_exists($this, $property)) {
                $this->$property = $value;
            }
        })->call($of);
    };
    // Calls the first of these methods that this version of Laravel has.
    $call = static function (?object $of, string ...$methods): void {
        foreach ($methods as $method) {
            if ($of !== null && method_exists($of, $method)) {
                $of->$method();

                return;
            }
        }
    };
    $made = static fn (string $name): ?object => $app->resolved($name) && is_object($one = $app->make($name)) ? $one : null;

    $config = $app['config']->all();
    $locale = [$app->getLocale(), $made('translator')?->getFallback()];
    $shared = $made('view')?->getShared();
    $url = $made('url');
    $addresses = array_map(static fn (string $name) => $url ? $peek($url, $name) : null, ['root' => 'forcedRoot', 'scheme' => 'forceScheme']);
    $defaults = $url?->getDefaultParameters() ?? [];
    $terminating = $peek($app, 'terminatingCallbacks');

    return static function () use ($app, $poke, $call, $made, $config, $locale, $shared, $terminating, $addresses, $defaults): void {
        $octane = 'Laravel\Octane\Octane';
        if (class_exists($octane)) {
            $event = new Laravel\Octane\Events\RequestReceived($app, $app, $app->make('request'));
            foreach ($octane::prepareApplicationForNextOperation() as $listener) {
                $app->make($listener)->handle($event);
            }
            array_map([$app, 'forgetInstance'], $app['config']->get('octane.flush', []));
        }

        // The visitor: session, user, cookies, and services that hold the session.
        if ($session = $made('session')) {
            method_exists($session, 'forgetDrivers') ? $session->forgetDrivers() : $poke($session, 'drivers', []);
        }
        $call($made('auth'), 'forgetGuards');
        $call($made('cookie'), 'flushQueuedCookies');
        foreach (['session.store', 'auth.driver', 'redirect'] as $name) {
            $app->forgetInstance($name);
        }
        $call($app, 'forgetScopedInstances');
        $poke($app, 'terminatingCallbacks', $terminating);

        // The request. Routes keep their controllers, the router keeps the last route.
        $app->instance('request', Request::create('http://localhost'));
        if ($router = $made('router')) {
            $poke($router, 'current', null);
            $poke($router, 'currentRequest', null);
            foreach ($router->getRoutes()->getRoutes() as $route) {
                method_exists($route, 'flushController') ? $route->flushController() : $poke($route, 'controller', null);
            }
        }
        if ($url = $made('url')) {
            $poke($url, 'forcedRoot', $addresses['root']);
            $poke($url, 'forceScheme', $addresses['scheme']);
            $poke($url, 'routeGenerator', null);
            $url->defaults($defaults);
        }
        if ($view = $made('view')) {
            $poke($view, 'shared', $shared ?? array_intersect_key($view->getShared(), ['__env' => 1, 'app' => 1]));
            $call($view, 'flushState');
        }

        // Settings, and data in memory.
        $poke($app['config'], 'items', $config);
        if ($translator = $made('translator')) {
            $app->setLocale($locale[0]);
            $translator->setFallback($locale[1] ?? $config['app']['fallback_locale'] ?? $locale[0]);
        }
        if (($cache = $made('cache')) && isset($config['cache']['stores']['array'])) {
            $cache->store('array')->flush();
        }
        foreach ($made('db')?->getConnections() ?? [] as $connection) {
            while ($connection->transactionLevel() > 0) {
                $connection->rollBack();
            }
            $connection->flushQueryLog();
            $call($connection, 'forgetRecordModificationState');
            // Files and locks of SQLite must not be open at the snapshot.
            if ($connection->getDriverName() === 'sqlite' && $connection->getDatabaseName() !== ':memory:') {
                $connection->disconnect();
            }
        }
        if ($log = $made('log')) {
            $call($log, 'flushSharedContext');
            foreach (method_exists($log, 'getChannels') ? $log->getChannels() : [] as $channel) {
                $call($channel, 'withoutContext');
                $call(method_exists($channel, 'getLogger') ? $channel->getLogger() : null, 'reset');
            }
        }
        $call($made('Illuminate\Foundation\Vite'), 'flush');
        if (class_exists('Illuminate\Support\Once', false)) {
            Illuminate\Support\Once::flush();
        }
        Facade::clearResolvedInstances();
    };
})());

$answered = null;
$handle = static function () use ($app, $kernel, &$answered): void {
    defined('LARAVEL_START') || define('LARAVEL_START', microtime(true));
    if (is_file($maintenance = $app->storagePath() . '/framework/maintenance.php')) {
        require $maintenance;
    }
    $request = Request::capture();
    $response = $kernel->handle($request);
    $answered = [$request, $response];
    $response->send();
};

while (frankenphp_handle_request($handle)) {
    // The client has its response.
    if ($answered !== null) {
        $kernel->terminate(...$answered);
        $answered = null;
    }
}

<?php

/**
 * Boots an unmodified Laravel application once for many requests: the server runs this instead of the application's own
 * front controller.
 *
 * Snapshot mode, with or without Octane: the kernel has booted before the first request, including all service providers.
 * Changes made by requests are undone. Changes made by the warm-up's requests are not, so after the warm-up everything that
 * belongs to a visitor is reset below, as Octane does before each request. When .env, the files in config, routes and
 * bootstrap or the providers' list change (config:cache, route:cache), the application boots again before the next request.
 *
 * Worker mode: Octane's own worker, since only Octane resets the changes of one request before the next.
 *
 * The front controller does not run, so it must be Laravel's own: this file detects any other, and the server continues in
 * classic mode. Written for Laravel 8 to 12.
 */

declare(strict_types=1);

namespace Howdah\Recipes\Laravel;

use Illuminate\Contracts\Http\Kernel;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Facade;

/** The statements of Laravel's front controllers, with one space between any two words. */
const STATEMENTS = [
    'use [\w\\\\]+ ;',
    'declare \( [^;]+ \) ;',
    'define \( \'LARAVEL_START\' , microtime \( true \) \) ;',
    'if \( (?:file_exists|is_file) \( (?:\$maintenance = )?[^;(){}]*maintenance\.php\' \) \) \{ require [^;]* ; \}',
    'require(?:_once)? __DIR__ \. \'\/\.\.\/vendor\/autoload\.php\' ;',
    '\$app = require_once __DIR__ \. \'\/\.\.\/bootstrap\/app\.php\' ;',
    '\$kernel = \$app -> make \( [\w\\\\]+ :: class \) ;',
    '\$response = (?:tap \( )?\$kernel -> handle \( \$request = Request :: capture \( \) \)(?: \))? -> send \( \) ;',
    '\$response -> send \( \) ;',
    '\$response = \$kernel -> handle \( \$request = Request :: capture \( \) \) ;',
    '\$kernel -> terminate \( \$request , \$response \) ;',
    '(?:\( require_once __DIR__ \. \'\/\.\.\/bootstrap\/app\.php\' \)|\$app) -> handleRequest \( Request :: capture \( \) \) ;',
];

/** Returns the first statement of a front controller that is not one of Laravel's; null if there is none. */
function foreign_statement(string $file): ?string
{
    $words = [];
    foreach (token_get_all((string) file_get_contents($file)) as $token) {
        if (!\is_array($token) || !\in_array($token[0], [T_WHITESPACE, T_COMMENT, T_DOC_COMMENT, T_OPEN_TAG], true)) {
            $words[] = \is_array($token) ? $token[1] : $token;
        }
    }
    $rest = preg_replace('/\G(?:(?:' . implode('|', STATEMENTS) . ')\s*)/', '', implode(' ', $words));

    return trim((string) $rest) === '' ? null : substr($rest, 0, 80);
}

/** Ends the boot: the server continues in classic mode. */
function give_up(string $why): never
{
    \frankenphp_log("recipe laravel: $why", 8);
    exit(1);
}

/** Returns a function that resets the services used by the warm-up's requests to their state after the boot. */
function reset_after_warmup(\Illuminate\Foundation\Application $app): \Closure
{
    $peek = static fn (object $of, string $property): mixed => (fn () => $this->$property ?? null)->call($of);
    $poke = static function (object $of, string $property, mixed $value): void {
        (function () use ($property, $value): void {
            if (property_exists($this, $property)) {
                $this->$property = $value;
            }
        })->call($of);
    };
    // Calls the first of these methods that exists in this version of Laravel.
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
    $zone = date_default_timezone_get();
    $numbers = class_exists(\Illuminate\Support\Number::class) ? new \ReflectionClass(\Illuminate\Support\Number::class) : null;
    $formats = array_intersect_key($numbers?->getStaticProperties() ?? [], ['locale' => 1, 'currency' => 1]);

    return static function () use (
        $app, $poke, $call, $made, $config, $locale, $shared, $terminating, $addresses, $defaults, $zone, $numbers, $formats
    ): void {
        $octane = 'Laravel\Octane\Octane';
        if (class_exists($octane)) {
            $event = new \Laravel\Octane\Events\RequestReceived($app, $app, $app->make('request'));
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

        // The request: routes keep their controllers, and the router the last route.
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

        // Settings and data kept in memory.
        $poke($app['config'], 'items', $config);
        if ($translator = $made('translator')) {
            $app->setLocale($locale[0]);
            $translator->setFallback($locale[1] ?? $config['app']['fallback_locale'] ?? $locale[0]);
        }
        date_default_timezone_set($zone);
        foreach ($formats as $name => $value) {
            $numbers->setStaticPropertyValue($name, $value);
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
            // A page may have added one that is not in the settings.
            $isSet = isset($config['database']['connections'][$connection->getName()]);
            if ($connection->getDriverName() === 'pgsql' && is_encrypted($connection)) {
                $connection->disconnect();
            } elseif ($isSet && \in_array($connection->getDriverName(), ['mysql', 'mariadb', 'pgsql'], true)) {
                connect_workers($app->make('db'), $connection);
            }
        }
        foreach ($made('redis')?->connections() ?? [] as $connection) {
            connect_workers_to_redis($connection);
        }
        if ($log = $made('log')) {
            $call($log, 'flushSharedContext');
            foreach (method_exists($log, 'getChannels') ? $log->getChannels() : [] as $channel) {
                $call($channel, 'withoutContext');
                $call(method_exists($channel, 'getLogger') ? $channel->getLogger() : null, 'reset');
            }
        }
        $call($made('Illuminate\Foundation\Vite'), 'flush');
        // Its exception page lists all queries so far.
        if ($listener = $made('Illuminate\Foundation\Exceptions\Renderer\Listener')) {
            $poke($listener, 'queries', []);
        }
        if (class_exists('Illuminate\Support\Once', false)) {
            \Illuminate\Support\Once::flush();
        }
        Facade::clearResolvedInstances();
    };
}

/**
 * Has each worker open this connection, otherwise workers could not share this boot: what is connected now, to write, to
 * read, or both.
 */
function connect_workers(\Illuminate\Database\DatabaseManager $database, \Illuminate\Database\Connection $connection): void
{
    $writes = $connection->getRawPdo() instanceof \PDO;
    $reads = $connection->getRawReadPdo() instanceof \PDO;
    if ($writes || $reads) {
        \Howdah\connect_each_worker(static function () use ($database, $connection, $writes): void {
            $database->reconnect($connection->getName());
            $writes ? $connection->getPdo() : $connection->getReadPdo();
        });
    }
    if ($writes && $reads) {
        \Howdah\connect_each_worker(static fn () => $connection->getReadPdo());
    }
}

/** PostgreSQL's library encrypts by default, if the server can. Such a connection cannot be in a snapshot. */
function is_encrypted(\Illuminate\Database\Connection $connection): bool
{
    try {
        foreach ([$connection->getRawPdo(), $connection->getRawReadPdo()] as $pdo) {
            if ($pdo instanceof \PDO && $pdo->query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()')->fetchColumn()) {
                return true;
            }
        }
    } catch (\PDOException) {
        return true;
    }

    return false;
}

/** Like connect_workers(), for phpredis. Its connections keep the function that opens them. */
function connect_workers_to_redis(object $connection): void
{
    if (!$connection instanceof \Illuminate\Redis\Connections\PhpRedisConnection || !$connection->client() instanceof \Redis) {
        return;
    }
    $reconnect = function (): void {
        if ($this->connector && $this->client->isConnected() && $this->client->getPersistentID() === null) {
            $this->client->close();
            $this->client = ($this->connector)();
        }
    };
    \Howdah\connect_each_worker($reconnect->bindTo($connection, $connection::class));
}

/**
 * Warms up the framework's code before any request has run: its services, deferred providers, the routes, the models, and
 * one request that ends in the 404 page. No controller runs. An error here occurs again in the request that needs the
 * failing part, and is reported there.
 */
function warm_code(\Illuminate\Foundation\Application $app, Kernel $kernel): void
{
    $attempt = static function (\Closure $act): void {
        try {
            $act();
        } catch (\Throwable) {
        }
    };
    ob_start();
    set_error_handler(static fn (): bool => true);
    $attempt(static fn () => $app->loadDeferredProviders());
    $services = ['auth', 'cache', 'config', 'cookie', 'db', 'db.factory', 'db.transactions', 'encrypter', 'events', 'files', 'hash',
        'log', 'router', 'routes', 'session', 'translator', 'url', 'validator', 'view', 'view.finder', 'blade.compiler'];
    foreach ($services as $name) {
        $attempt(static fn () => $app->bound($name) && $app->make($name));
    }
    $attempt(static fn () => $app->make('view')->getEngineResolver()->resolve('blade'));
    foreach (glob($app->path('Models/*.php')) ?: [] as $file) {
        $model = $app->getNamespace() . 'Models\\' . basename($file, '.php');
        $attempt(static fn () => is_subclass_of($model, \Illuminate\Database\Eloquent\Model::class) && new $model());
    }
    $request = Request::create('http://localhost/' . bin2hex(random_bytes(8)));
    $isThere = false;
    $attempt(static function () use ($app, $request, &$isThere): void {
        $app->make('router')->getRoutes()->match($request);
        $isThere = true;
    });
    // A route may match any path.
    $isThere || $attempt(static fn () => $kernel->handle($request));
    restore_error_handler();
    ob_end_clean();
}

/**
 * Returns the files of settings and routes that the boot has read, with their directories: each request checks them. Once
 * `config:cache` or `route:cache` has run, Laravel does not read the other files either.
 */
function settings(\Illuminate\Foundation\Application $app): array
{
    $parts = '{config,routes,bootstrap,bootstrap/cache}';
    $read = array_flip(get_included_files());
    $files = array_filter(
        glob($app->basePath("$parts/*.php"), GLOB_BRACE) ?: [],
        static fn (string $file): bool => isset($read[realpath($file)]),
    );

    return [...array_unique([$app->basePath('bootstrap/cache'), ...array_map('dirname', $files)]), ...$files];
}

/** Serves one request after the other, with a booted application. */
function serve(string $base): void
{
    $began = time();
    $there = scandir($base) ?: [];
    $before = $_SERVER;
    require $base . '/vendor/autoload.php';
    $app = require $base . '/bootstrap/app.php';
    $kernel = $app->make(Kernel::class);
    // It stays bound: callbacks that the boot registers for it are called for the request that replaces it.
    $app->instance('request', Request::create('http://localhost'));
    $kernel->bootstrap();
    // Variables that .env has added, and the application's own files.
    $added = array_diff_key($_SERVER, $before);

    $sources = [$app->environmentFilePath(), ...settings($app)];
    $state = static function () use ($sources): array {
        clearstatcache();

        return array_map(static fn (string $file): string => @filemtime($file) . ' ' . @fileinode($file), $sources);
    };
    $booted = $state();
    $now = time();
    foreach ($sources as $at => $file) {
        $changed = (int) @filectime($file);
        $gone = !file_exists($file) && \in_array(basename($file), $there, true);
        if ($gone || $changed >= $began && $changed <= $now) {
            // The boot may have read the file before that change.
            $booted[$at] = 'changed while the application booted';
        }
    }
    \Howdah\on_restore(static function () use ($state, $booted): void {
        if ($state() !== $booted) {
            \Howdah\boot_again('the configuration has changed');
        }
    });
    $reset = reset_after_warmup($app);
    if ($app['config']->get('app.debug')) {
        // No request runs outdated code.
        ini_set('opcache.revalidate_freq', '0');
    } else {
        warm_code($app, $kernel);
        $reset();
    }
    \Howdah\after_warmup($reset);

    $answered = null;
    $handle = static function () use ($app, $kernel, $added, &$answered): void {
        $_SERVER += $added;
        $start = microtime(true);
        // A request of the warm-up may have defined it.
        \Howdah\redefine('LARAVEL_START', $start) || \defined('LARAVEL_START') || \define('LARAVEL_START', $start);
        if (is_file($maintenance = $app->storagePath() . '/framework/maintenance.php')) {
            require $maintenance;
        }
        $request = Request::capture();
        $response = $kernel->handle($request);
        $answered = [$request, $response];
        \Howdah\route((string) $request->route()?->uri());
        $response->send();
    };
    while (\frankenphp_handle_request($handle)) {
        // The client has its response.
        if ($answered !== null) {
            $kernel->terminate(...$answered);
            $answered = null;
        }
    }
}

/** Octane's worker, with the variables that `octane:start` sets. */
function run_octane(string $base, string $public): void
{
    $worker = $base . '/vendor/laravel/octane/bin/frankenphp-worker.php';
    if (!is_file($worker)) {
        give_up("worker mode needs Laravel Octane, but $worker does not exist; snapshot mode works without it");
    }
    $variables = ['APP_BASE_PATH' => $base, 'APP_PUBLIC_PATH' => $public, 'LARAVEL_OCTANE' => '1', 'MAX_REQUESTS' => (string) PHP_INT_MAX];
    $_SERVER = $variables + $_SERVER;
    $_ENV = $variables + $_ENV;
    require $worker;
}

(static function (): void {
    $front = $_SERVER['SCRIPT_FILENAME'];
    $foreign = foreign_statement($front);
    if ($foreign !== null) {
        give_up("$front is not Laravel's own: $foreign");
    }
    $snapshot = \Howdah\mode() === 'snapshot';
    $snapshot ? serve(\dirname($front, 2)) : run_octane(\dirname($front, 2), \dirname($front));
})();
// The front controller must not run.
exit(0);

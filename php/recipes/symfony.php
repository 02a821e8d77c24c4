<?php

/**
 * Boots an unmodified Symfony application once for many requests, in snapshot and in worker mode: the server runs this
 * before the application's own front controller, which then requests a runtime and gets the one below. The kernel has booted
 * before the first request, `.env` included, and `terminate()` runs when the client has its response. When the container is
 * rebuilt (cache:clear) or `.env` changes, the application boots again before the next request, in worker mode after
 * it; in debug mode also when one of its loaded files has changed.
 *
 * The front controller runs once, so it must do nothing but return the application: this file detects anything else, and the
 * server continues in classic mode. Written for symfony/runtime 5.3 to 7.
 */

declare(strict_types=1);

namespace Howdah\Recipes\Symfony;

/** The id of a warm-up request. */
const OF_WARM_UP = '0000000000000000';
/** Time when the boot began. A file that has changed since may have been read before the change. */
\define(__NAMESPACE__ . '\BEGAN', time());
/** The project's directory at that time. A file that was removed since may have been read before. */
\define(__NAMESPACE__ . '\THERE', scandir(\dirname($_SERVER['SCRIPT_FILENAME'], 2)) ?: []);

use Symfony\Component\Config\ConfigCache;
use Symfony\Component\DependencyInjection\ContainerInterface;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Exception\NotFoundHttpException;
use Symfony\Component\HttpKernel\HttpCache\HttpCache;
use Symfony\Component\HttpKernel\HttpKernelInterface;
use Symfony\Component\HttpKernel\KernelInterface;
use Symfony\Component\HttpKernel\TerminableInterface;
use Symfony\Component\Routing\Exception\ResourceNotFoundException;
use Symfony\Component\Runtime\RunnerInterface;
use Symfony\Component\Runtime\SymfonyRuntime;

/** Analyses the front controller without running it. */
final class FrontController
{
    /** Statements that may precede the return of the application. */
    private const HARMLESS = '(?:use [^;]+ ; |declare \( [^;]+ \) ; |require_once [^;]*autoload_runtime\.php[\'"] ; '
        . '|(?:umask|ini_set|set_time_limit|date_default_timezone_set|define|error_reporting) \( [^;$]* \) ; '
        . '|\$_SERVER \[ \'APP_RUNTIME_OPTIONS\' \] = \[ [^;$]*\] ; )*';

    /** The application, created from the environment. */
    private const APPLICATION = 'return (?:static )?(?:function|fn) \( array \$context \) (?:: [\w\\\\]+ )?(?<body>.*)';

    /** Variables of a request. */
    private const OF_REQUESTS = '\$_(?:GET|POST|COOKIE|FILES|REQUEST|SERVER|SESSION)\b|createFromGlobals|getallheaders|php:\/\/input'
        . '|\$context(?! \[ \'(?!HTTP|REMOTE_|REQUEST_|SERVER_|QUERY_|PATH_|PHP_|CONTENT_|SCRIPT_)[A-Z][A-Z0-9_]*\' \])';

    /** Returns the reason why this front controller cannot run once for many requests; null if it can. */
    public static function obstacle(string $file): ?string
    {
        $code = self::code($file);
        if (!str_contains($code, 'autoload_runtime.php')) {
            return 'it does not use symfony/runtime';
        }
        if (!preg_match('/^' . self::HARMLESS . self::APPLICATION . '$/s', $code, $found)) {
            return 'it does more than return the application';
        }
        if (preg_match('/' . self::OF_REQUESTS . '/', $found['body'])) {
            return 'the application that it returns depends on the request';
        }

        return null;
    }

    /** Returns its code without comments, with one space between any two words. */
    private static function code(string $file): string
    {
        $words = [];
        foreach (token_get_all((string) file_get_contents($file)) as $token) {
            if (!\is_array($token) || !\in_array($token[0], [T_WHITESPACE, T_COMMENT, T_DOC_COMMENT, T_OPEN_TAG], true)) {
                $words[] = \is_array($token) ? $token[1] : $token;
            }
        }

        return implode(' ', $words);
    }
}

/** The variables that the boot has added (`.env`, bundles) and that each request must have. */
final class Variables
{
    /** Variables that the recipe itself needs. */
    private const OWN = ['APP_RUNTIME' => 1, 'argv' => 1, 'argc' => 1];

    /** Set until the runtime has them. */
    public static ?self $ofBoot = null;

    private array $added = [];
    private array $changed = [];

    public function __construct(private readonly array $before)
    {
    }

    public function booted(): void
    {
        $this->added = array_diff_key($_SERVER, $this->before, self::OWN);
        $this->changed = array_filter(
            array_intersect_key($_SERVER, $this->before),
            fn (mixed $value, string|int $name): bool => $value !== $this->before[$name],
            ARRAY_FILTER_USE_BOTH,
        );
    }

    public function bring(): void
    {
        $_SERVER += $this->added;
        foreach ($this->changed as $name => $value) {
            if (($_SERVER[$name] ?? null) === $this->before[$name]) {
                $_SERVER[$name] = $value;
            }
        }
    }
}

/** The files that the boot has read, and a check for changes. */
final class Sources
{
    private readonly string $container;
    private readonly array $settings;
    private array $known;
    private array $code = [];

    public function __construct(private readonly KernelInterface $kernel)
    {
        $built = method_exists($kernel, 'getBuildDir') ? $kernel->getBuildDir() : $kernel->getCacheDir();
        $this->container = $built . '/' . (new \ReflectionObject($kernel->getContainer()))->getShortName() . '.php';
        $env = $kernel->getProjectDir() . '/.env';
        $own = $env . '.' . $kernel->getEnvironment();
        $this->settings = [$env, "$env.local", "$env.local.php", $own, "$own.local"];
        $this->known = self::marks([$this->container]) + self::read($this->settings);
    }

    /** In debug mode, each request must see code changes, as in classic mode. */
    public function note(): void
    {
        if ($this->kernel->isDebug()) {
            $generated = [$this->kernel->getProjectDir() . '/vendor/', $this->kernel->getCacheDir() . '/'];
            $isOwn = static fn (string $file): bool => is_file($file)
                && array_filter($generated, static fn (string $dir): bool => str_starts_with($file, $dir)) === [];
            $this->code = self::read(array_filter(get_included_files(), $isOwn));
        }
    }

    public function outdated(): ?string
    {
        clearstatcache();
        $now = self::marks(array_keys($this->known));
        $changed = array_diff_assoc(self::marks(array_keys($this->code)), $this->code);
        $why = match (true) {
            $now[$this->container] !== $this->known[$this->container] => 'the container was built anew',
            $now !== $this->known => '.env has changed',
            $changed !== [] => array_key_first($changed) . ' has changed',
            $this->kernel->isDebug() && !(new ConfigCache($this->container, true))->isFresh() => 'a file that the container was built from has changed',
            default => null,
        };
        if ($why !== null && \function_exists('opcache_invalidate')) {
            // Otherwise the next boot would get these files from the cache, which checks them only some seconds later.
            foreach ([...array_keys($now), ...array_keys($this->code)] as $file) {
                @opcache_invalidate($file);
            }
        }

        return $why;
    }

    /**
     * Returns marks of the files that the boot has read. A file that has changed since the boot began gets one that no
     * file has: the inode's change time tells, because rsync and touch set the modification time to any value.
     */
    private static function read(array $files): array
    {
        clearstatcache();
        $now = time();
        $marks = self::marks($files);
        foreach ($marks as $file => $mark) {
            $changed = (int) @filectime($file);
            $gone = $mark === '' && \in_array(basename($file), \constant(__NAMESPACE__ . '\THERE'), true);
            if ($gone || $changed >= \constant(__NAMESPACE__ . '\BEGAN') && $changed <= $now) {
                $marks[$file] = 'changed while the application booted';
            }
        }

        return $marks;
    }

    private static function marks(array $files): array
    {
        // One system call each: PHP caches the status of the last existing file, and stops after the first check of a
        // missing one.
        $mark = static fn (string $file): string => is_file($file) ? filemtime($file) . ' ' . fileinode($file) . ' ' . filesize($file) : '';

        return array_combine($files, array_map($mark, $files));
    }
}

/**
 * Loads what most requests need before any request has run: routes, translations, metadata, and, by one request that ends in
 * an error page, the listeners and the firewall. No controller runs. A step skips parts that the application does not have.
 * An error here occurs again in the request that needs the failing part, which reports it.
 *
 * The learned warm-up loads the rest. Loading all classes of the preload file, all public services, all templates and API
 * Platform's documentation made the boot of Sylius 3.5 times as long and its workers half as large again, and requests no
 * faster.
 */
final class WarmCode
{
    private const STEPS = ['loadRoutes', 'loadTexts', 'loadMetadata', 'askForAnError'];

    private readonly ContainerInterface $container;

    public function __construct(private readonly KernelInterface $kernel)
    {
        $this->container = $kernel->getContainer();
    }

    public function load(): void
    {
        $zone = date_default_timezone_get();
        ob_start();
        set_error_handler(static fn (): bool => true);
        foreach (self::STEPS as $step) {
            self::attempt($this->$step(...));
        }
        // A kernel that has handled requests resets its services when it is booted again.
        $this->kernel->boot();
        restore_error_handler();
        ob_end_clean();
        date_default_timezone_set($zone);
    }

    private static function attempt(\Closure $act): mixed
    {
        try {
            return $act();
        } catch (\Throwable) {
            return null;
        }
    }

    /** Returns a public service, if there is one with this name. */
    private function service(string $name): ?object
    {
        return $this->container->has($name) ? self::attempt(fn (): ?object => $this->container->get($name)) : null;
    }

    private function loadRoutes(): void
    {
        $router = $this->service('router');
        self::attempt(static fn () => $router?->match('/' . bin2hex(random_bytes(8))));
        self::attempt(static fn () => $router?->generate(bin2hex(random_bytes(8))));
    }

    private function loadTexts(): void
    {
        $translator = $this->service('translator');
        $of = fn (string $name): mixed => $this->container->hasParameter($name) ? $this->container->getParameter($name) : null;
        foreach (array_unique([$of('kernel.default_locale'), ...(array) $of('kernel.enabled_locales')]) as $locale) {
            self::attempt(static fn () => $translator?->getCatalogue($locale));
        }
    }

    /** Loads metadata of the application's classes: compiled metadata, and Doctrine's. */
    private function loadMetadata(): void
    {
        foreach (['validation' => 'validator', 'serialization' => 'serializer.mapping.class_metadata_factory'] as $cache => $name) {
            $factory = $this->service($name);
            $known = self::attempt(fn () => include $this->kernel->getCacheDir() . "/$cache.php");
            foreach (array_keys($known[0] ?? []) as $class) {
                $class = strtr($class, '.', '\\');
                self::attempt(static fn () => class_exists($class) && $factory?->getMetadataFor($class));
            }
        }
        foreach ($this->service('doctrine')?->getManagers() ?? [] as $manager) {
            self::attempt(static fn () => $manager->getMetadataFactory()->getAllMetadata());
        }
    }

    /**
     * Sends a request through the whole stack, including listeners and firewall, to the error page. It matches no route; the
     * path is one that no visitor knows, because a listener may cache the page.
     */
    private function askForAnError(): void
    {
        $page = fn (): Response => $this->container->get('error_controller')(new NotFoundHttpException());
        $request = Request::create('http://' . ($_SERVER['HTTP_HOST'] ?? 'localhost') . '/' . bin2hex(random_bytes(8)));
        $request->attributes->set('_controller', $page);
        // Calls the kernel directly: a cache around it would keep the page. An application with trusted hosts would refuse
        // this host.
        Request::getTrustedHosts() !== [] || $this->kernel->handle($request);
    }
}

/**
 * Removes objects that the warm-up's requests have left in services although the kernel has reset them: entities, which
 * their manager no longer knows, and requests. If a property that is initially null or an empty array holds one, it comes
 * from a request.
 */
final class Leftovers
{
    /** Maximum number of objects to examine. */
    private const MOST = 500_000;

    private array $entities = [];
    private array $known = [];

    public function __construct(private readonly ContainerInterface $container)
    {
        $doctrine = $container->initialized('doctrine') ? $container->get('doctrine') : null;
        try {
            foreach ($doctrine?->getManagers() ?? [] as $manager) {
                foreach ($manager->getMetadataFactory()->getAllMetadata() as $metadata) {
                    $this->entities[$metadata->getName()] = true;
                }
            }
        } catch (\Throwable) {
            // A class with wrong metadata: requests that need it report that.
        }
    }

    public function drop(): void
    {
        $seen = [];
        $next = [$this->container];
        while ($next !== [] && \count($seen) < self::MOST) {
            $object = array_pop($next);
            if (isset($seen[spl_object_id($object)]) || $object instanceof \Closure) {
                continue;
            }
            $seen[spl_object_id($object)] = true;
            if (str_starts_with($object::class, 'Doctrine\\')) {
                continue;
            }
            $isContainer = $object instanceof ContainerInterface;
            foreach ((array) $object as $name => $value) {
                if (!$isContainer && $this->isLeft($value)) {
                    self::empty($object, (string) $name, $value);
                } elseif (\is_object($value)) {
                    $next[] = $value;
                } elseif (\is_array($value)) {
                    array_walk_recursive($value, static function (mixed $part) use (&$next): void {
                        \is_object($part) && $next[] = $part;
                    });
                }
            }
        }
    }

    private function isLeft(mixed $value, int $depth = 0): bool
    {
        if (\is_array($value) || $value instanceof \SplObjectStorage) {
            foreach ($depth < 3 ? $value : [] as $part) {
                if ($this->isLeft($part, $depth + 1)) {
                    return true;
                }
            }

            return false;
        }

        return \is_object($value) && ($this->known[$value::class] ??= $this->isOfRequest($value));
    }

    private function isOfRequest(object $one): bool
    {
        return $one instanceof Request
            || array_intersect_key($this->entities, [$one::class => true] + class_parents($one)) !== [];
    }

    private static function empty(object $object, string $mangled, mixed $value): void
    {
        if ($value instanceof \SplObjectStorage) {
            $value->removeAll($value);

            return;
        }
        $parts = explode("\0", $mangled);
        $class = ($parts[1] ?? '*') === '*' ? $object : $parts[1];
        $name = end($parts);
        if (!property_exists($class, $name)) {
            return;
        }
        $property = new \ReflectionProperty($class, $name);
        if ($property->hasDefaultValue() && ($property->getDefaultValue() ?? []) === []) {
            $property->setValue($object, $property->getDefaultValue());
        }
    }
}

/** Size in bytes of a booted application above which a connection per request costs less than a boot per worker. */
const LARGE = 8 << 20;

/** The system that a connection of Doctrine's DBAL, from version 3.3 on, is connected to: mysql, pgsql, or "". */
function connected_to(object $connection): string
{
    if (!$connection instanceof \Doctrine\DBAL\Connection || !method_exists($connection, 'getNativeConnection')) {
        return '';
    }
    $driver = $connection->getParams()['driver'] ?? $connection->getDriver()::class;

    return $connection->isConnected() && preg_match('/mysql|pgsql/i', $driver, $found) === 1 ? strtolower($found[0]) : '';
}

/** PostgreSQL's library encrypts by default, if the server can. */
function is_encrypted(\Doctrine\DBAL\Connection $connection): bool
{
    try {
        return (bool) $connection->fetchOne('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()');
    } catch (\Doctrine\DBAL\Exception) {
        return true;
    }
}

/**
 * Processes cannot share a connection, so with one open at the snapshot each worker would boot separately. One to MySQL or
 * PostgreSQL is opened again in each worker. Encrypted ones to PostgreSQL cannot be in a snapshot: they are closed, and
 * so are those of a large application to other servers. Doctrine reconnects in the request that needs it.
 */
function share_boot(KernelInterface $kernel): void
{
    if (!$kernel->getContainer()->initialized('doctrine')) {
        return;
    }
    foreach ($kernel->getContainer()->get('doctrine')->getConnections() as $connection) {
        $system = connected_to($connection);
        if ($system === 'mysql' || ($system === 'pgsql' && !is_encrypted($connection))) {
            \Howdah\connect_each_worker(static function () use ($connection): void {
                $connection->close();
                $connection->getNativeConnection();
            });
        } elseif ($system === 'pgsql' || memory_get_usage() >= LARGE) {
            $connection->close();
        }
    }
}

/** Declares the classes that extend or implement Symfony's: that requires Symfony's autoloader. */
function declare_classes(): void
{
    /** Symfony's own runtime, with an application that runs for many requests. */
    class Runtime extends SymfonyRuntime
    {
        public function getRunner(?object $application): RunnerInterface
        {
            if (!$application instanceof HttpKernelInterface) {
                throw new \LogicException('the front controller returns ' . get_debug_type($application) . ', which is not a kernel');
            }

            return new Runner($application, Variables::$ofBoot);
        }
    }

    /** Runs one request after the other. */
    class Runner implements RunnerInterface
    {
        private ?Request $request = null;
        private ?Response $response = null;
        private ?Sources $sources = null;

        public function __construct(private readonly HttpKernelInterface $application, private readonly Variables $variables)
        {
        }

        public function run(): int
        {
            unset($_SERVER['APP_RUNTIME'], $_ENV['APP_RUNTIME']);
            $snapshot = \Howdah\mode() === 'snapshot';
            if (!$snapshot) {
                $_ENV['APP_RUNTIME_MODE'] = 'web=1&worker=1';
            }
            $kernel = $this->kernel();
            if ($kernel !== null) {
                $kernel->boot();
                $this->sources = new Sources($kernel);
                if ($kernel->isDebug()) {
                    // No request runs outdated code.
                    ini_set('opcache.revalidate_freq', '0');
                } elseif ($snapshot) {
                    (new WarmCode($kernel))->load();
                }
                $this->sources->note();
            }
            // Bundles set some when they boot, which happens in each request in classic mode.
            $this->variables->booted();
            if ($snapshot && $kernel !== null) {
                \Howdah\on_restore(function (): void {
                    $changed = $this->sources->outdated();
                    $changed === null || \Howdah\boot_again($changed);
                });
                // A kernel that has handled requests resets its services when it is booted again.
                $zone = date_default_timezone_get();
                \Howdah\after_warmup(function () use ($kernel, $zone): void {
                    $kernel->boot();
                    // A page may have set its visitor's time zone.
                    date_default_timezone_set($zone);
                    (new Leftovers($kernel->getContainer()))->drop();
                    share_boot($kernel);
                    $this->sources->note();
                });
            }
            // A disconnecting client must not end a worker that also serves others.
            $snapshot || ignore_user_abort(true);
            while (\frankenphp_handle_request($this->handle(...))) {
                $this->terminate();
                if (!$snapshot && $this->sources?->outdated() !== null) {
                    // The next worker boots with the changed files.
                    break;
                }
            }

            return 0;
        }

        /** Returns the innermost kernel. */
        private function kernel(): ?KernelInterface
        {
            $kernel = $this->application;
            while ($kernel instanceof HttpCache) {
                $kernel = $kernel->getKernel();
            }

            return $kernel instanceof KernelInterface ? $kernel : null;
        }

        private function handle(): void
        {
            $this->variables->bring();
            $request = Request::createFromGlobals();
            if ($this->lacks($request)) {
                http_response_code(404);

                return;
            }
            $response = $this->application->handle($request);
            // Only a request with a response is terminated.
            [$this->request, $this->response] = [$request, $response];
            \Howdah\route((string) $request->attributes->get('_route'));
            $response->send();
        }

        /**
         * Returns true for a home page that the application lacks: the warm-up requests one from every application, and each
         * such request would write an error to the log.
         */
        private function lacks(Request $request): bool
        {
            if (\Howdah\request_id() !== OF_WARM_UP || $request->getPathInfo() !== '/') {
                return false;
            }
            try {
                $this->kernel()?->getContainer()->get('router')->match('/');
            } catch (ResourceNotFoundException) {
                return true;
            } catch (\Throwable) {
            }

            return false;
        }

        private function terminate(): void
        {
            [$request, $response] = [$this->request, $this->response];
            $this->request = $this->response = null;
            if ($request !== null && $response !== null && $this->application instanceof TerminableInterface) {
                $this->application->terminate($request, $response);
            }
        }
    }
}

/** Returns whether the project configures its own runtime: then that one must run. */
function names_runtime(string $front): bool
{
    $generated = (string) @file_get_contents(\dirname($front, 2) . '/vendor/autoload_runtime.php');

    return isset($_SERVER['APP_RUNTIME']) || isset($_ENV['APP_RUNTIME'])
        || ($generated !== '' && !str_contains($generated, "'Symfony\\\\Component\\\\Runtime\\\\SymfonyRuntime'"));
}

(static function (): void {
    $front = $_SERVER['SCRIPT_FILENAME'];
    $obstacle = FrontController::obstacle($front) ?? (names_runtime($front) ? 'the project configures its own runtime' : null);
    if ($obstacle !== null) {
        \frankenphp_log("recipe symfony: $front: $obstacle", 8);
        exit(1);
    }
    // Autoloaders of the application come later, and do not know this namespace.
    spl_autoload_register(static function (string $class): void {
        if ($class === __NAMESPACE__ . '\Runtime') {
            declare_classes();
        }
    });
    Variables::$ofBoot = new Variables($_SERVER);
    $_SERVER['APP_RUNTIME'] = $_ENV['APP_RUNTIME'] = __NAMESPACE__ . '\Runtime';
})();

<?php

/**
 * Boots Drupal once for the pages of anonymous visitors, which its page cache answers: the server runs this instead of
 * Drupal's own index.php.
 *
 * The boot loads the container and the code of all modules, and the warm-up answers from the page cache. Each request
 * evaluates settings.php, finds its site and checks the host as without a snapshot, and asks the database whether the
 * container is still the one of the boot: if anything differs, it runs on a new boot. Services are created in the request,
 * except, with an unencrypted MySQL, those that lead to the page cache.
 *
 * No page is rendered before the snapshot: functions of Drupal keep data of a page in static variables, which nothing can
 * reset.
 *
 * The server sends only GET and HEAD requests without a session to this boot. Written for Drupal 10.0 to 11.3.
 */

declare(strict_types=1);

namespace Howdah\Recipes\Drupal;

use Drupal\Core\Cache\CacheableMetadata;
use Drupal\Core\Cache\DatabaseBackend;
use Drupal\Core\Cache\MemoryBackend;
use Drupal\Core\Database\Connection;
use Drupal\Core\Database\Database;
use Drupal\Core\DrupalKernel;
use Drupal\Core\PageCache\RequestPolicyInterface;
use Drupal\Core\Render\HtmlResponse;
use Drupal\Core\Site\Settings;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Exception\BadRequestHttpException;

/** The statements of Drupal's front controller, with one space between any two words. */
const FRONT = 'use Drupal\Core\DrupalKernel ; use Symfony\Component\HttpFoundation\Request ;'
    . ' $autoloader = require_once \'autoload.php\' ; $kernel = new DrupalKernel ( \'prod\' , $autoloader ) ;'
    . ' $request = Request :: createFromGlobals ( ) ; $response = $kernel -> handle ( $request ) ; $response -> send ( ) ;'
    . ' $kernel -> terminate ( $request , $response ) ;';

/** The id of a warm-up request. */
const OF_WARM_UP = '0000000000000000';

/** The site that Drupal uses unless sites/sites.php says otherwise. */
const SITE = 'sites/default';

/** Ends the boot: the server continues in classic mode. */
function give_up(string $why): never
{
    \frankenphp_log("recipe drupal: $why", 8);
    exit(1);
}

function is_own_front(string $file): bool
{
    $words = [];
    foreach (\PhpToken::tokenize((string) file_get_contents($file)) as $token) {
        if (!$token->isIgnorable() && $token->id !== T_OPEN_TAG) {
            $words[] = $token->text;
        }
    }

    return implode(' ', $words) === FRONT;
}

/** Evaluates settings.php as Drupal does. Returns its settings and databases; its changes of the configuration are global. */
function evaluate(string $app_root, string $site_path, object $class_loader): array
{
    global $config;
    $settings = $config = $databases = [];
    require "$app_root/$site_path/settings.php";

    return [$settings, $databases];
}

/** Returns true if settings.php evaluates differently for another visitor. */
function depends_on_request(string $root, object $loader): bool
{
    $now = $_SERVER;
    // A file that it includes once is missing from both results.
    $results = [];
    foreach (['192.0.2.1', '192.0.2.2'] as $at => $address) {
        $_SERVER = ['HTTP_HOST' => "$at.invalid", 'SERVER_NAME' => "$at.invalid", 'SERVER_PORT' => (string) (80 + $at),
            'REQUEST_URI' => "/$at", 'REQUEST_METHOD' => $at ? 'HEAD' : 'GET', 'REMOTE_ADDR' => $address,
            'HTTP_USER_AGENT' => "agent $at", 'HTTP_X_FORWARDED_PROTO' => $at ? 'https' : 'http', 'HTTPS' => $at ? 'on' : ''] + $now;
        $results[] = evaluate($root, SITE, $loader);
    }
    $_SERVER = $now;

    return $results[0] !== $results[1];
}

/** Keeps connections of the boot: Drupal's own object closes its connection at the end of each request. */
final class Connections
{
    private static ?object $kept = null;

    /** Returns whether each worker can open this connection. Others are closed before the snapshot. */
    public static function isOpenedByWorkers(Connection $connection): bool
    {
        $options = $connection->getConnectionOptions();
        $isEncrypted = array_filter(
            array_keys($options['pdo'] ?? []),
            static fn (int|string $option): bool => \in_array($option, [\PDO::MYSQL_ATTR_SSL_CA, \PDO::MYSQL_ATTR_SSL_CERT,
                \PDO::MYSQL_ATTR_SSL_KEY, \PDO::MYSQL_ATTR_SSL_CAPATH, \PDO::MYSQL_ATTR_SSL_CIPHER], true),
        ) !== [];

        return $connection->driver() === 'mysql' && !$isEncrypted;
    }

    public static function openInWorkers(Connection $connection): void
    {
        $open = (fn (): \Closure => function (): object {
            unset($this->connection);
            $options = $this->connectionOptions;

            return $this->connection = static::open($options);
        })->call($connection);
        \Howdah\connect_each_worker(static function () use ($open): void {
            self::$kept = null;
            self::$kept = $open();
        });
    }
}

/** Declares the class that extends Drupal's: that requires Drupal's autoloader. */
function declare_kernel(): void
{
    class Kernel extends DrupalKernel
    {
        /** Size in bytes of a response in a rehearsal that the page cache does not have. */
        private const SIZE = 64 << 10;

        /** The settings of settings.php at the snapshot; null until then. */
        private ?array $evaluated = null;
        private string $mark = '';
        private array $overrides = [];

        /** Boots without a request. */
        public function prepare(): void
        {
            $this->setSitePath(SITE);
            Settings::initialize($this->root, SITE, $this->classLoader);
            $this->overrides = $GLOBALS['config'];
            Database::getConnectionInfo() !== null || give_up('Drupal is not installed yet');
            parent::boot();
            isset($this->container->getParameter('container.modules')['page_cache'])
                || give_up('the module page_cache, which answers anonymous visitors, is not installed');
            $this->loadLegacyIncludes();
        }

        /**
         * Answers a request of the warm-up as from the page cache, from a cache in memory with the stored response or another
         * one: no page is rendered, and nothing is written.
         */
        public function rehearse(Request $request): Response
        {
            $this->renew();
            $stored = $this->container->get('cache.page');
            $memory = new MemoryBackend($this->container->has('datetime.time') ? $this->container->get('datetime.time') : null);
            $other = (new HtmlResponse('<html>' . str_repeat(' ', self::SIZE) . '</html>'))->addCacheableDependency(new CacheableMetadata());
            foreach ([':html', ':'] as $format) {
                $name = $request->getSchemeAndHttpHost() . $request->getRequestUri() . $format;
                $found = $stored->get($name);
                $memory->set($name, $found ? $found->data : unserialize(serialize($other)));
            }
            $this->container->set('cache.page', $memory);
            $policy = $this->container->get('page_cache_request_policy')->check($request);
            $response = $policy === RequestPolicyInterface::ALLOW ? $this->getHttpKernel()->handle($request) : new Response();
            $response->headers->get('X-Drupal-Cache') === 'HIT' || give_up('its page cache does not answer anonymous visitors');
            $response->prepare($request);

            return $response;
        }

        /** Runs at the snapshot. */
        public function begin(): void
        {
            $this->renew();
            $this->container->get('module_handler')->loadAll();
            $connection = Database::getConnection();
            $this->evaluated = evaluate($this->root, SITE, $this->classLoader);
            $this->mark = $this->markOfContainer();
            if (Connections::isOpenedByWorkers($connection)) {
                $this->getHttpKernel();
                Connections::openInWorkers($connection);
            } else {
                $this->bootstrapContainer = null;
                Database::closeConnection();
            }
            $this->booted = false;
            // Each request sets PHP's settings and the handlers of errors again.
            (new \ReflectionProperty(DrupalKernel::class, 'isEnvironmentInitialized'))->setValue(null, false);
        }

        /** Continues with new services, which no request has used. */
        private function renew(): void
        {
            $this->shutdown();
            $this->prepared = false;
            parent::boot();
        }

        public function boot()
        {
            if ($this->evaluated === null) {
                return parent::boot();
            }
            $this->bootstrapContainer ??= new $this->bootstrapContainerClass(
                Settings::get('bootstrap_container_definition', $this->defaultBootstrapContainerDefinition),
            );
            $this->markOfContainer() === $this->mark || \Howdah\boot_again('the container was built anew');
            $this->booted = true;

            return $this;
        }

        protected function initializeSettings(Request $request)
        {
            if ($this->evaluated === null) {
                parent::initializeSettings($request);

                return;
            }
            static::findSitePath($request) === SITE || \Howdah\boot_again('sites/sites.php was created');
            evaluate($this->root, SITE, $this->classLoader) === $this->evaluated || \Howdah\boot_again('settings.php has changed');
            $GLOBALS['config'] = array_replace_recursive($this->overrides, $GLOBALS['config']);
            $hosts = Settings::get('trusted_host_patterns', []);
            if (!empty($hosts) && static::setupTrustedHosts($request, $hosts) === false) {
                throw new BadRequestHttpException('The provided host name is not valid for this server.');
            }
        }

        /** Returns a mark of the stored container, which is stored anew whenever the modules or their services change. */
        private function markOfContainer(): string
        {
            $name = $this->getContainerCacheKey();
            $cache = $this->bootstrapContainer->get('cache.container');
            if (!$cache instanceof DatabaseBackend) {
                $found = $cache->get($name);

                return $found ? (string) $found->created : '';
            }

            return (string) (fn () => $this->connection->query(
                'SELECT [created] FROM {' . $this->connection->escapeTable($this->bin) . '} WHERE [cid] = :cid',
                [':cid' => $this->normalizeCid($name)],
            )->fetchField())->call($cache);
        }
    }
}

/** Serves one request after the other, with a booted application. */
function serve(string $root): void
{
    chdir($root);
    $loader = require "$root/autoload.php";
    version_compare(\Drupal::VERSION, '10.0', '<') && give_up('Drupal ' . \Drupal::VERSION . ' is older than 10');
    declare_kernel();
    is_file("$root/sites/sites.php") && give_up('several sites: sites/sites.php');
    is_dir("$root/sites/simpletest") && give_up('sites of tests: sites/simpletest');
    is_file("$root/" . SITE . '/settings.php') || give_up('Drupal is not installed yet');
    DrupalKernel::bootEnvironment();
    depends_on_request($root, $loader) && give_up(SITE . '/settings.php depends on the request');
    $kernel = new Kernel('prod', $loader);
    $kernel->prepare();
    \Howdah\after_warmup($kernel->begin(...));
    $answered = null;
    $handle = static function () use ($kernel, &$answered): void {
        $request = Request::createFromGlobals();
        $response = \Howdah\request_id() === OF_WARM_UP ? $kernel->rehearse($request) : $kernel->handle($request);
        $answered = [$request, $response];
        \Howdah\route((string) $request->attributes->get('_route'));
        $response->send();
    };
    while (\frankenphp_handle_request($handle)) {
        if ($answered !== null) {
            $kernel->terminate(...$answered);
            $answered = null;
        }
    }
}

(static function (): void {
    $front = $_SERVER['SCRIPT_FILENAME'];
    \Howdah\mode() === 'snapshot' || give_up('this recipe needs snapshot mode');
    is_own_front($front) || give_up("$front is not Drupal's own");
    serve(\dirname($front));
})();
// The front controller must not run.
exit(0);

<?php
// The parts of Drupal that its recipe calls: a container stored in a file, a page cache that is never filled, and pages that
// count what is left from other requests.
namespace Symfony\Component\HttpFoundation {
    class Bag
    {
        public function __construct(private array $all = [])
        {
        }

        public function get(string $name): mixed
        {
            return $this->all[$name] ?? null;
        }

        public function set(string $name, mixed $value): void
        {
            $this->all[$name] = $value;
        }
    }

    class Request
    {
        public Bag $attributes;

        public function __construct(private string $host, private string $uri)
        {
            $this->attributes = new Bag();
        }

        public static function create(string $url): self
        {
            return new self((string) parse_url($url, PHP_URL_HOST), '/');
        }

        public static function createFromGlobals(): self
        {
            return new self($_SERVER['HTTP_HOST'], $_SERVER['REQUEST_URI']);
        }

        public function getSchemeAndHttpHost(): string
        {
            return "http://$this->host";
        }

        public function getRequestUri(): string
        {
            return $this->uri;
        }
    }

    class Response
    {
        public Bag $headers;

        public function __construct(private string $content = '')
        {
            $this->headers = new Bag();
        }

        public function prepare(Request $request): void
        {
        }

        public function send(): void
        {
            echo $this->content;
        }
    }
}

namespace Symfony\Component\HttpKernel\Exception {
    class BadRequestHttpException extends \RuntimeException
    {
    }
}

namespace Drupal\Core\PageCache {
    interface RequestPolicyInterface
    {
        public const ALLOW = 'allow';
    }
}

namespace Drupal\Core\Cache {
    class CacheableMetadata
    {
    }

    class DatabaseBackend
    {
    }

    class MemoryBackend
    {
        private array $all = [];

        public function __construct(mixed $time = null)
        {
        }

        public function set(string $name, mixed $value): void
        {
            $this->all[$name] = $value;
        }

        public function get(string $name): ?object
        {
            return isset($this->all[$name]) ? (object) ['data' => $this->all[$name]] : null;
        }
    }
}

namespace Drupal\Core\Render {
    class HtmlResponse extends \Symfony\Component\HttpFoundation\Response
    {
        public function addCacheableDependency(object $on): self
        {
            return $this;
        }
    }
}

namespace Drupal\Core\Site {
    class Settings
    {
        private static array $all = [];

        public static function initialize(string $app_root, string $site_path, object $class_loader): void
        {
            global $config;
            $settings = $config = $databases = [];
            require "$app_root/$site_path/settings.php";
            \Drupal\Core\Database\Database::$info = $databases['default'] ?? null;
            self::$all = $settings;
        }

        public static function get(string $name, mixed $default = null): mixed
        {
            return self::$all[$name] ?? $default;
        }
    }
}

namespace Drupal\Core\Database {
    class Connection
    {
        public function driver(): string
        {
            return 'none';
        }

        public function getConnectionOptions(): array
        {
            return [];
        }
    }

    class Database
    {
        public static ?array $info = null;

        public static function getConnectionInfo(): ?array
        {
            return self::$info;
        }

        public static function getConnection(): Connection
        {
            return new Connection();
        }

        public static function closeConnection(): void
        {
        }
    }
}

namespace Drupal\Core {
    use Drupal\Core\Cache\MemoryBackend;
    use Drupal\Core\Site\Settings;
    use Symfony\Component\HttpFoundation\Request;
    use Symfony\Component\HttpFoundation\Response;

    /** The stored container; also the services policy, stack and modules. */
    class Stored
    {
        public function __construct(private string $file)
        {
        }

        public function get(string $name): object
        {
            return $name === 'cache.container' ? $this : (object) ['created' => (string) file_get_contents($this->file)];
        }

        public function check(Request $request): string
        {
            return PageCache\RequestPolicyInterface::ALLOW;
        }

        public function loadAll(): void
        {
        }

        public function handle(Request $request): Response
        {
            return DrupalKernel::$self->page($request);
        }
    }

    class Container
    {
        private array $services;

        public function __construct(public readonly string $text, Stored $stored)
        {
            $this->services = array_fill_keys(['page_cache_request_policy', 'module_handler', 'http_kernel'], $stored)
                + ['cache.page' => new MemoryBackend()];
        }

        public function has(string $name): bool
        {
            return isset($this->services[$name]);
        }

        public function get(string $name): object
        {
            return $this->services[$name];
        }

        public function set(string $name, object $service): void
        {
            $this->services[$name] = $service;
        }

        public function hasParameter(string $name): bool
        {
            return true;
        }

        public function getParameter(string $name): array
        {
            return ['page_cache' => []];
        }
    }

    class DrupalKernel
    {
        public static self $self;
        protected static $isEnvironmentInitialized = false;
        protected $root;
        protected $sitePath;
        protected $booted = false;
        protected $prepared = false;
        protected $container;
        protected $bootstrapContainer;
        protected $bootstrapContainerClass = '\Drupal\Core\Stored';
        protected $defaultBootstrapContainerDefinition;
        private int $requests = 0;

        public function __construct(string $environment, protected object $classLoader)
        {
            $this->root = getcwd();
            $this->defaultBootstrapContainerDefinition = "$this->root/container.txt";
            self::$self = $this;
        }

        public static function bootEnvironment(): void
        {
        }

        public static function findSitePath(Request $request): string
        {
            return is_file('sites/sites.php') ? 'sites/other' : 'sites/default';
        }

        public function setSitePath(string $path): void
        {
            $this->sitePath = $path;
        }

        public function boot()
        {
            $this->bootstrapContainer = new $this->bootstrapContainerClass($this->defaultBootstrapContainerDefinition);
            $this->container = new Container($this->bootstrapContainer->get('container')->created, $this->bootstrapContainer);
            $this->booted = true;

            return $this;
        }

        public function shutdown()
        {
            $this->booted = false;
        }

        public function loadLegacyIncludes()
        {
        }

        public function handle(Request $request)
        {
            if (!$this->booted) {
                $this->initializeSettings($request);
                $this->boot();
            }

            return $this->getHttpKernel()->handle($request);
        }

        public function page(Request $request): Response
        {
            $found = $this->container->get('cache.page')->get($request->getSchemeAndHttpHost() . $request->getRequestUri() . ':');
            if ($found !== null) {
                $found->data->headers->set('X-Drupal-Cache', 'HIT');

                return $found->data;
            }
            static $pages = 0;
            $mode = \function_exists('Howdah\mode') ? \Howdah\mode() : 'none';
            $said = [$mode, trim($this->container->text), Settings::get('name'), $GLOBALS['config']['site']['name'] ?? '', ++$pages,
                ++$this->requests];

            return new Response(implode(' ', $said));
        }

        public function terminate(Request $request, Response $response)
        {
        }

        protected function initializeSettings(Request $request)
        {
            Settings::initialize($this->root, static::findSitePath($request), $this->classLoader);
        }

        protected static function setupTrustedHosts(Request $request, array $patterns): bool
        {
            return preg_match("/$patterns[0]/", $request->getSchemeAndHttpHost()) === 1;
        }

        protected function getHttpKernel()
        {
            return $this->container->get('http_kernel');
        }

        protected function getContainerCacheKey()
        {
            return 'container';
        }
    }
}

namespace {
    final class Drupal
    {
        public const VERSION = '10.3.7';
    }

    return new stdClass();
}

<?php

// The worker script's order of events and the requests' environment; mocks replace the server's functions and Octane's
// classes. with-octane.php runs it with Octane itself.

declare(strict_types=1);

namespace Illuminate\Http {
    class Request
    {
        /** @param array<string, mixed> $server */
        public function __construct(public readonly array $server)
        {
        }

        public static function capture(): self
        {
            return new self($_SERVER);
        }
    }
}

namespace Illuminate\Foundation {
    class Application
    {
        public array $closed = [];

        public function resolved(string $name): bool
        {
            return $name === 'db';
        }

        public function make(string $name): mixed
        {
            return $name === 'db' ? new \Illuminate\Database\DatabaseManager($this) : $this;
        }

        public function get(string $name): bool
        {
            return true;
        }
    }
}

namespace Illuminate\Database {
    use Illuminate\Foundation\Application;

    class DatabaseManager
    {
        public function __construct(private readonly Application $app)
        {
        }

        public function setApplication(Application $app): void
        {
            $app->closed[] = 'application';
        }

        public function getConnections(): array
        {
            $of = [['sqlite', ':memory:'], ['sqlite', '/a.sqlite'], ['mysql', 'shop'], ['mysql', 'unused', false]];

            return array_map(fn (array $of): Connection => new Connection($this->app, ...$of), $of);
        }

        public function reconnect(string $name): void
        {
            $this->app->closed[] = "reconnect $name";
        }
    }

    class Connection
    {
        private ?\PDO $pdo;

        public function __construct(
            private readonly Application $app,
            private readonly string $driver,
            private readonly string $database,
            bool $connected = true,
        ) {
            $this->pdo = $connected ? new \PDO('sqlite::memory:') : null;
        }

        public function getName(): string
        {
            return $this->database;
        }

        public function getDriverName(): string
        {
            return $this->driver;
        }

        public function getDatabaseName(): string
        {
            return $this->database;
        }

        public function getRawPdo(): ?\PDO
        {
            return $this->pdo;
        }

        public function getRawReadPdo(): ?\PDO
        {
            return null;
        }

        public function getPdo(): ?\PDO
        {
            $this->app->closed[] = "connect {$this->database}";

            return $this->pdo;
        }

        public function disconnect(): void
        {
            $this->app->closed[] = $this->database;
        }
    }
}

namespace Symfony\Component\HttpFoundation {
    class Response
    {
        public object $headers;

        public function __construct(public string $content, public int $status = 200, public array $given = [])
        {
            $this->headers = new class ($given) {
                public function __construct(public array $all)
                {
                }

                public function remove(string $name): void
                {
                    unset($this->all[$name]);
                }
            };
        }

        public function sendHeaders(): void
        {
            echo implode(',', array_keys($this->headers->all)), '|';
        }

        public function sendContent(): void
        {
            echo $this->content;
        }

        public function send(): void
        {
            $this->sendHeaders();
            $this->sendContent();
        }
    }
}

namespace Laravel\Octane\Contracts {
    interface StoppableClient
    {
    }
}

namespace Laravel\Octane {
    class Octane
    {
        public static function writeError(string $message): void
        {
        }

        public static function formatExceptionForClient(\Throwable $error, bool $debug): string
        {
            return $debug ? $error->getMessage() : 'hidden';
        }
    }

    class RequestContext
    {
    }

    class OctaneResponse
    {
        public function __construct(public object $response, public ?string $outputBuffer = null)
        {
        }
    }

    class ApplicationFactory
    {
        public function __construct(public readonly string $base)
        {
        }
    }

    class Worker
    {
        public static array $events = [];
        public static ?\Illuminate\Foundation\Application $app = null;

        public function __construct(private readonly ApplicationFactory $factory, private readonly object $client)
        {
        }

        public function boot(array $instances = []): void
        {
            self::$events[] = "boot {$this->factory->base}" . implode(' ', array_keys($instances));
            $_SERVER['OF_DOTENV'] = 'from .env';
            $_SERVER['APP_NAME'] = 'from .env too';
        }

        public function handle(object $request, object $context): void
        {
            self::$events[] = $request->server;
            if (($request->server['REQUEST_URI'] ?? '') === '/broken') {
                $this->client->stop();
            }
        }

        public function application(): object
        {
            return self::$app ??= new \Illuminate\Foundation\Application();
        }

        public function terminate(): void
        {
            self::$events[] = 'terminate';
        }
    }
}

namespace Howdah {
    function after_warmup(callable $callback): void
    {
        $GLOBALS['afterWarmup'] = $callback;
    }

    function connect_each_worker(callable $callback): void
    {
        $GLOBALS['eachWorker'][] = $callback;
    }
}

namespace {
    use Howdah\Octane\HowdahClient;
    use Howdah\Octane\OctaneWorker;
    use Laravel\Octane\OctaneResponse;
    use Laravel\Octane\RequestContext;
    use Laravel\Octane\Worker;
    use Symfony\Component\HttpFoundation\Response;

    foreach (['Tasks/TaskDirectory', 'HowdahClient', 'BootedWorker', 'OctaneWorker'] as $class) {
        require __DIR__ . "/../src/$class.php";
    }

    $check = static function (mixed $got, mixed $expected, string $what): void {
        if ($got !== $expected) {
            fwrite(STDERR, "worker: $what: " . var_export($got, true) . ' instead of ' . var_export($expected, true) . "\n");
            exit(1);
        }
    };

    $requests = ['/a', '/broken', '/never'];
    function frankenphp_handle_request(callable $callback): bool
    {
        $uri = array_shift($GLOBALS['requests']);
        if ($uri === null) {
            return false;
        }
        $_SERVER = ['REQUEST_URI' => $uri, 'SCRIPT_NAME' => '/howdah-worker.php', 'APP_NAME' => "the request's"];
        $callback();

        return true;
    }

    // A worker that Octane stops takes no further request; the application boots once, before the first.
    $_SERVER = ['APP_PUBLIC_PATH' => '/srv/shop/web'];
    (new OctaneWorker('/srv/shop'))->run();
    $request = static fn (string $uri): array => ['SCRIPT_FILENAME' => '/srv/shop/web/index.php', 'SCRIPT_NAME' => '/index.php',
        'PHP_SELF' => '/index.php', 'REQUEST_URI' => $uri, 'APP_NAME' => "the request's", 'OF_DOTENV' => 'from .env'];
    $check(Worker::$events, ['boot /srv/shop', $request('/a'), $request('/broken'), 'terminate'], 'events');
    $check($requests, ['/never'], 'what another worker gets');
    ($afterWarmup)();
    $check(Worker::$app->closed, ['application', '/a.sqlite'], 'files at the snapshot');
    Worker::$app->closed = [];
    array_map(static fn (callable $connect) => $connect(), $eachWorker);
    $check(Worker::$app->closed, ['reconnect shop', 'connect shop'], 'what each worker connects');
    // Until the server sends no more.
    Worker::$events = [];
    (new OctaneWorker('/srv/shop'))->run();
    $check(count(Worker::$events), 3, 'until the server stops');

    $client = new HowdahClient();
    $sent = static function (callable $send): string {
        ob_start();
        $send();

        return ob_get_clean();
    };
    $respond = static fn (?string $printed) => $sent(fn () => $client->respond(new RequestContext(), new OctaneResponse(
        new Response('content', 200, ['Content-Length' => 7, 'X-Own' => 1]), $printed)));
    $check($respond(''), 'Content-Length,X-Own|content', 'a response');
    $check($respond('printed '), 'X-Own|printed content', 'what was printed');
    $error = fn () => $client->error(new RuntimeException('why'), Worker::$app, new \Illuminate\Http\Request([]), new RequestContext());
    $check($sent($error), 'Content-Type|why', 'an error');
    $check($client->isStopped(), false, 'goes on');
}

//! Resources that a booted application keeps open, and files that each request checks for changes.

use super::project::{KERNEL, LARAVEL, OF_LARAVEL, Project, Served, need_symfony};
use howdah_tests::php;
use howdah_tests::process::{PATIENCE, eventually, tree};
use howdah_tests::servers::Server;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;

const SEPARATE: &str = "each worker boots the application separately: a connection was opened at boot";

/// Services that keep objects of a request, as some applications have them, and a registry that knows the entity.
const KEEPERS: &str = "
    final class Entity
    {
        public float $made;
        public function __construct() { $this->made = microtime(true); }
    }
    final class Keeper
    {
        private ?Entity $one = null;
        private array $many = [];
        private \\SplObjectStorage $byRequest;
        private array $own = [];
        public function __construct() { $this->byRequest = new \\SplObjectStorage(); }
        public function keep(Request $request): array
        {
            $this->one ??= new Entity();
            $this->many['it'] ??= ['in' => new Entity()];
            $this->byRequest[$request] = new Entity();
            $this->own['code'] ??= microtime(true);
            $isOwn = static fn (float $made): bool => $made >= $_SERVER['REQUEST_TIME_FLOAT'];
            return [$isOwn($this->one->made), $isOwn($this->many['it']['in']->made), \\count($this->byRequest), $isOwn($this->own['code'])];
        }
    }
    final class Metadata { public function getName(): string { return Entity::class; } }
    final class Manager
    {
        public function getMetadataFactory(): self { return $this; }
        public function getAllMetadata(): array { return [new Metadata()]; }
    }
    final class Registry
    {
        public function getConnections(): array { return []; }
        public function getManagers(): array { return [new Manager()]; }
    }";

#[test]
fn a_request_finds_no_entity_and_no_request_of_the_warm_up_in_a_service() {
    need_symfony!();
    let project = Project::symfony();
    let kernel = KERNEL
        .replace(
            "$container->parameters()",
            "$container->services()->set('doctrine', Registry::class)->public()->set(Keeper::class)->public();
        $container->parameters()",
        )
        .replace(
            "public function home(): Response\n    {",
            "public function home(Request $request): Response\n    {
        return new Response(json_encode($this->getContainer()->get(Keeper::class)->keep($request)));",
        );
    project.write("src/Kernel.php", &(kernel + KEEPERS));
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    let kept = (200, "[true,true,1,false]".to_owned());
    // A boot within the second in which the project was written is repeated.
    let is_settled = || (0..3).all(|_| served.get("/") == kept);
    assert!(eventually(PATIENCE, is_settled), "objects other than entities stay warm: {}", served.log());
    served.finish();
}

/// The kernel with a service like Doctrine's registry, whose connection its front page opens, and this many MiB in
/// memory.
fn with_connection(port: u16, size: usize) -> String {
    let registered =
        "$container->services()->set('doctrine', Registry::class)->public();\n        $container->parameters()";
    let connect = format!(
        "self::$large = str_repeat('x', {size} << 20);
        $this->getContainer()->get('doctrine')->connection->open({port});
        date_default_timezone_set"
    );
    let classes = "
        final class Connection
        {
            private mixed $stream = null;
            public function open(int $port): void { $this->stream ??= stream_socket_client(\"tcp://127.0.0.1:$port\"); }
            public function close(): void { $this->stream = null; }
        }
        final class Registry
        {
            public Connection $connection;
            public function __construct() { $this->connection = new Connection(); }
            public function getConnections(): array { return [$this->connection]; }
            public function getManagers(): array { return []; }
        }";
    let kernel = KERNEL.replace("$container->parameters()", registered).replace("date_default_timezone_set", &connect);
    kernel.replace("public static int $requests", "public static string $large = '';\n    public static int $requests")
        + classes
}

#[test]
fn a_large_symfony_application_closes_its_connections_at_boot_so_that_its_workers_share_it() {
    need_symfony!();
    let database = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = database.local_addr().unwrap().port();
    for (size, is_shared) in [(1, false), (40, true)] {
        let project = Project::symfony();
        project.write("src/Kernel.php", &with_connection(port, size));
        // A boot that compiles the container is large.
        let classic = project.serve(&["--mode", "classic"]);
        assert_eq!(classic.get("/").0, 200, "{}", classic.log());
        classic.finish();
        let served = project.serve(&[]);
        served.wait_for_mode("snapshot");
        for _ in 0..4 {
            assert_eq!(served.get("/").0, 200, "{}", served.log());
        }
        if !is_shared {
            served.wait_for_log(SEPARATE);
        }
        let log = served.finish();
        assert_eq!(log.contains(SEPARATE), !is_shared, "{size} MiB: {log}");
    }
}

/// The page's text names the worker's connection: each of the two workers has a separate one, and keeps it.
fn have_their_own_connections(served: Served<'_>, page: &str) {
    served.wait_for_mode("snapshot");
    let ask = || {
        let (status, connection) = served.get(page);
        assert_eq!(status, 200, "{connection}: {}", served.log());
        connection
    };
    // A boot within the second in which the project was written is repeated.
    let mut last = (BTreeSet::new(), Vec::new());
    let is_settled = || {
        let seen: BTreeSet<String> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        });
        let later: Vec<String> = (0..8).map(|_| ask()).collect();
        let is_settled = seen.len() == 2 && later.iter().all(|connection| seen.contains(connection));
        last = (seen, later);
        is_settled
    };
    let has_settled = eventually(PATIENCE, is_settled);
    assert!(has_settled, "{last:?}\n{}\n{}", served.status(), served.log());
    let log = served.finish();
    assert!(!log.contains(SEPARATE), "{log}");
}

/// A Symfony application whose front page shows the id of its connection, by Doctrine's class.
fn symfony_connected(dbal: &str) -> Project {
    let project = Project::symfony();
    let registered =
        "$container->services()->set('doctrine', Registry::class)->public();\n        $container->parameters()";
    let asks = "$connection = $this->getContainer()->get('doctrine')->connection;
        return new Response($connection->id());
        date_default_timezone_set";
    let registry = "
        final class Registry
        {
            public object $connection;
            public function __construct() { require_once __DIR__ . '/dbal.php'; $this->connection = new \\Doctrine\\DBAL\\Connection(); }
            public function getConnections(): array { return [$this->connection]; }
            public function getManagers(): array { return []; }
        }";
    let kernel = KERNEL.replace("$container->parameters()", registered).replace("date_default_timezone_set", asks);
    project.write("src/Kernel.php", &(kernel + registry));
    project.write("src/dbal.php", &format!("<?php {dbal}"));
    project
}

#[test]
fn workers_of_a_symfony_application_share_its_boot_with_a_connection_to_mysql_each() {
    need_symfony!();
    let database = Server::mariadb();
    let dsn = format!("mysql:host=127.0.0.1;port={};dbname=mysql", database.port);
    let dbal = php!("recipe_boots/dbal.php", DRIVER = "pdo_mysql", DSN = dsn, ID = "CONNECTION_ID()", SLEEP = "SLEEP");
    have_their_own_connections(symfony_connected(&dbal).serve(&[]), "/");
}

/// Encrypted ones cannot be in a snapshot, so the recipe closes them.
#[test]
fn workers_of_a_symfony_application_share_its_boot_with_a_connection_to_postgresql_each() {
    need_symfony!();
    let database = Server::postgres();
    for encryption in ["disable", "require"] {
        let dsn = format!("pgsql:host=127.0.0.1;port={};dbname=postgres;sslmode={encryption}", database.port);
        let (id, sleep) = ("pg_backend_pid()", "pg_sleep");
        let dbal = php!("recipe_boots/dbal.php", DRIVER = "pdo_pgsql", DSN = dsn, ID = id, SLEEP = sleep);
        serves_with_or_without_a_connection(symfony_connected(&dbal).serve(&[]), encryption);
    }
}

fn serves_with_or_without_a_connection(served: Served<'_>, encryption: &str) {
    if encryption == "disable" {
        return have_their_own_connections(served, "/");
    }
    served.wait_for_mode("snapshot");
    for _ in 0..8 {
        assert_eq!(served.get("/").0, 200, "{}", served.log());
    }
    let log = served.finish();
    assert!(!log.contains(SEPARATE), "{log}");
}

#[test]
fn workers_of_a_laravel_application_share_its_boot_with_a_connection_to_mysql_each() {
    if !Path::new(LARAVEL).exists() {
        howdah_skip::skip!("laravel", "Debian's php-laravel-framework is not installed");
    }
    let database = Server::mariadb();
    let project = Project::of(OF_LARAVEL);
    let settings = php!("recipe_boots/laravel_database.php", PORT = database.port);
    project.write("config/database.php", &format!("<?php {settings}"));
    // One connection to read and one to write.
    let asks = "Route::get('/', fn () => implode(' ', array_map(
            fn (bool $reads) => DB::selectOne('SELECT CONNECTION_ID() AS id, SLEEP(0.01) AS pause', [], $reads)->id, [true, false])));
        Route::get('/mode', fn () => Howdah\\mode() . ' 1');";
    project.write("routes/web.php", &(project.read("routes/web.php") + asks));
    have_their_own_connections(project.serve(&[]), "/");
}

#[test]
fn workers_of_a_laravel_application_share_its_boot_with_a_connection_to_postgresql_and_redis_each() {
    if !Path::new(LARAVEL).exists() {
        howdah_skip::skip!("laravel", "Debian's php-laravel-framework is not installed");
    }
    let (database, redis) = (Server::postgres(), Server::redis(false));
    for encryption in ["disable", "require"] {
        let project = Project::of(OF_LARAVEL);
        let settings =
            php!("recipe_boots/laravel_pgsql.php", PORT = database.port, REDIS = redis.port, ENCRYPTION = encryption);
        project.write("config/database.php", &format!("<?php {settings}"));
        let provider = "Illuminate\\View\\ViewServiceProvider::class,";
        let providers = format!("{provider} Illuminate\\Redis\\RedisServiceProvider::class,");
        project.write("config/app.php", &project.read("config/app.php").replace(provider, &providers));
        // The driver's number of the server's process is the worker's own.
        let asks = "Route::get('/', function () {
                $row = DB::selectOne('SELECT pg_backend_pid() AS id, pg_sleep(0.01) AS pause');
                abort_unless(DB::getPdo()->pgsqlGetPid() === $row->id, 500);
                $client = app('redis')->connection()->client();
                abort_unless($client->getDbNum() === 2 && str_contains($client->rawCommand('CLIENT', 'INFO'), ' db=2 '), 500);
                return $row->id . ' ' . $client->rawCommand('CLIENT', 'ID');
            });
            Route::get('/mode', fn () => Howdah\\mode() . ' 1');";
        project.write("routes/web.php", &(project.read("routes/web.php") + asks));
        serves_with_or_without_a_connection(project.serve(&[]), encryption);
    }
}

/// Comparisons need it: each request is compared here.
#[test]
fn a_fallback_that_is_not_needed_ends_php_and_starts_it_again_when_it_is() {
    need_symfony!();
    let project = Project::symfony();
    project.write("howdah.toml", "app = \"symfony\"\nmode = \"snapshot\"\ncompare_one_in = 1\n");
    let served = project.serve_with_times("shrink_after=20ms", &[]);
    served.wait_for_mode("snapshot");
    let command_line = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let has_ended = || !tree(served.pid()).iter().any(|process| command_line(process.pid).contains("--pool=default"));
    let said = |text: &str, times: usize| served.log().matches(text).count() >= times;
    for times in 1..=3 {
        let rests = || said("stopping PHP until the next request", times) && has_ended();
        assert!(eventually(PATIENCE, rests), "{}", served.log());
        if times == 3 {
            project.command(&["reload"]);
        }
        assert_eq!(served.get("/").0, 200, "{}", served.log());
        let wakes = || times == 3 || said("starting PHP and a worker", times);
        assert!(eventually(PATIENCE, wakes), "{}", served.log());
    }
    served.wait_for_mode("snapshot");
    served.finish();
}

#[test]
fn an_application_without_a_home_page_boots_without_an_error_in_its_log() {
    need_symfony!();
    let project = Project::symfony();
    project.write("src/Kernel.php", &KERNEL.replace("'/' => 'home', ", ""));
    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    served.wait_for_log("warm-up: / was answered with status 404");
    assert!(!served.log().contains("No route found"), "{}", served.log());
    assert_eq!(served.get("/").0, 404);
    assert!(eventually(PATIENCE, || served.log().contains("No route found")), "a visitor's: {}", served.log());
    served.finish();
}

#[test]
fn laravels_cached_settings_count_until_the_cache_is_deleted() {
    if !Path::new(LARAVEL).exists() {
        howdah_skip::skip!("laravel", "Debian's php-laravel-framework is not installed");
    }
    let project = Project::of(OF_LARAVEL);
    let routes = "
        Route::get('/name', fn () => config('app.name'));
        Route::get('/cache', fn () => (string) file_put_contents(app()->getCachedConfigPath(),
            '<?php return ' . var_export(config()->all(), true) . ';'));
        Route::get('/mode', fn () => Howdah\\mode() . ' 1');";
    project.write("routes/web.php", &(project.read("routes/web.php") + routes));
    let named = |name: &str| project.read("config/app.php").replace("'Laravel'", &format!("'{name}'"));
    let (first, second) = (named("first"), named("second"));
    project.write("config/app.php", &first);
    let served = project.serve(&["--mode", "classic"]);
    assert_eq!(served.get("/cache").0, 200, "{}", served.log());
    served.finish();

    let served = project.serve(&[]);
    served.wait_for_mode("snapshot");
    // A boot within the second in which the cache changed is repeated, by the first request after that second.
    let cache = std::fs::metadata(project.dir.join("bootstrap/cache/config.php")).unwrap().modified().unwrap();
    let is_past = || cache.elapsed().is_ok_and(|age| age > std::time::Duration::from_secs(2));
    assert!(eventually(PATIENCE, is_past), "the cache file is not two seconds old");
    assert_eq!(served.get("/name").0, 200, "{}", served.log());
    let boots = |log: &str| log.matches("the configuration has changed").count();
    let before = boots(&served.log());
    project.write("config/app.php", &second);
    for _ in 0..3 {
        assert_eq!(served.get("/name"), (200, "first".to_owned()), "{}", served.log());
    }
    assert_eq!(boots(&served.log()), before, "{}", served.log());
    std::fs::remove_file(project.dir.join("bootstrap/cache/config.php")).unwrap();
    for _ in 0..3 {
        assert_eq!(served.get("/name"), (200, "second".to_owned()), "{}", served.log());
    }
    project.write("config/app.php", &first);
    for _ in 0..3 {
        assert_eq!(served.get("/name"), (200, "first".to_owned()), "{}", served.log());
    }
    served.finish();
}

//! The final settings of the server and of pools, resolved and checked before use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use howdah_budget::machine;
use howdah_rules::Share;

use crate::address::ListenAddr;
use crate::app_choice::AppChoice;
use crate::choice::{Mode, RootLinks, ServerUser};
use crate::fixed_time::fixed_time;
use crate::fpm::{FpmPool, FpmServer};
use crate::log_target::LogTarget;
use crate::php_program::PhpProgram;
use crate::quantity::{ByteSize, FileMode, SpareWorkers, WorkerRange};
use crate::recipe_pool::RecipePool;
use crate::rules::SiteRules;
use crate::secret::Secret;
use crate::settings_acme::AcmeSettings;
use crate::settings_deploy::DeploySettings;
use crate::settings_http::{CompressionSettings, HttpSettings, LogSettings, StaticSettings};
use crate::settings_mercure::MercureSettings;
use crate::settings_proxy::ProxySettings;
use crate::settings_pusher::PusherSettings;
use crate::settings_sandbox::SandboxSettings;
use crate::settings_site::SiteSettings;
use crate::settings_telemetry::TelemetrySettings;
use crate::settings_tls::TlsSettings;
use crate::table::settings;

settings! {
    /// All settings of a server.
    pub struct Settings at "" {
        /// Directory that is served. An absolute path once loaded.
        root: PathBuf = "`./public` if there is one, else `.`" auto(default_root) example(r#""/srv/app/public""#);
        /// When to resolve symbolic links in the path of `root`, such as `current` pointing to a release: never
        /// (`keep`), at each reload (`reload`), or at the beginning of each request (`request`), like nginx's
        /// `$realpath_root`.
        ///
        /// With `reload`, `script` and `boot` are resolved too, so that code and files change together.
        root_links: RootLinks = r#""keep""# example(r#""reload""#);
        /// Addresses to listen on: `ADDR:PORT`, `:PORT` (every IPv4 address), `[::]:PORT` (every address) or
        /// `unix:PATH`. `https://` before an address enables TLS there, see `[tls]`; `http://` is the default.
        ///
        /// `fastcgi:ADDR:PORT` and `fastcgi:unix:PATH` are for web servers, which use them like a PHP-FPM socket. A client
        /// there can run any script; over TCP only this machine and `http.trusted_proxies` may connect.
        listen: Vec<ListenAddr> = r#"["127.0.0.1:8080"]"# flag("listen")
            example(r#"["http://:80", "https://:443", "unix:/run/howdah.sock", "fastcgi:unix:/run/php/howdah.sock"]"#);
        /// Address of the admin endpoint, which `howdah status`, `reload` and `stop` use: `unix:PATH` or `ADDR:PORT`.
        ///
        /// Anyone who can connect to it, and has the `admin_token` if one is set, can stop the server. Prefer a Unix
        /// socket.
        admin: ListenAddr = "a Unix socket named after the first listen address, in `$XDG_RUNTIME_DIR`, `/run` or the temporary directory"
            auto(default_admin) flag("admin") restart(true) example(r#""unix:/run/howdah/admin.sock""#);
        /// Group that may use the admin socket too; `""` for root and its owner only, the user that starts the server.
        ///
        /// Scripts of the server may not use it.
        admin_group: Option<String> = r#""""# restart(true) example(r#""adm""#);
        /// Token that requests must send as `Authorization: Bearer TOKEN` if `admin` is a TCP address; `""` for none. A
        /// Unix socket ignores it.
        ///
        /// Without a token any process on this machine, scripts included, can stop the server there, and requests must name
        /// the address or `localhost` as their host.
        admin_token: Option<Secret> = r#""""# restart(true) example(r#""a long random text""#);
        /// Let the dashboard (`/dashboard` on an `admin` address) restart pools, drain workers and restore demoted
        /// routes. Otherwise it is read-only.
        dashboard_orders: bool = "false" restart(true) example("true");
        /// Group of Unix sockets in `listen`; `""` for the server's. A proxy in front must belong to it.
        listen_group: Option<String> = r#""""# restart(true) example(r#""www-data""#);
        /// User that a server started as root switches to, once it listens and its logs are open, or `USER:GROUP`; `""` for
        /// none.
        ///
        /// A small process stays root and starts PHP, each pool as its `user`. Scripts can signal processes of their
        /// user and read its files, so the server uses a separate user if possible: `howdah`, with the primary groups
        /// of the pools' users, so that it can read what it serves. If a user is set here and none for PHP, PHP runs as
        /// this user too.
        user: Option<String> = "if `php.user` is set: `howdah` if that account exists, else `php.user`" auto(no_user) restart(true) example(r#""howdah""#);
        /// Allow the server and PHP to run as root: if no user is set, or if it is `root`.
        allow_root: bool = "false" flag("allow-root") restart(true) example("true");
        /// For debugging: let other processes of the same user read the memory of the server and of PHP, and let the kernel
        /// write their core files.
        dumpable: bool = "false" restart(true) example("true");
        /// Number of I/O threads. PHP runs in separate processes, see `workers`, and needs the other cores.
        threads: usize = "half the number of processors" auto(default_threads) in(1, 64) restart(true) example("2");
        /// Time that running requests have to finish at a stop. After an upgrade the old process keeps its connections for
        /// this long, or for a minute if that is longer, unless all of them have closed before.
        grace: Duration = r#""30s""# example(r#""10s""#);
        /// File names tried in order for a directory.
        index: Vec<String> = r#"["index.php", "index.html"]"# example(r#"["index.php"]"#);
        /// Script under the root that runs if no file matches the path; `""` for none (404).
        front_controller: Option<String> = r#""index.php""# example(r#""app.php""#);
        /// Application that is served: `auto` looks for a known one in the directory if there is no `howdah.toml`; `none`
        /// for no application; or its name, such as `wordpress`.
        ///
        /// Its rules come before those of `[[rule]]`: what is private, where visitors upload to, its front controller.
        /// With `mode` snapshot or worker and no `script` or `boot`, the server boots `symfony` and `laravel`, and in
        /// snapshot mode `wordpress` and `drupal`, once for many requests. The front controller then runs in a pool
        /// named after the application, in a site `SITE.APP`. Other requests run in classic mode: for other scripts,
        /// while that pool does not serve, and with `wordpress` and `drupal` all but `GET` and `HEAD` of anonymous
        /// visitors. An application that `auto` has found boots in mode snapshot if `mode` is not set, Symfony only
        /// with the package `symfony/runtime`.
        ///
        /// One of `adminer`, `bedrock`, `cacti`, `dokuwiki`, `drupal`, `icingaweb2`, `joomla`, `laravel`, `mediawiki`,
        /// `nextcloud`, `phpldapadmin`, `phpmyadmin`, `phpsysinfo`, `postfixadmin`, `roundcube`, `shaarli`, `simplesamlphp`,
        /// `symfony`, `wordpress`.
        app: AppChoice = r#""auto""# flag("app") example(r#""wordpress""#);
        /// `SERVER_NAME` for scripts, whatever host was requested; `""` for the requested host.
        ///
        /// Applications build URLs from it, for example in password reset mails.
        server_name: Option<String> = r#""""# example(r#""www.example.org""#);
        /// Follow `.htaccess` files below the root, like Apache's `AllowOverride All`.
        ///
        /// These files then decide what runs if no file matches; `front_controller` does not apply. Requests below a file
        /// with an unknown directive get 500, as under Apache.
        htaccess: bool = "false" flag("htaccess") example("true");
        /// Broker through which several servers share updates (Mercure, channels), certificates with their keys, and
        /// rates of `limit`: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `nats://` for all but the rates.
        /// `rediss://` and `natss://` use TLS. `""` for none.
        ///
        /// `?ca=FILE` names additional CA certificates to verify the broker with, in PEM. Anyone who can read its data
        /// can impersonate your site. Prefer the environment variable for an address with a password.
        share: Option<Secret> = r#""""# restart(true) example(r#""rediss://:password@redis.internal:6379/0""#);
        /// Glob patterns of site files, relative to the directory of `howdah.toml`, read in the order of their names.
        ///
        /// A file contains the keys of one `[[site]]` without the header, or several `[[site]]` and their
        /// `[pool.NAME]`.
        site_patterns: Vec<String> = r#"["conf.d/*.toml"]"# key("sites") example(r#"["sites/*.toml"]"#);
    }
    plus {
        /// The `howdah.toml` that was read, with its full path.
        config_file: Option<PathBuf> = None;
        /// Lower limit of the time for which the old process may keep its connections after an upgrade.
        drain: Duration = fixed_time("drain", Duration::from_secs(60));
        /// Interval of heartbeats between servers that share channels.
        presence_interval: Duration = fixed_time("presence_interval", Duration::from_secs(5));
        /// Origin of `user`.
        server_user: ServerUser = ServerUser::Named;
        /// Development mode, which only `howdah dev` sets: errors become pages that show source code, and no site
        /// serves every host.
        development: bool = false;
        /// Under development: patterns of the files whose changes reload pages in browsers.
        page_files: Vec<String> = Vec::new();
        /// Set if the settings come from a configuration of PHP-FPM.
        fpm: Option<FpmServer> = None;
        /// The pools of PHP workers. The first is called `default`, except under `howdah-fpm`, and runs the scripts of
        /// sites and routes that name no other.
        pools: Vec<PoolSettings> = vec![PoolSettings::default()];
        /// The recipe's boot, if the top level is the only site.
        booted: Option<RecipePool> = None;
        /// The sites: each `[[site]]`, and those in the files of `sites`. If there are none, the top level is the only
        /// site.
        sites: Vec<SiteSettings> = Vec::new();
        /// The files with sites that were read.
        site_files: Vec<PathBuf> = Vec::new();
        /// Rules, in the order written.
        rules: SiteRules = SiteRules::default();
        /// The servers that requests are forwarded to: each `[proxy.NAME]`, and each address that a route names.
        proxies: Vec<ProxySettings> = Vec::new();
        /// Section `[http]`.
        http: HttpSettings = HttpSettings::default();
        /// Section `[tls]`.
        tls: TlsSettings = TlsSettings::default();
        /// Section `[static]`.
        static_files: StaticSettings = StaticSettings::default();
        /// Section `[compression]`.
        compression: CompressionSettings = CompressionSettings::default();
        /// Section `[acme]`.
        acme: AcmeSettings = AcmeSettings::default();
        /// Section `[mercure]`.
        mercure: MercureSettings = MercureSettings::default();
        /// Section `[pusher]`.
        pusher: PusherSettings = PusherSettings::default();
        /// Section `[deploy]`.
        deploy: DeploySettings = DeploySettings::default();
        /// Section `[log]`.
        log: LogSettings = LogSettings::default();
        /// Section `[telemetry]`.
        telemetry: TelemetrySettings = TelemetrySettings::default();
    }
}

settings! {
    /// One pool of PHP workers. At the top level of `howdah.toml` these settings are the default pool's; a section
    /// `[pool.NAME]` adds another pool, which inherits from them.
    pub struct PoolSettings at "" {
        /// State that a worker keeps between two requests: none (`classic`), everything (`worker`), the state after
        /// boot (`snapshot`), or everything, with several requests at once (`async`).
        mode: Mode = r#""classic""# flag("mode") example(r#""worker""#);
        /// PHP script that workers run in the modes other than classic.
        script: Option<PathBuf> = r#""""# flag("script") example(r#""worker.php""#);
        /// PHP file that runs once before mode `snapshot` takes the snapshot, and so becomes part of it.
        boot: Option<PathBuf> = r#""""# flag("boot") example(r#""boot.php""#);
        /// Number of PHP processes: `N`, or `"MIN-MAX"` to start more under load.
        ///
        /// The default respects limits of control groups (`howdah check` shows them). A `MIN` of 0 makes a pool on
        /// demand: without load it has no worker, and the first request waits for one.
        workers: WorkerRange = "twice the number of processors, if memory has 64 MiB for each" auto(default_workers) flag("workers") example(r#""2-16""#);
        /// Number of idle workers to keep ready in addition to busy ones, up to `MAX`: `N`, or `"LEAST-MOST"`.
        ///
        /// Workers beyond `MIN` and these end after 10 idle seconds. With `MOST`, that many idle workers stay, and further
        /// ones end at once, one a second. In mode `async` a worker counts as idle for the free part of its `concurrency`.
        spare_workers: SpareWorkers = "0" example(r#""1-2""#);
        /// Maximum number of concurrent requests per worker in mode `async`; further ones wait in the `queue`.
        concurrency: usize = "100" in(1, 10000) example("500");
        /// Maximum time of a request in PHP. After it the client gets 504, or its response is cut off if it has begun,
        /// and the worker is replaced; 0 for none.
        ///
        /// In mode `async` the request is cancelled; the worker is replaced only if it has not ended 5 s later.
        deadline: Option<Duration> = r#""60s""# example(r#""5m""#);
        /// Maximum processor time of a request, with the consequences of `deadline`; 0 for none.
        ///
        /// It counts like PHP's `max_execution_time` (without waiting and programs that a script starts), but scripts
        /// cannot catch or extend it. Not available in mode `async`.
        cpu_deadline: Option<Duration> = "0" example(r#""10s""#);
        /// Maximum number of requests that wait for a worker. Further ones wait briefly for a free place, then get 503.
        ///
        /// `queue_timeout` is the more useful limit.
        queue: usize = "65536" in(0, 1000000) example("256");
        /// Maximum time that a request waits for a worker, from its arrival. After it the client gets 503.
        ///
        /// If the queue stays long for this time, the limit falls to 2 s, or to half of this if that is less, until the
        /// queue is short again.
        queue_timeout: Duration = r#""30s""# example(r#""5s""#);
        /// Time in PHP after which a request is recorded in the slow log, with its PHP stack; 0 for never. A pool
        /// makes at most 10 entries per second, after a burst of 20.
        slow_log_after: Option<Duration> = "0" example(r#""5s""#);
        /// Destination of the slow log, like `log.error`. Pools may share one.
        slow_log: LogTarget = r#""stderr""# example(r#""/var/log/howdah/slow.log""#);
        /// Maximum number of times that a request is run again after its worker died; 0 for never.
        ///
        /// Applies to `GET`, `HEAD` and `OPTIONS` of which nothing was sent. Deaths before the worker began the
        /// request, or while it ran another one's code, do not count.
        replay: u32 = "2" in(0, 2) example("0");
        /// Number of requests after which a worker is replaced; 0 for never.
        max_requests: u64 = "0" example("10000");
        /// Memory above which a worker is replaced after a request. 0 in worker mode for three quarters of PHP's
        /// `memory_limit`, in other modes for no limit.
        max_memory: Option<ByteSize> = "0" example(r#""256M""#);
        /// Maximum memory of all workers of the pool together; 0 for no limit.
        ///
        /// Measured every few seconds, with shared memory counted proportionally (PSS). Above it the largest workers
        /// end after their request, and no more are started than fit, down to the `MIN` of `workers`.
        max_pool_memory: Option<ByteSize> = "0" example(r#""2G""#);
        /// Maximum time for PHP to start, and for each worker to boot, with the boot script and the warm-up.
        boot_timeout: Duration = r#""60s""# example(r#""10s""#);
        /// Paths that snapshot mode requests before it takes the snapshot.
        warmup: Vec<String> = "[]" flag("warmup") example(r#"["/", "/login"]"#);
        /// Request each `warmup` path as two visitors first, and serve without the warm-up if both get the same
        /// session, cookie or token.
        warmup_check: bool = "true" example("false");
        /// Learn frequent GETs from the traffic, and warm up new workers with them in addition to `warmup`. For
        /// snapshot pools with a script; on by default if `app` boots Symfony, Laravel or WordPress, and for Octane's
        /// script without `warmup`.
        ///
        /// Learned paths are requested without cookies and `Authorization`. They are kept in the state directory
        /// (`acme.state`) for the next start.
        warmup_auto: bool = "false" example("true");
        /// Compare one in this many GETs with classic mode, on an idle worker, after the response. A route that
        /// differs, is slower, or kills its workers then runs in classic mode: `howdah routes`. 0 for none.
        ///
        /// Applies to pools in other modes than classic, and to requests without a body, cookies or other headers that
        /// may identify or authorize a client. They are compared with the first pool in classic mode that has the same
        /// root; for a pool that boots the `app` of a site, with the site's fallback. The default is 1000 if
        /// `app = "auto"` boots the application and `mode` is not set.
        compare_one_in: u32 = "0" in(0, 1000000000) example("1000");
        /// Path at which this pool's sites show its status like PHP-FPM, with `?json`, `?xml`, `?html`, `?openmetrics`
        /// and `?full`; `""` for none. With `?ping` it is PHP-FPM's ping page: `pong`, or 503 while the pool cannot
        /// serve. Restrict it with rules.
        ///
        /// The admin address always has `/pools/NAME/status`.
        status_path: Option<String> = r#""""# example(r#""/fpm-status""#);
        /// Glob patterns of files, relative to the directory of the file that sets them, whose changes reload the pool.
        ///
        /// For development. `*` matches text within a name, `**` any directories, `{a,b}` either; hidden names must be
        /// spelled out.
        watch: Vec<String> = "[]" example(r#"["src/**/*.php"]"#);
    }
    plus {
        /// Idle time after which workers beyond `MIN` and `spare_workers` end.
        shrink_after: Duration = fixed_time("shrink_after", Duration::from_secs(10));
        /// The pool in classic mode for comparisons.
        compare_with: Option<String> = None;
        /// The pool's name.
        name: String = DEFAULT_POOL.to_owned();
        /// The recipe that boots its application. The pool then precedes the site's own pool: see `RecipePool`.
        recipe: Option<String> = None;
        /// Number of workers that start with the pool; 0 for `MIN`. Larger if a recipe boots the application in another
        /// pool.
        start_workers: usize = 0;
        /// Set if the settings come from a configuration of PHP-FPM.
        fpm: Option<FpmPool> = None;
        /// Its PHP: section `[php]`, overridden by `[pool.NAME]`.
        php: PhpSettings = PhpSettings::default();
        /// Its sandbox: section `[sandbox]`, overridden by `[pool.NAME.sandbox]`.
        sandbox: SandboxSettings = SandboxSettings::default();
    }
}

settings! {
    /// The PHP that a pool runs.
    pub struct PhpSettings at "php" {
        /// `howdah-php` to run: a PHP version, or a program.
        ///
        /// `"8.4"` is a `howdah-php8.4` next to the `howdah` program, in `libexec/howdah` next to that directory, or in
        /// `PATH`. Short form: `php = "8.4"`, at the top level or in `[pool.NAME]`.
        binary: PhpProgram = "`howdah-php`, else the newest `howdah-phpX.Y`" auto(PhpProgram::plain) flag("php")
            example(r#""8.4""#);
        /// `php.ini` file, or its directory; `""` for PHP's default.
        config: Option<PathBuf> = r#""""# example(r#""/etc/php/8.2/fpm""#);
        /// Values that override `php.ini`.
        ///
        /// Words (`off`), numbers and expressions of constants (`E_ALL & ~E_NOTICE`) mean the same as there. Any other
        /// value is passed as text, including `=`, `;`, `${`, quotes and line breaks. Quotes around the whole value are
        /// removed.
        ini: BTreeMap<String, String> = "{}" flag("define") example(r#"{ memory_limit = "256M", display_errors = false }"#);
        /// Values like `ini` that neither scripts nor `.user.ini` files can change.
        ///
        /// They override `ini`. In classic and snapshot mode, sections `[PATH=…]` and `[HOST=…]` of `php.ini` override
        /// them. `PHP_ADMIN_VALUE`, sent over FastCGI by a web server in front, does so in every mode.
        admin_ini: BTreeMap<String, String> = "{}" example(r#"{ open_basedir = "/srv/app:/tmp", memory_limit = "128M" }"#);
        /// Environment variables for PHP.
        env: BTreeMap<String, String> = "{}" example(r#"{ APP_ENV = "prod" }"#);
        /// Start PHP without the server's environment variables.
        clear_env: bool = "false" example("true");
        /// User that PHP runs as, or `USER:GROUP`; `""` for the server's. Requires a server started as root.
        user: Option<String> = r#""""# flag("user") example(r#""www-data""#);
        /// Supplementary groups of that user.
        groups: Vec<String> = "those that the user is in" auto(no_groups) example(r#"["video"]"#);
        /// Disable setuid and setgid programs and file capabilities for programs that PHP runs.
        ///
        /// `mail()` through Postfix's `sendmail` needs them.
        no_new_privs: bool = "false" example("true");
        /// Kernel limits of each process, like `ulimit`: `as`, `core`, `cpu` (seconds), `data`, `fsize`, `memlock`,
        /// `nofile`, `nproc` (of the user), `stack`. A number, a size, `"unlimited"`, or `"SOFT:HARD"`.
        limits: BTreeMap<String, String> = "{}" example(r#"{ nofile = 4096, core = 0, as = "2G" }"#);
        /// Permissions that new files of PHP do not get, in octal; `""` for the server's umask.
        umask: Option<FileMode> = r#""""# example(r#""0027""#);
        /// Control group (cgroup v2) of PHP's processes, created if its parent exists; `""` for the server's.
        cgroup: Option<PathBuf> = r#""""# example(r#""/sys/fs/cgroup/system.slice/howdah.service/shop""#);
        /// Limits of that group, for all processes of the pool: `memory.max`, `memory.high` and `memory.swap.max`
        /// (sizes), `pids.max`, `cpu.max` (cores), `cpu.weight`.
        ///
        /// The parent's directory must have the controllers, which the system must delegate.
        cgroup_limits: BTreeMap<String, String> = "{}" example(r#"{ "memory.max" = "1G", "pids.max" = 100, "cpu.max" = 1.5 }"#);
    }
    plus {}
}

/// The name of the pool whose settings are at the top level.
pub const DEFAULT_POOL: &str = "default";

impl Settings {
    pub fn pool(&self, name: &str) -> Option<&PoolSettings> {
        self.pools.iter().find(|pool| pool.name == name)
    }

    /// The shares of the routes of all sites, each at the index in its `number`.
    pub fn shares(&self) -> Vec<Share> {
        let routes = |rules: &SiteRules| rules.routes().iter().filter_map(|route| route.share).collect::<Vec<_>>();
        let sites = self.sites.iter().flat_map(|site| routes(&site.rules));
        let mut shares: Vec<Share> = routes(&self.rules).into_iter().chain(sites).collect();
        shares.sort_by_key(|share| share.number);
        // A site without rules has those of the top level.
        shares.dedup_by_key(|share| share.number);
        shares
    }
}

fn default_root() -> PathBuf {
    PathBuf::from(".")
}

fn default_admin() -> ListenAddr {
    ListenAddr::Unix(std::env::temp_dir().join("howdah.sock"))
}

fn default_threads() -> usize {
    machine::processors().div_ceil(2).min(64)
}

fn default_workers() -> WorkerRange {
    let workers = machine::here().default_workers();
    WorkerRange { min: workers, max: workers }
}

/// Placeholder: the server's user is decided when all pools are known.
const fn no_user() -> Option<String> {
    None
}

/// An empty list stands for the user's own groups.
fn no_groups() -> Vec<String> {
    Vec::new()
}

impl PoolSettings {
    /// Processor time of a page in classic mode, in parts of that in this pool, if a recipe boots its application.
    pub fn gain(&self) -> Option<&'static str> {
        Some(howdah_detect::Recipe::named(self.recipe.as_deref()?)?.gain)
    }
}

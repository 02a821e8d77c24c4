//! The settings that the program uses: the server as a whole, pools, routes. Final: everything is resolved and checked
//! before anyone reads it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use howdah_budget::machine;

use crate::address::ListenAddr;
use crate::booted::Booted;
use crate::choice::{Mode, RootLinks, ServerUser, UnknownDirective};
use crate::log_target::LogTarget;
use crate::php_program::PhpProgram;
use crate::quantity::{ByteSize, FileMode, SpareWorkers, WorkerRange};
use crate::rules::SiteRules;
use crate::secret::Secret;
use crate::settings_acme::AcmeSettings;
use crate::settings_deploy::DeploySettings;
use crate::settings_http::{CompressionSettings, HttpSettings, LogSettings, StaticSettings};
use crate::settings_proxy::ProxySettings;
use crate::settings_route::Route;
use crate::settings_sandbox::SandboxSettings;
use crate::settings_site::SiteSettings;
use crate::settings_telemetry::TelemetrySettings;
use crate::settings_tls::TlsSettings;
use crate::table::settings;

settings! {
    /// All settings of a server.
    pub struct Settings at "" {
        /// The directory that is served. An absolute path once loaded.
        root: PathBuf = "`./public` if there is one, else `.`" auto(default_root) example(r#""/srv/app/public""#);
        /// When symbolic links in the path of `root` are resolved, such as `current` that leads to a release: not at all
        /// (`keep`), when the settings are read, so with each `reload`, or at the beginning of each `request`, as with nginx's
        /// `$realpath_root`. `DOCUMENT_ROOT` and all that is served lie in what they led to then.
        ///
        /// With `reload`, `script` and `boot` are resolved too, so that code and files change together.
        root_links: RootLinks = r#""keep""# example(r#""reload""#);
        /// Where to listen: `ADDR:PORT`, `:PORT` (every IPv4 address), `[::]:PORT` (every address) or `unix:PATH`. With
        /// `https://` before an address TLS is spoken there, see `[tls]`; `http://` changes nothing.
        listen: Vec<ListenAddr> = r#"["127.0.0.1:8080"]"# flag("listen")
            example(r#"["http://:80", "https://:443", "unix:/run/howdah.sock"]"#);
        /// Where `howdah status`, `reload` and `stop` reach the server: `unix:PATH` or `ADDR:PORT`.
        ///
        /// Whoever can connect there can stop the server, so prefer a Unix socket.
        admin: ListenAddr = "a Unix socket named after the first listen address, in `$XDG_RUNTIME_DIR`, `/run` or the temporary directory"
            auto(default_admin) flag("admin") example(r#""unix:/run/howdah/admin.sock""#);
        /// The permissions of the admin socket, in octal. Its owner is whoever starts the server.
        ///
        /// Workers of the server are turned away whatever they may open.
        admin_mode: FileMode = r#""0600""# example(r#""0660""#);
        /// The group of the admin socket; `""` for that of its owner.
        admin_group: Option<String> = r#""""# example(r#""adm""#);
        /// Let `admin` be an address that other machines can reach.
        admin_remote: bool = "false" example("true");
        /// Names under which the admin endpoint is asked on an address, beside that address and `localhost`.
        admin_hosts: Vec<String> = "[]" example(r#"["web1.internal"]"#);
        /// What a request to the admin endpoint on an address must carry as `Authorization: Bearer TOKEN`; `""` for nothing.
        ///
        /// Without one every process of this machine, scripts included, can stop the server there.
        admin_token: Option<Secret> = r#""""# example(r#""a long random text""#);
        /// Let the dashboard (`/dashboard` on an `admin` that is an address) restart pools, drain workers and restore
        /// demoted routes. Without it, it only shows.
        dashboard_orders: bool = "false" example("true");
        /// The permissions of Unix sockets in `listen`, in octal.
        listen_mode: FileMode = r#""0660""# example(r#""0666""#);
        /// The owner of Unix sockets in `listen`; `""` for the user that the server runs as.
        listen_owner: Option<String> = r#""""# example(r#""www-data""#);
        /// The group of Unix sockets in `listen`; `""` for that of the server. A proxy in front must be in it.
        listen_group: Option<String> = r#""""# example(r#""www-data""#);
        /// Started as root: the user that the server becomes once it listens and its logs are open; `""` for none.
        ///
        /// A small process stays root and starts PHP, each pool as its own `user`. Scripts can end the processes of their user
        /// and read its files, so the server takes a user of its own where it can: `howdah`, with the groups of the pools' users
        /// too, so that it can read what they serve. Where a user is set here and none for PHP, PHP runs as this one too.
        user: Option<String> = "with a `php.user`: `howdah` if there is that account, else `php.user`" auto(nobody) example(r#""howdah""#);
        /// The group that goes with it; `""` for the user's own.
        group: Option<String> = r#""""# example(r#""howdah""#);
        /// Serve as root, and run PHP as root, where no user is set.
        allow_root: bool = "false" flag("allow-root") example("true");
        /// Let other processes of the server's user read its memory and the kernel write core files of it, to debug it.
        dumpable: bool = "false" example("true");
        /// The number of I/O threads of the server. PHP runs in processes of its own, see `workers`, and needs the other cores.
        threads: usize = "half the number of processors" auto(default_threads) in(1, 64) example("2");
        /// How long a stop waits for the requests that still run.
        grace: Duration = r#""30s""# example(r#""10s""#);
        /// After an upgrade: how long the old process keeps the connections that it has. Each goes with its next response, so
        /// this is for clients that ask nothing, WebSockets and long requests; what is left then is ended as in a stop.
        drain_timeout: Duration = r#""60s""# example(r#""1h""#);
        /// File names tried in turn where the path is a directory.
        index: Vec<String> = r#"["index.php", "index.html"]"# example(r#"["index.php"]"#);
        /// The script under the root that runs where no file matches the path; `""` for none (404 then).
        front_controller: Option<String> = r#""index.php""# example(r#""app.php""#);
        /// The application that is served, whose rules then come before those of `[[rule]]`: what is private in it, where
        /// visitors upload to, its front controller; `""` for none.
        ///
        /// One of `adminer`, `bedrock`, `cacti`, `dokuwiki`, `drupal`, `icingaweb2`, `joomla`, `laravel`, `mediawiki`,
        /// `nextcloud`, `phpldapadmin`, `phpmyadmin`, `phpsysinfo`, `postfixadmin`, `roundcube`, `shaarli`, `simplesamlphp`,
        /// `symfony`, `wordpress`.
        app: Option<String> = r#""""# example(r#""wordpress""#);
        /// Without a `howdah.toml`: look which application is in the directory, and take its document root and its rules (`app`).
        ///
        /// Its files are read, none is run. `howdah init --list` lists what is known.
        detect: bool = "true" example("false");
        /// The recipe that boots the application in `root` once for many requests, in `mode` snapshot (the default then) or
        /// worker: `symfony`, `laravel`, `wordpress` (snapshot only), or `none`. Its front controller runs in a pool named after
        /// the recipe, in a site `SITE.RECIPE`. All other scripts, and the front controller whenever that pool does not serve,
        /// run in classic mode.
        ///
        /// Without a `howdah.toml` it is the one of the application that is found, unless `mode` is classic or async, or a
        /// script is said. `wordpress` has to be asked for.
        recipe: Option<String> = r#""""# flag("recipe") example(r#""symfony""#);
        /// `SERVER_NAME` for scripts, whatever host was asked for; `""` for that host.
        ///
        /// Applications build addresses from it, mails with a link to reset a password among them.
        server_name: Option<String> = r#""""# example(r#""www.example.org""#);
        /// Follow `.htaccess` files below the root, as Apache does with `AllowOverride All`.
        ///
        /// What runs where no file matches is then said by those files alone, and not by `front_controller`.
        htaccess: bool = "false" flag("htaccess") example("true");
        /// What becomes of an `.htaccess` file with a directive that is not known: `refuse` it (500, as under Apache), or
        /// `ignore` the directive.
        htaccess_unknown: UnknownDirective = r#""refuse""# example(r#""ignore""#);
        /// Files with sites, as glob patterns relative to the directory of `howdah.toml`; read in the order of their names.
        ///
        /// A file holds the keys of one `[[site]]` without that header, or several `[[site]]` and their `[pool.NAME]`.
        site_patterns: Vec<String> = r#"["conf.d/*.toml"]"# key("sites") example(r#"["sites/*.toml"]"#);
    }
    plus {
        /// The `howdah.toml` that was read, with its full path.
        config_file: Option<PathBuf> = None;
        /// Where `user` comes from.
        server_user: ServerUser = ServerUser::Named;
        /// Serve for a developer, as `howdah dev` does and nothing else: errors become pages that show source code, and no site is
        /// for every host.
        development: bool = false;
        /// The pools of PHP workers. The first is called `default` and takes what no route sends elsewhere.
        pools: Vec<PoolSettings> = vec![PoolSettings::default()];
        /// Where the top level is the one site: what its recipe has booted.
        booted: Option<Booted> = None;
        /// The sites: each `[[site]]`, and those of the files in `sites`. Where there is none, the top level is the one site.
        sites: Vec<SiteSettings> = Vec::new();
        /// The files with sites that were read.
        site_files: Vec<PathBuf> = Vec::new();
        /// Which paths go to which pool; the first match wins.
        routes: Vec<Route> = Vec::new();
        /// What is done with which requests, in the order written.
        rules: SiteRules = SiteRules::default();
        /// The servers that requests are handed on to: each `[proxy.NAME]`, and each address that a route names.
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
    /// `[pool.NAME]` makes another pool and inherits from there.
    pub struct PoolSettings at "" {
        /// What lives on between two requests of a worker: nothing (`classic`), everything (`worker`), the state after
        /// boot (`snapshot`), or everything with several requests at once (`async`).
        mode: Mode = r#""classic""# flag("mode") example(r#""worker""#);
        /// The PHP script that workers run in the modes other than classic.
        script: Option<PathBuf> = r#""""# flag("script") example(r#""worker.php""#);
        /// A PHP file that is run once before the first request (its state is kept in the snapshot).
        boot: Option<PathBuf> = r#""""# flag("boot") example(r#""boot.php""#);
        /// The number of PHP processes: `N`, or `"MIN-MAX"` to start more while there is work.
        ///
        /// Processors and memory are those that the control group allows (`howdah check` shows them). A `MIN` of 0 is a pool on demand: without work it has no worker, and the first request waits for one.
        workers: WorkerRange = "twice the number of processors, if memory has 64 MiB for each" auto(default_workers) flag("workers") example(r#""2-16""#);
        /// How many idle workers are kept ready beyond those that are busy, up to `MAX`: `N`, or `"LEAST-MOST"`.
        ///
        /// With `MOST`, idle workers up to that number stay, and those beyond it end one a second, whatever `shrink_after`
        /// says. In mode `async` a worker counts as idle for the part of its `concurrency` that is free.
        spare_workers: SpareWorkers = "0" example(r#""1-2""#);
        /// Workers beyond `MIN` and `spare_workers` end when they have been idle for so long.
        shrink_after: Duration = r#""10s""# example(r#""1m""#);
        /// In mode `async`, how many requests one worker runs at once; further ones wait in the `queue`.
        concurrency: usize = "100" in(1, 10000) example("500");
        /// The longest time that a request may run in PHP; then the client gets 504 and the worker is replaced. 0 for none.
        ///
        /// In mode `async` only the request is cancelled; the worker is replaced if that has not ended 5 s later.
        deadline: Option<Duration> = r#""60s""# example(r#""5m""#);
        /// The longest processor time that a request may use; then the client gets 504 and the worker is replaced. 0 for none.
        ///
        /// It counts as PHP's `max_execution_time` does (programs that a script starts and waiting do not count), but from
        /// outside: no script can catch it or set it anew. Not in mode `async`, whose workers run many requests at once.
        cpu_deadline: Option<Duration> = "0" example(r#""10s""#);
        /// The largest number of requests that wait for a worker. Further ones wait for a place first; then they get 503.
        ///
        /// Time bounds the queue, not this number: see `queue_timeout`.
        queue: usize = "65536" in(0, 1000000) example("256");
        /// The longest time that a request waits for a worker; then the client gets 503. It counts from the request's arrival,
        /// wherever it has waited.
        queue_timeout: Duration = r#""30s""# example(r#""5s""#);
        /// A request that runs in PHP for longer than this is noted in the slow log, with its PHP stack. 0 for none.
        ///
        /// A route may have its own limit.
        slow_log_after: Option<Duration> = "0" example(r#""5s""#);
        /// Where the slow log goes: as `log.error`, see there. Pools may share one.
        slow_log: LogTarget = r#""stderr""# example(r#""/var/log/howdah/slow.log""#);
        /// How often a request is run again whose worker died while it ran; 0 for never.
        ///
        /// Only `GET`, `HEAD` and `OPTIONS`, and only while nothing of the response was sent. A request that its worker had not
        /// begun is not run again but run: that does not count.
        replay: u32 = "2" in(0, 2) example("0");
        /// A worker is replaced after this many requests; 0 for never.
        max_requests: u64 = "0" example("10000");
        /// A worker is replaced after a request that leaves it with more memory than this. 0 in worker mode for three quarters of
        /// PHP's `memory_limit`, otherwise for any amount.
        max_memory: Option<ByteSize> = "0" example(r#""256M""#);
        /// Memory that all workers of the pool may have together; 0 for any amount.
        ///
        /// They are measured every few seconds, and what processes share counts in parts (PSS). Above it the largest go after their requests, and no more are started than have
        /// room, as far as `MIN` of `workers` allows.
        max_pool_memory: Option<ByteSize> = "0" example(r#""2G""#);
        /// The longest time that PHP may take to start, boot script included.
        boot_timeout: Duration = r#""60s""# example(r#""10s""#);
        /// Paths that snapshot mode requests for the snapshot before a worker takes work.
        warmup: Vec<String> = "[]" example(r#"["/", "/login"]"#);
        /// Whether a snapshot pool first asks each `warmup` path as two visitors, and serves without the warm-up if both get the
        /// same session, cookie or token.
        warmup_check: bool = "true" example("false");
        /// Whether a snapshot pool with a script learns from its traffic which GETs are frequent, and warms new workers up with
        /// them beside `warmup`. Where a `recipe` boots the application it does, unless this says otherwise.
        ///
        /// A learnt path is asked for without cookies and without `Authorization`. What was learnt is kept in the state directory
        /// (`acme.state`) for the next start.
        warmup_auto: bool = "false" example("true");
        /// In the modes other than classic: one of so many GETs is run again in classic mode, on an idle worker and after its
        /// response, and both responses are compared. A route that differs, or whose requests kill their workers, runs in classic
        /// mode from then on: `howdah routes`. 0 for none.
        ///
        /// Only requests without cookies, `Authorization` and a body. Where a `recipe` boots an application that was found, it is
        /// 1000, unless this says otherwise.
        compare_one_in: u32 = "0" in(0, 1000000000) example("1000");
        /// The pool in classic mode that they run in, which serves the same root; of a pool that boots by a `recipe` it is the
        /// pool of its site.
        compare_with: Option<String> = r#""""# example(r#""plain""#);
        /// The path under which the sites that this pool serves show its state as PHP-FPM does, with `?json`, `?xml`, `?html`,
        /// `?openmetrics` and `?full`; `""` for none. Rules say who may see it.
        ///
        /// The admin address shows it as `/pools/NAME/status` in any case.
        status_path: Option<String> = r#""""# example(r#""/fpm-status""#);
        /// The path that those sites answer themselves while the pool has a worker, and with 503 while it has none; `""` for
        /// none.
        ///
        /// The admin address has `/pools/NAME/ping` in any case.
        ping_path: Option<String> = r#""""# example(r#""/ping""#);
        /// Glob patterns of files, relative to the directory of `howdah.toml`; a change reloads the pool.
        ///
        /// For development. `*` stands for any text within a name, `**` for any directories, `{a,b}` for either; names that
        /// start with a dot must be named.
        watch: Vec<String> = "[]" example(r#"["src/**/*.php"]"#);
    }
    plus {
        /// The pool's name.
        name: String = DEFAULT_POOL.to_owned();
        /// The recipe that boots its application. Then it goes ahead of the pool of a site: see `Booted`.
        recipe: Option<String> = None;
        /// Number of workers that start with the pool; 0 for `MIN`. More where a recipe boots the application in another pool.
        start_workers: usize = 0;
        /// Its PHP: section `[php]`, with what `[pool.NAME]` says over it.
        php: PhpSettings = PhpSettings::default();
        /// Its sandbox: section `[sandbox]`, with what `[pool.NAME.sandbox]` says over it.
        sandbox: SandboxSettings = SandboxSettings::default();
    }
}

settings! {
    /// The PHP that a pool runs.
    pub struct PhpSettings at "php" {
        /// Which `howdah-php` to run: a version of PHP, or a program.
        ///
        /// There is one for each version. `"8.4"` stands for a `howdah-php8.4` beside the `howdah` program, in `libexec/howdah`
        /// next to that directory, or in `PATH`. In short: `php = "8.4"`, at the top level or in `[pool.NAME]`.
        binary: PhpProgram = "`howdah-php`, else the newest `howdah-phpX.Y`" auto(PhpProgram::plain) flag("php")
            example(r#""8.4""#);
        /// The `php.ini` file, or the directory it is in; `""` for the one that PHP finds itself.
        config: Option<PathBuf> = r#""""# example(r#""/etc/php/8.2/fpm""#);
        /// Values over those of `php.ini`.
        ///
        /// Words (`off`), numbers and expressions of constants (`E_ALL & ~E_NOTICE`) mean what they mean there. Any other value
        /// is a text and reaches PHP whole, whatever it holds: `=`, `;`, `${`, quotes, line breaks. A value in quotes from
        /// its first character to its last is meant without them.
        ini: BTreeMap<String, String> = "{}" flag("define") example(r#"{ memory_limit = "256M", display_errors = false }"#);
        /// The same, and neither scripts nor `.user.ini` files can change them.
        ///
        /// They also go before what `ini` says. Sections `[PATH=…]` and `[HOST=…]` of `php.ini`, the administrator's too, still count.
        admin_ini: BTreeMap<String, String> = "{}" example(r#"{ open_basedir = "/srv/app:/tmp", memory_limit = "128M" }"#);
        /// Environment variables for PHP.
        env: BTreeMap<String, String> = "{}" example(r#"{ APP_ENV = "prod" }"#);
        /// Start PHP without the variables of the server's own environment.
        clear_env: bool = "false" example("true");
        /// The user that PHP runs as; `""` for the server's. The server must be started as root.
        user: Option<String> = r#""""# flag("user") example(r#""www-data""#);
        /// The group that goes with it; `""` for the user's own.
        group: Option<String> = r#""""# example(r#""www-data""#);
        /// Its supplementary groups.
        groups: Vec<String> = "those that the user is in" auto(no_groups) example(r#"["video"]"#);
        /// Let other processes of PHP's user read its memory and the kernel write core files of it, to debug it.
        dumpable: bool = "false" example("true");
        /// Programs that PHP runs gain no rights by being setuid, setgid or having capabilities.
        ///
        /// `mail()` through Postfix's `sendmail` needs such rights.
        no_new_privs: bool = "false" example("true");
        /// Limits of the kernel on each process, as `ulimit` sets them: `as`, `core`, `cpu` (seconds), `data`, `fsize`,
        /// `memlock`, `nofile`, `nproc` (of the user), `stack`. A number, a size, `"unlimited"`, or `"SOFT:HARD"`.
        limits: BTreeMap<String, String> = "{}" example(r#"{ nofile = 4096, core = 0, as = "2G" }"#);
        /// The permissions that new files of PHP do not get, in octal; `""` for those that the server was started with.
        umask: Option<FileMode> = r#""""# example(r#""0027""#);
        /// The directory of the control group (cgroup v2) that PHP's processes join; it is made if its parent is there. `""` for
        /// that of the server.
        cgroup: Option<PathBuf> = r#""""# example(r#""/sys/fs/cgroup/system.slice/howdah.service/shop""#);
        /// Limits of that group, for all processes of the pool together: `memory.max`, `memory.high` and `memory.swap.max`
        /// (sizes), `pids.max`, `cpu.max` (cores), `cpu.weight`.
        ///
        /// They need the controllers in the parent's directory, which the system must delegate.
        cgroup_limits: BTreeMap<String, String> = "{}" example(r#"{ "memory.max" = "1G", "pids.max" = 100, "cpu.max" = 1.5 }"#);
    }
    plus {}
}

/// The name of the pool that is always there.
pub const DEFAULT_POOL: &str = "default";

impl Settings {
    /// The pool with this name.
    #[must_use]
    pub fn pool(&self, name: &str) -> Option<&PoolSettings> {
        self.pools.iter().find(|pool| pool.name == name)
    }

    /// Whether some requests of a pool are noted in its slow log.
    #[must_use]
    pub fn has_slow_log(&self, pool: &PoolSettings) -> bool {
        let noted = |route: &&Route| route.pool == pool.name && route.proxy.is_none() && route.slow_log_after.is_some();
        pool.slow_log_after.is_some() || self.shares().iter().any(noted)
    }

    /// The routes of all sites that have a share, each at the position that its `share` says.
    #[must_use]
    pub fn shares(&self) -> Vec<&Route> {
        let sites = self.sites.iter().flat_map(|site| &site.routes);
        let mut routes: Vec<&Route> = self.routes.iter().chain(sites).filter(|route| route.share.is_some()).collect();
        routes.sort_by_key(|route| route.share);
        // A site without routes of its own has those of the top level.
        routes.dedup_by_key(|route| route.share);
        routes
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

/// Which user the server becomes is settled when all pools are known.
const fn nobody() -> Option<String> {
    None
}

/// Empty stands for those that the user is in.
fn no_groups() -> Vec<String> {
    Vec::new()
}

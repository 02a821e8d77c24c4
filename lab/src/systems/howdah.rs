//! Howdah, in each of its modes.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Running, Script, Site, System, found, missing, program, version_line};
use crate::cases::{Protocol, Setup};
use crate::record::{Role, SystemStatus};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A full PHP request each time.
    Classic,
    /// Boot once, then loop.
    Worker,
    /// Boot once, restore after each request.
    Snapshot,
    /// Several requests at once in one process.
    Async,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Classic, Self::Worker, Self::Snapshot, Self::Async];

    /// Returns the word on Howdah's command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Worker => "worker",
            Self::Snapshot => "snapshot",
            Self::Async => "async",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Build {
    /// The one in `$HOWDAH`, or the one that is found.
    Found,
    /// A second build for comparison: `$HOWDAH_BASE`.
    Base(PathBuf),
    /// A build named with the system as `howdah-classic@/path/to/howdah`.
    At(PathBuf),
}

impl Build {
    /// Returns the suffix with the build in the system's name.
    fn suffix(&self) -> String {
        match self {
            Self::Found => String::new(),
            Self::Base(_) => "-base".into(),
            Self::At(path) => format!("@{}", path.display()),
        }
    }

    fn server(&self) -> Option<PathBuf> {
        match self {
            Self::Found => server(),
            // Absolute, because it is started in another directory.
            Self::Base(path) | Self::At(path) => std::path::absolute(path).ok().filter(|path| path.is_file()),
        }
    }

    /// Another build's host is always next to it: two builds must not share one.
    fn php_host(&self) -> Option<PathBuf> {
        match self {
            Self::Found => php_host(),
            Self::Base(_) | Self::At(_) => {
                Some(self.server()?.parent()?.join("howdah-php")).filter(|path| path.is_file())
            }
        }
    }
}

/// The adapter.
#[derive(Debug)]
pub struct Howdah {
    pub mode: Mode,
    pub build: Build,
}

impl Howdah {
    /// Returns the build that is found, in every mode, and the one for comparison if `$HOWDAH_BASE` names one.
    pub fn builtin() -> Vec<Self> {
        let base = std::env::var_os("HOWDAH_BASE").map(|path| Build::Base(path.into()));
        let builds = [Some(Build::Found), base];
        builds
            .into_iter()
            .flatten()
            .flat_map(|build| Mode::ALL.map(|mode| Self { mode, build: build.clone() }))
            .collect()
    }

    /// Returns the system with that name, if it contains the path of a build.
    pub fn at_path(id: &str) -> Option<Self> {
        let (name, path) = id.split_once('@')?;
        let mode = Mode::ALL.into_iter().find(|mode| name == format!("howdah-{}", mode.name()))?;
        (!path.is_empty()).then(|| Self { mode, build: Build::At(path.into()) })
    }
}

/// Returns `$HOWDAH`, else the program next to the lab's own binary or in the release build next to it, else in `PATH`.
pub fn server() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("HOWDAH") {
        return Some(PathBuf::from(path)).filter(|path| path.is_file());
    }
    let own = std::env::current_exe().ok()?;
    let dir = own.parent()?;
    // Tests of the debug build are one directory deeper.
    let beside = [dir.join("howdah"), dir.join("../release/howdah"), dir.join("../../release/howdah")];
    beside.into_iter().find(|path| path.is_file()).or_else(|| program("howdah"))
}

/// Returns `$HOWDAH_PHP`, else the program next to the server, else in `PATH`.
fn php_host() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("HOWDAH_PHP") {
        return Some(PathBuf::from(path)).filter(|path| path.is_file());
    }
    let beside = server()?.parent()?.join("howdah-php");
    if beside.is_file() { Some(beside) } else { program("howdah-php") }
}

/// One process per core: each serves many requests at once.
fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(1))
}

/// Returns the requests that one async worker takes at once: all of them, in case every connection reaches the same
/// worker.
fn concurrency(site: &Site) -> u32 {
    site.connections.max(100)
}

impl System for Howdah {
    fn id(&self) -> String {
        format!("howdah-{}{}", self.mode.name(), self.build.suffix())
    }

    fn title(&self) -> String {
        let build = match &self.build {
            Build::Found => String::new(),
            Build::Base(_) => " (base)".into(),
            Build::At(path) => format!(" ({})", path.display()),
        };
        format!("Howdah {}{build}", self.mode.name())
    }

    fn find(&self) -> SystemStatus {
        let (Some(binary), Some(_)) = (self.build.server(), self.build.php_host()) else {
            return match &self.build {
                Build::Found => {
                    missing("howdah and howdah-php", "make build, or set HOWDAH and HOWDAH_PHP to the two binaries")
                }
                Build::Base(path) | Build::At(path) => missing(
                    format!("{} with a howdah-php next to it", path.display()),
                    "build it, and keep both binaries in one directory",
                ),
            };
        };
        found([("Howdah", version_line(&binary, &["--version"]))])
    }

    fn tuning(&self) -> Vec<String> {
        let workers = match self.mode {
            Mode::Async => {
                "Howdah: its defaults, with one worker process per core, because each serves many requests at once; up to as \
                 many at once as there are connections, at least 100. The number of workers of a case does not apply to it"
            }
            _ => "Howdah: its defaults, with as many workers as the case gives",
        };
        let mut notes = vec![
            workers.into(),
            "PHP: Debian's php.ini and extensions of the embed SAPI, OPcache on, JIT only in cases that name it".into(),
        ];
        if matches!(self.mode, Mode::Worker | Mode::Snapshot) {
            notes.push("an application of Symfony or Laravel without a worker script: Howdah's recipe for it".into());
        }
        match self.mode {
            Mode::Classic => {}
            Mode::Worker => notes.push(
                "worker mode: the script boots once per worker and keeps its connections to MariaDB and Redis".into(),
            ),
            Mode::Snapshot => notes.extend([
                "snapshot mode: each worker is warmed up with the page that is measured, so what that page loads and the \
                 connections it opens are in the snapshot"
                    .into(),
                "snapshot mode with the JIT: that page up to 1000 times, because the JIT compiles what was called often, and counts anew \
                 after each restore"
                    .into(),
                "snapshot mode, WordPress: only the settings app = \"wordpress\" and mode = \"snapshot\"; the server boots it to the end of its hooks init \
                 and wp_loaded, and each request runs index.php on that, with options, posts and the visitor read anew. A pool in \
                 classic mode is the fallback for everything else"
                    .into(),
            ]),
            Mode::Async => notes.push(
                "async mode: a pool of 100 connections to MariaDB (PDO) and one to Redis, divided among the workers; \
                 Symfony: a pool of kernels, because a kernel holds the state of one request"
                    .into(),
            ),
        }
        notes
    }

    fn script(&self) -> Script {
        match self.mode {
            Mode::Classic => Script::Any,
            Mode::Worker => Script::WorkerOrRecipe,
            Mode::Snapshot => Script::WorkerOrBoot,
            Mode::Async => Script::Async,
        }
    }

    fn shapes_pool(&self) -> bool {
        true
    }

    fn supports_protocol(&self, _over_tls: Protocol) -> bool {
        true
    }

    fn proxies(&self) -> bool {
        true
    }

    fn role(&self, process: &str) -> Role {
        // The kernel truncates process names after 15 characters; worker titles keep the prefix.
        if process.starts_with("howdah-php") || process.starts_with("php") { Role::Php } else { Role::Front }
    }

    fn start(&self, site: &Site) -> Result<Running> {
        let scheme = if site.certificate.is_some() { "https://" } else { "" };
        self.listening(site, &format!("{scheme}{}", site.address), &[])
    }
}

impl Howdah {
    /// Starts it on an address of any kind, with additional settings.
    pub fn listening(&self, site: &Site, listen: &str, further: &[(&str, &str)]) -> Result<Running> {
        let binary = self.build.server().context("howdah is not there")?;
        let php = self.build.php_host().context("howdah-php is not there")?;
        let workers = match (site.processes, self.mode) {
            (Some(exactly), _) => exactly,
            (None, Mode::Async) => cores(),
            (None, _) => site.workers,
        };
        let range = match site.pool.min_workers {
            Some(min_workers) => format!("{min_workers}-{workers}"),
            None => workers.to_string(),
        };
        let mut arguments = vec![
            "serve".to_owned(),
            site.root.display().to_string(),
            "--listen".into(),
            listen.to_owned(),
            "--workers".into(),
            range,
            "--admin".into(),
            format!("unix:{}", site.dir.join("admin.sock").display()),
            "--php".into(),
            php.display().to_string(),
        ];
        for (name, value) in further {
            arguments.extend(["--set".to_owned(), format!("{name}={value}")]);
        }
        let mut running = Running::default();
        self.configure(site, &mut running, &mut arguments)?;
        self.boot(site, &mut arguments)?;
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut launch = site.launch("howdah", binary, &words);
        launch.environment.push(("LAB_WORKERS".into(), workers.to_string()));
        // All systems run as the user of the lab.
        launch.environment.push(("HOWDAH_ALLOW_ROOT".into(), "true".into()));
        running.spawn(&launch)?;
        Ok(running)
    }

    /// Returns the recipe that boots the application.
    fn recipe(&self, site: &Site) -> Option<&'static str> {
        match self.mode {
            Mode::Snapshot => site.recipe,
            Mode::Worker => site.worker_recipe(),
            Mode::Classic | Mode::Async => None,
        }
    }

    /// Writes settings that the command line does not accept to a file.
    fn configure(&self, site: &Site, running: &mut Running, arguments: &mut Vec<String>) -> Result<()> {
        if let Some(most) = site.pool.max_requests {
            arguments.extend(["--set".to_owned(), format!("max_requests={most}")]);
        }
        if let Some(certificate) = &site.certificate {
            let pair = format!("{}:{}", certificate.chain.display(), certificate.key.display());
            arguments.extend(["--set".to_owned(), format!("tls.certificates={pair}")]);
            if site.protocol == Protocol::Http3 {
                arguments.extend(["--set".to_owned(), "tls.http3=true".to_owned()]);
            }
        }
        let mut settings = String::new();
        let recipe = self.recipe(site);
        if let Some(recipe) = recipe {
            settings.push_str(&format!("app = {recipe:?}\nmode = {:?}\n", self.mode.name()));
        }
        // A recipe for snapshot mode only determines the warm-up.
        if self.mode == Mode::Snapshot && (recipe.is_none() || site.worker_recipe().is_some()) {
            settings.push_str(&format!("warmup = [{:?}]\n", site.path));
        }
        if let Some(ms) = site.pool.queue_timeout_ms {
            settings.push_str(&format!("queue_timeout = \"{ms}ms\"\n"));
        }
        if site.setup == Setup::Shipped {
            settings.push_str(&format!("[log]\naccess = \"{}/access.log\"\n", site.dir.display()));
        }
        if let Some(upstream) = site.upstream {
            settings.push_str(&format!("[[rule]]\npath = \"/*\"\nproxy = \"http://{upstream}\"\n"));
        }
        if !settings.is_empty() {
            let config = site.write("howdah.toml", &settings)?;
            running.keep(&config)?;
            arguments.extend(["--config".to_owned(), config.display().to_string()]);
        }
        Ok(())
    }

    /// Adds the mode and its boot script to the arguments.
    fn boot(&self, site: &Site, arguments: &mut Vec<String>) -> Result<()> {
        if self.recipe(site).is_some() {
            return Ok(());
        }
        arguments.extend(["--mode".to_owned(), self.mode.name().to_owned()]);
        let (option, script) = match self.mode {
            Mode::Classic => return Ok(()),
            Mode::Worker => ("--script", &site.worker_script),
            Mode::Snapshot => {
                if site.worker_script.is_some() {
                    ("--script", &site.worker_script)
                } else {
                    ("--boot", &site.boot_file)
                }
            }
            Mode::Async => {
                arguments.extend(["--set".to_owned(), format!("concurrency={}", concurrency(site))]);
                ("--script", &site.async_script)
            }
        };
        let script = script.as_ref().with_context(|| format!("nothing to boot in mode {}", self.mode.name()))?;
        arguments.extend([option.to_owned(), script.display().to_string()]);
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn site(dir: &std::path::Path, worker: bool, boot: bool) -> Site {
        let file = |there: bool, name: &str| there.then(|| dir.join(name));
        Site {
            app: crate::cases::App::WordPress,
            root: dir.to_owned(),
            front_controller: true,
            worker_script: file(worker, "worker.php"),
            swoole_script: None,
            async_script: file(worker, "async.php"),
            boot_file: file(boot, "boot.php"),
            recipe: None,
            front_worker: None,
            path: "/a?b=c".into(),
            workers: 4,
            processes: None,
            setup: Default::default(),
            pool: Default::default(),
            jit: false,
            connections: 1000,
            certificate: None,
            protocol: Protocol::Http1,
            upstream: None,
            address: std::net::SocketAddr::from(([127, 0, 0, 1], 1)),
            dir: dir.to_owned(),
        }
    }

    fn howdah(mode: Mode) -> Howdah {
        Howdah { mode, build: Build::Found }
    }

    fn arguments(mode: Mode, site: &Site) -> String {
        let mut arguments = Vec::new();
        let howdah = howdah(mode);
        howdah.configure(site, &mut Running::default(), &mut arguments).unwrap();
        howdah.boot(site, &mut arguments).unwrap();
        arguments.join(" ").replace(&site.dir.display().to_string(), "DIR")
    }

    #[test]
    fn each_mode_boots_its_script() {
        let dir = tempfile::tempdir().unwrap();
        let both = site(dir.path(), true, true);
        assert_eq!(arguments(Mode::Classic, &both), "--mode classic");
        assert_eq!(arguments(Mode::Worker, &both), "--mode worker --script DIR/worker.php");
        assert_eq!(
            arguments(Mode::Snapshot, &both),
            "--config DIR/howdah.toml --mode snapshot --script DIR/worker.php"
        );
        assert_eq!(std::fs::read_to_string(dir.path().join("howdah.toml")).unwrap(), "warmup = [\"/a?b=c\"]\n");
        assert_eq!(arguments(Mode::Async, &both), "--mode async --set concurrency=1000 --script DIR/async.php");
        assert_eq!(
            arguments(Mode::Snapshot, &site(dir.path(), false, true)),
            "--config DIR/howdah.toml --mode snapshot --boot DIR/boot.php"
        );
    }

    #[test]
    fn a_recipe_for_snapshot_mode_needs_no_other_settings() {
        let dir = tempfile::tempdir().unwrap();
        let site = Site { recipe: Some("wordpress"), ..site(dir.path(), false, false) };
        assert_eq!(howdah(Mode::Snapshot).script().unsupported_reason(&site), None);
        assert_eq!(arguments(Mode::Classic, &site), "--mode classic");
        assert_eq!(arguments(Mode::Snapshot, &site), "--config DIR/howdah.toml");
        assert_eq!(
            std::fs::read_to_string(dir.path().join("howdah.toml")).unwrap(),
            "app = \"wordpress\"\nmode = \"snapshot\"\n"
        );
    }

    #[test]
    fn a_recipe_for_several_modes_boots_in_each() {
        let dir = tempfile::tempdir().unwrap();
        let bare = site(dir.path(), false, false);
        let site = Site { app: crate::cases::App::User, recipe: Some("symfony"), ..bare };
        for mode in [Mode::Worker, Mode::Snapshot] {
            assert_eq!(arguments(mode, &site), "--config DIR/howdah.toml");
            let written = std::fs::read_to_string(dir.path().join("howdah.toml")).unwrap();
            let warmup = if mode == Mode::Snapshot { "warmup = [\"/a?b=c\"]\n" } else { "" };
            assert_eq!(written, format!("app = \"symfony\"\nmode = \"{}\"\n{warmup}", mode.name()));
        }
    }

    #[test]
    fn an_application_that_cannot_boot_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let none = site(dir.path(), false, false);
        for mode in [Mode::Worker, Mode::Snapshot, Mode::Async] {
            assert!(howdah(mode).script().unsupported_reason(&none).is_some_and(|lack| lack.contains(".php")));
        }
        assert_eq!(howdah(Mode::Classic).script().unsupported_reason(&none), None);
        assert_eq!(howdah(Mode::Snapshot).script().unsupported_reason(&site(dir.path(), false, true)), None);
    }

    #[test]
    fn requirements_for_the_pool_become_settings() {
        let dir = tempfile::tempdir().unwrap();
        let mut site = site(dir.path(), true, true);
        site.pool = crate::cases::Pool { max_requests: Some(100), queue_timeout_ms: Some(1500), min_workers: None };
        assert_eq!(arguments(Mode::Classic, &site), "--set max_requests=100 --config DIR/howdah.toml --mode classic");
        assert_eq!(std::fs::read_to_string(dir.path().join("howdah.toml")).unwrap(), "queue_timeout = \"1500ms\"\n");
    }

    #[test]
    fn another_build_is_named_by_its_path_and_brings_its_own_host() {
        let dir = tempfile::tempdir().unwrap();
        let binary = dir.path().join("howdah");
        let id = format!("howdah-worker@{}", binary.display());
        let system = Howdah::at_path(&id).unwrap();
        assert_eq!((system.id(), system.mode), (id, Mode::Worker));
        assert!(matches!(system.find(), SystemStatus::Missing { .. }));
        std::fs::write(&binary, "").unwrap();
        assert_eq!(system.build.php_host(), None);
        std::fs::write(dir.path().join("howdah-php"), "").unwrap();
        assert_eq!(system.build.php_host(), Some(dir.path().join("howdah-php")));
        for other in ["howdah-classic", "howdah-classic@", "apache@/x", "howdah-fast@/x"] {
            assert!(Howdah::at_path(other).is_none(), "{other}");
        }
    }
}

//! A real `howdah serve` or `howdah dev` with its own directory, and the checks at its end: a test passes only if the
//! server leaves nothing behind and has logged no undeclared error.

use crate::client::{Conn, Target};
use crate::is_stressed;
use crate::modes::Mode;
use crate::place::{Place, free_port};
use crate::process::{self, Identity, PATIENCE, descriptors, eventually, left_over, tree, wait_for_exit};
use crate::reference;
use crate::report;
use crate::request::Request;
use crate::service::{Manager, Passed};
use crate::setup::Setup;
use crate::versions::Version;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[derive(Debug)]
pub struct Howdah {
    child: Child,
    manager: Option<Manager>,
    passes_sockets: bool,
    mark: String,
    log: PathBuf,
    admin: PathBuf,
    second_port: u16,
    expected_log: Vec<String>,
    allowed_log: Vec<String>,
    expect_exit: Option<i32>,
    expect_boot_failure: bool,
    grows: bool,
    before: BTreeMap<String, usize>,
    /// Number of workers that must be serving.
    workers: usize,
    /// The process that has replaced the first one.
    successor: Option<Identity>,
}

/// The `howdah` program under test.
pub fn program() -> PathBuf {
    report::failures_at_once();
    built_program("HOWDAH_BIN", "howdah")
}

/// The `howdah-php` program under test.
pub fn php_program() -> PathBuf {
    match std::env::var_os("HOWDAH_PHP_BIN") {
        Some(path) => path.into(),
        None => program().with_file_name("howdah-php"),
    }
}

fn built_program(variable: &str, name: &str) -> PathBuf {
    if let Some(path) = std::env::var_os(variable) {
        return path.into();
    }
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"), PathBuf::from);
    let candidates = ["quick", "debug", "release"].map(|profile| target.join(profile).join(name));
    let newest = candidates.iter().filter_map(|p| Some((fs::metadata(p).ok()?.modified().ok()?, p))).max();
    newest
        .map(|(_, p)| p.clone())
        .unwrap_or_else(|| panic!("no {name} in {}: run `make quick` first", target.display()))
}

fn toml_text(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|e| panic!("{e}"))
}

/// Content of `howdah.toml` for a setup.
fn configuration(place: &Place, mode: Mode, setup: &Setup, https: bool, port: u16) -> String {
    let mut lines = setup.scripts.settings(mode);
    if setup.addresses_in_file {
        lines.push(format!("listen = [\"{}127.0.0.1:{port}\"]", if https { "https://" } else { "" }));
    }
    if https || setup.certificates.clients.is_some() {
        lines.extend(setup.certificates.settings(&place.top));
    }
    if !rustix::process::geteuid().is_root() {
        // Without root the harness could not inspect the server's processes.
        lines.push("dumpable = true".to_owned());
    }
    if setup.version(mode.into()) == Some(Version::Three) && setup.settings.iter().all(|(key, _)| key != "tls.http3") {
        lines.push("tls.http3 = true".to_owned());
    }
    if is_stressed() {
        // Timeouts must hit clients, boots and requests that the scenario makes slow, not those that a busy machine makes
        // slow.
        let limits = ["http.client_timeout", "http.idle_timeout", "boot_timeout", "queue_timeout", "deadline"];
        let unset = limits.iter().filter(|limit| setup.settings.iter().all(|(key, _)| key != *limit));
        lines.extend(unset.map(|limit| format!("{limit} = \"10m\"")));
    }
    let own = setup.settings.iter().map(|(key, value)| format!("{key} = {}", place.fill_in(value)));
    lines.extend(own);
    lines.extend(setup.env.iter().map(|(key, value)| format!("php.env.{key} = {}", toml_text(value))));
    lines.push(String::new());
    lines.join("\n")
}

/// The durations without a setting that differ for this scenario. As for the timeouts above, a disturbed machine must not
/// look like a slow client.
fn times(setup: &Setup) -> Option<String> {
    let mut times = setup.times.clone();
    for name in ["http.header_timeout", "mercure.heartbeat"] {
        if is_stressed() && !times.iter().any(|time| time.starts_with(name)) {
            times.push(format!("{name}=10m"));
        }
    }
    (!times.is_empty()).then(|| times.join(","))
}

/// Copies a program that will be started. A separate process does it: another test may start a process at any moment,
/// which has a copy of each open descriptor for a while, and a program that is open for writing cannot be executed
/// (ETXTBSY).
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "cannot copy {} to {}", from.display(), to.display());
}

/// The link through which the server is started (`Setup::linked_program`).
pub fn link_to_program(place: &Place) -> PathBuf {
    place.top.join("howdah")
}

/// The programs, in a location that the starting user can access.
fn programs_for(place: &Place, setup: &Setup) -> (PathBuf, PathBuf) {
    let original = (program(), php_program());
    if setup.linked_program {
        let link = link_to_program(place);
        std::os::unix::fs::symlink(&original.0, &link).unwrap_or_else(|e| panic!("{}: {e}", link.display()));
        return (link, original.1);
    }
    if setup.user.is_none() {
        return original;
    }
    let bin = place.top.join("bin");
    fs::create_dir(&bin).unwrap_or_else(|e| panic!("{}: {e}", bin.display()));
    let copy = |from: PathBuf, name: &str| {
        let to = bin.join(name);
        copy_program(&from, &to);
        to
    };
    (copy(original.0, "howdah"), copy(original.1, "howdah-php"))
}

impl Howdah {
    pub(crate) fn start(place: &Place, mode: Mode, setup: &Setup, port: u16, https: bool) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mark = format!("HOWDAH_TEST_MARK={}.{number}", std::process::id());
        let toml = place.run.join("howdah.toml");
        fs::write(&toml, configuration(place, mode, setup, https, port))
            .unwrap_or_else(|e| panic!("{}: {e}", toml.display()));
        let (log, admin) = (place.top.join("server.log"), place.run.join("admin.sock"));
        let second_port = if setup.second_listener { free_port() } else { 0 };
        let mut arguments: Vec<OsString> =
            vec![if setup.develops { "dev" } else { "serve" }.into(), place.root.clone().into()];
        let mut option = |name: &str, value: String| arguments.extend([OsString::from(name), value.into()]);
        if !setup.addresses_in_file {
            option("--listen", format!("{}127.0.0.1:{port}", if https { "https://" } else { "" }));
        }
        if setup.second_listener {
            let scheme = if setup.certificates.clients.is_some() { "https://" } else { "" };
            option("--listen", format!("{scheme}127.0.0.1:{second_port}"));
        }
        if setup.unix_listener {
            option("--listen", format!("unix:{}", place.run.join("http.sock").display()));
        }
        if setup.is_behind_nginx(mode.into()) {
            option("--listen", format!("fastcgi:unix:{}", reference::socket(place).display()));
        }
        option("--config", toml.display().to_string());
        option("--admin", format!("unix:{}", admin.display()));
        option(
            "--workers",
            match setup.most_workers {
                0 => setup.workers.to_string(),
                most => format!("{}-{most}", setup.workers),
            },
        );
        let (server, php) = programs_for(place, setup);
        option("--php", php.display().to_string());
        // Behave as on a machine with twice this number of cores.
        if let Ok(threads) = std::env::var("HOWDAH_TEST_THREADS") {
            option("--set", format!("threads={threads}"));
        }
        option("-d", format!("session.save_path={}", place.sessions.display()));
        for (key, value) in &setup.ini {
            option("-d", format!("{key}={}", place.fill_in(value)));
        }
        if rustix::process::geteuid().is_root() && setup.user.is_none() {
            // Scenarios without users run as the user of the tests, like the reference.
            arguments.push("--allow-root".into());
        }
        arguments.extend(setup.args.iter().map(OsString::from));
        let output = File::create(&log).unwrap_or_else(|e| panic!("{}: {e}", log.display()));
        let errors = output.try_clone().unwrap_or_else(|e| panic!("{e}"));
        let (name, value) = mark.split_once('=').unwrap_or_else(|| unreachable!());
        // setpriv: if the test itself is killed, its server is killed too (and the server's children must notice).
        let manager = setup.notified.then(|| Manager::bind(&place.top.join("notify.sock")));
        let mut command = if setup.passes_sockets {
            let unix = setup.unix_listener.then(|| place.run.join("http.sock"));
            Passed::bind(port, unix.as_deref()).to("setpriv")
        } else {
            let mut command = Command::new(if setup.leaves_descriptor { "sh" } else { "setpriv" });
            if setup.leaves_descriptor {
                command.args(["-c", "exec setpriv \"$@\" 9</dev/zero", "sh"]);
            }
            command.stdin(Stdio::null()).stdout(output);
            command
        };
        let child = command
            .args(["--pdeathsig", "KILL"])
            .args(setup.user.iter().flat_map(|user| {
                ["--reuid".to_owned(), user.clone(), "--regid".to_owned(), user.clone(), "--clear-groups".to_owned()]
            }))
            .arg("--")
            .arg(server)
            .args(&arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TMPDIR", &place.tmp)
            .env(name, value)
            .envs(setup.own_env.iter().map(|(key, value)| (key, value)))
            .envs(times(setup).map(|times| ("HOWDAH_TEST_TIMES", times)))
            .envs(manager.is_some().then(|| ("NOTIFY_SOCKET", place.top.join("notify.sock"))))
            // `make test-tiny`: the smallest rings, so that every scenario meets their boundaries.
            .envs(std::env::var_os("HOWDAH_TINY_RINGS").map(|tiny| ("HOWDAH_TINY_RINGS", tiny)))
            // `make coverage`: location of the counters.
            .envs(std::env::var_os("LLVM_PROFILE_FILE").map(|file| ("LLVM_PROFILE_FILE", file)))
            .process_group(0)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {}: {e}", program().display()));
        Self {
            child,
            manager,
            passes_sockets: setup.passes_sockets,
            mark,
            log,
            admin,
            second_port,
            expected_log: setup.expected_log.clone(),
            allowed_log: setup.allowed_log.clone(),
            expect_exit: setup.expect_exit,
            expect_boot_failure: setup.expect_boot_failure,
            grows: setup.most_workers > 0,
            before: BTreeMap::new(),
            workers: 0,
            successor: None,
        }
    }

    pub fn pid(&self) -> u32 {
        self.successor.map_or_else(|| self.child.id(), |successor| successor.pid)
    }

    /// The server's service manager (`Setup::notified`).
    pub fn manager(&self) -> &Manager {
        self.manager.as_ref().unwrap_or_else(|| panic!("the setup has no service manager"))
    }

    /// Follows the server to the process that replaced it in an upgrade, once the predecessor has ended.
    pub fn follow(&mut self) {
        let status = self.status();
        let pid = status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let successor = pid.and_then(process::identity).unwrap_or_else(|| panic!("no process in {status}"));
        assert_ne!(successor.pid, self.pid(), "the same process responds; log:\n{}", self.log());
        match self.end_of_process() {
            None => panic!("the predecessor has not ended; log:\n{}", self.log()),
            Some(Some(status)) => {
                let expected = self.expect_exit.is_none_or(|code| status.code() == Some(code));
                assert!(expected, "{status}; log:\n{}", self.log());
            }
            Some(None) => {}
        }
        self.successor = Some(successor);
        self.remember_descriptors(self.workers);
    }

    /// Waits for the server's process to end: `None` if it does not, else its status, if that is known.
    fn end_of_process(&mut self) -> Option<Option<ExitStatus>> {
        match self.successor {
            Some(successor) => eventually(PATIENCE, || !process::alive(successor)).then_some(None),
            None => wait_for_exit(&mut self.child, PATIENCE).map(Some),
        }
    }

    /// The server and all its descendants.
    pub fn processes(&self) -> BTreeSet<Identity> {
        tree(self.pid())
    }

    pub(crate) fn second_port(&self) -> u16 {
        assert_ne!(self.second_port, 0, "the setup has no second listener");
        self.second_port
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        if let Some(successor) = self.successor {
            return !process::alive(successor);
        }
        self.child.try_wait().unwrap_or_else(|e| panic!("wait: {e}")).is_some()
    }

    /// Waits for the server to end and returns its exit status (`None`: killed by a signal).
    pub fn wait(&mut self) -> Option<i32> {
        let status = wait_for_exit(&mut self.child, PATIENCE);
        status.unwrap_or_else(|| panic!("howdah has not ended; log:\n{}", self.log())).code()
    }

    /// True once the server has ended; does not wait.
    #[must_use]
    pub fn ended(&mut self) -> bool {
        self.has_ended()
    }

    /// Sends a signal only to the server's main process.
    pub fn signal(&self, signal: Signal) {
        process::signal(self.pid(), signal);
    }

    pub fn admin(&self) -> Target {
        Target::Unix(self.admin.clone())
    }

    /// Runs `howdah SUBCOMMAND --admin …` against this server.
    pub fn command(&self, arguments: &[&str]) -> Output {
        Command::new(program())
            .args(arguments)
            .arg("--admin")
            .arg(format!("unix:{}", self.admin.display()))
            .env("HOWDAH_ALLOW_ROOT", "true")
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|e| panic!("cannot run howdah: {e}"))
    }

    /// The server's state, by `GET /status` of its admin endpoint: a scenario that waits for a state would keep a core busy
    /// by starting `howdah status` again and again.
    pub fn status(&self) -> Value {
        self.try_status().unwrap_or_else(|| panic!("no status; log:\n{}", self.log()))
    }

    /// The server's state; `None` if its admin endpoint does not respond.
    pub fn try_status(&self) -> Option<Value> {
        let mut conn = Conn::try_open(&Target::Unix(self.admin.clone())).ok()?;
        conn.try_send(&Request::get("/status").close().bytes()).ok()?;
        Some(conn.try_response("GET")?.json())
    }

    /// The state of the first pool, see [`Self::status`].
    pub fn pool(&self) -> Value {
        self.status()["pools"][0].take()
    }

    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Accepts the descriptors that are open now, such as a connection to a broker that was opened late.
    pub(crate) fn accept_descriptors(&mut self) {
        self.before = descriptors(self.pid());
    }

    /// Records the state with which the end is compared, once it is stable.
    pub(crate) fn remember_descriptors(&mut self, workers: usize) {
        self.workers = workers;
        if !self.expect_boot_failure {
            let complete = eventually(PATIENCE, || self.all_serve(workers));
            assert!(complete, "expected {workers} serving workers; processes: {:?}", self.processes());
        }
        let mut last = descriptors(self.pid());
        let mut calm = 0;
        let _ = eventually(Duration::from_secs(5), || {
            let now = descriptors(self.pid());
            calm = if now == last { calm + 1 } else { 0 };
            last = now;
            calm >= 10
        });
        self.before = last;
    }

    /// True if this many workers (and zygotes of other pools) exist and serve, and no pool is without a worker. Only
    /// then has the server opened all the descriptors that they need.
    fn all_serve(&self, workers: usize) -> bool {
        let status = self.try_status();
        let Some(pools) = status.as_ref().and_then(|status| status["pools"].as_array()) else { return false };
        let known: Vec<_> = pools.iter().filter_map(|pool| pool["workers"].as_array()).flatten().collect();
        let started = |pool: &Value| {
            let on_demand = pool["manager"] == "ondemand" && !pool["php_version"].is_null();
            on_demand || !pool["down"].is_null() || pool["workers"].as_array().is_some_and(|w| !w.is_empty())
        };
        // Adds the server and the default pool's zygote, which are not counted elsewhere.
        self.processes().len() >= workers + 2
            && known.len() + pools.len() > workers
            && pools.iter().all(started)
            && known.iter().all(|worker| worker["phase"] != "starting")
    }

    fn grown_descriptors(&self) -> Vec<String> {
        let mut grown = Vec::new();
        // Connections that the client has just closed, and replaced workers, may still be shutting down.
        let _ = eventually(PATIENCE, || {
            let now = descriptors(self.pid());
            grown = now
                .iter()
                .filter(|(kind, n)| self.before.get(*kind).unwrap_or(&0) < *n && !kept_on_purpose(kind))
                .map(|(kind, n)| format!("{kind}: {} → {n}", self.before.get(kind).unwrap_or(&0)))
                .collect();
            grown.is_empty()
        });
        grown
    }

    /// Stops the server and checks what it leaves behind.
    pub(crate) fn finish(mut self, place: &Place) {
        let mut complaints = Vec::new();
        let running = !self.has_ended();
        if running && !self.expect_boot_failure && !self.grows {
            complaints.extend(self.grown_descriptors().into_iter().map(|g| format!("descriptors grew: {g}")));
            let zombies = process::zombies(self.pid());
            let reaped = zombies.is_empty() || eventually(PATIENCE, || process::zombies(self.pid()).is_empty());
            if !reaped {
                complaints.push(format!("zombies: {zombies:?}"));
            }
        }
        let known = self.processes();
        if running {
            self.signal(Signal::TERM);
            // If requests are cut off at the end of the grace time, the log and the exit status show it.
            match self.end_of_process() {
                None => complaints.push("howdah has not ended after SIGTERM".to_owned()),
                Some(Some(status)) if self.expect_exit.is_some_and(|code| status.code() != Some(code)) => {
                    complaints.push(format!("howdah ended with {status}"));
                }
                Some(_) => {}
            }
        }
        complaints.extend(self.judge_processes(&known));
        // A killed server could not remove its socket files; its temporary files have no names.
        let killed = self.child.try_wait().ok().flatten().is_some_and(|status| status.signal().is_some());
        let left = judge_files(place, !killed);
        match self.passes_sockets {
            // The owner of a socket file keeps it.
            true if left.iter().all(|file| file.ends_with("http.sock")) => {}
            _ => complaints.extend(left),
        }
        complaints.extend(self.judge_log());
        let log = self.log();
        self.kill_all(&known);
        assert!(complaints.is_empty(), "after the scenario:\n- {}\nlog:\n{log}", complaints.join("\n- "));
    }

    fn judge_processes(&self, known: &BTreeSet<Identity>) -> Vec<String> {
        let mut left = Vec::new();
        let _ = eventually(PATIENCE, || {
            left = left_over(known, &self.mark, self.pid());
            left.is_empty()
        });
        left.into_iter().map(|p| format!("process left: {p}")).collect()
    }

    fn judge_log(&self) -> Vec<String> {
        let log = self.log();
        let mut complaints = Vec::new();
        for line in log.lines().filter(|l| is_error_line(l)) {
            if !self.expected_log.iter().chain(&self.allowed_log).any(|text| line.contains(text.as_str())) {
                complaints.push(format!("unexpected log line: {line}"));
            }
        }
        for text in self.expected_log.iter().filter(|text| !log.contains(text.as_str())) {
            complaints.push(format!("the log lacks {text:?}"));
        }
        complaints
    }

    fn kill_all(&mut self, known: &BTreeSet<Identity>) {
        for identity in known.iter().filter(|i| process::alive(**i)) {
            process::signal(identity.pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }

    /// Kills the server and its processes.
    pub(crate) fn abandon(mut self) {
        let known = self.processes();
        self.kill_all(&known);
    }
}

/// Files that the server intentionally keeps open for reuse, up to a limit (`static.open_files`).
fn kept_on_purpose(kind: &str) -> bool {
    kind.starts_with('/') && !kind.starts_with("/memfd") && !kind.ends_with("(deleted)") && !kind.starts_with("/dev")
}

fn is_error_line(line: &str) -> bool {
    let texts =
        [" ERROR ", "\"ERROR\"", "panicked at", "Sanitizer", "PHP Warning", "PHP Fatal", "PHP Parse", "PHP Notice"];
    texts.iter().any(|text| line.contains(text)) || line.starts_with("ERROR")
}

/// Files that must not remain after the server's end: sockets, and everything in its temporary directory.
fn judge_files(place: &Place, sockets_too: bool) -> Vec<String> {
    let list = |path: &Path| fs::read_dir(path).map(|d| d.flatten().collect::<Vec<_>>()).unwrap_or_default();
    let sockets = list(&place.run).into_iter().filter(|e| sockets_too && e.file_type().is_ok_and(|t| t.is_socket()));
    let left = list(&place.tmp).into_iter().chain(sockets);
    left.map(|e| format!("file left: {}", e.path().display())).collect()
}

//! A running server of any kind, with its own directory: the peer of scenarios.

use crate::client::{Conn, Target};
use crate::gate::{self, Gate};
use crate::howdah::Howdah;
use crate::modes::{Backend, Mode};
pub use crate::place::{Place, Port, free_port};
use crate::process::{PATIENCE, eventually};
use crate::reference;
use crate::reference::{Reference, WebServer};
use crate::request::Request;
use crate::response::Response;
use crate::setup::{Content, Setup};
use crate::tls;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

#[derive(Debug)]
enum Server {
    Howdah(Howdah),
    Reference(Reference),
}

#[derive(Debug)]
pub struct Site {
    backend: Backend,
    target: Target,
    ports: Vec<Port>,
    server: Server,
    /// nginx in front (`Setup::behind_nginx`).
    front: Option<WebServer>,
    place: Place,
    // Last field, so that the directory outlives the server.
    _directory: TempDir,
}

fn lay_out(backend: Backend, setup: &Setup) -> (TempDir, Place) {
    let directory =
        tempfile::Builder::new().prefix("howdah-test-").tempdir().unwrap_or_else(|e| panic!("tempdir: {e}"));
    // Workers of PHP-FPM and nginx may run as another user.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap_or_else(|e| panic!("chmod: {e}"));
    let top = directory.path().canonicalize().unwrap_or_else(|e| panic!("canonicalize: {e}"));
    let place = Place {
        root: top.join("root"),
        tmp: top.join("tmp"),
        run: top.join("run"),
        sessions: top.join("sessions"),
        top,
    };
    for path in
        [&place.root, &place.tmp, &place.run, &place.sessions, &place.top.join("gates"), &place.top.join("marks")]
    {
        fs::create_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let write = |name: &str, content: &[u8]| {
        let path = place.root.join(name);
        let parent = path.parent().unwrap_or(&place.root);
        fs::create_dir_all(parent).unwrap_or_else(|e| panic!("{}: {e}", parent.display()));
        fs::write(&path, content).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    };
    for tree in &setup.trees {
        let copied = Command::new("cp").arg("-rL").arg(tree.join(".")).arg(&place.root).status();
        assert!(copied.as_ref().is_ok_and(std::process::ExitStatus::success), "cp {}: {copied:?}", tree.display());
    }
    write("ready.txt", b"ready\n");
    write("gate.php", gate::SCRIPT.as_bytes());
    for (name, content) in setup.scripts.files(backend) {
        write(name, content.as_bytes());
    }
    for (name, content) in &setup.files {
        match content {
            Content::Bytes(bytes) => write(name, bytes),
            Content::Script(code) => write(name, setup.scripts.script(backend, code).as_bytes()),
        }
    }
    if setup.open_to_users {
        for path in [&place.tmp, &place.run, &place.sessions, &place.top.join("gates"), &place.top.join("marks")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap_or_else(|e| panic!("chmod: {e}"));
        }
    }
    (directory, place)
}

impl Site {
    /// Starts a server and waits until it responds.
    pub fn start(backend: impl Into<Backend>, setup: &Setup) -> Self {
        let backend = backend.into();
        let (directory, place) = lay_out(backend, setup);
        let behind_nginx = setup.is_behind_nginx(backend);
        let ports: Vec<Port> = (0..if behind_nginx { 2 } else { 1 }).map(|_| Port::hold()).collect();
        let (port, of_clients) = (ports[0].number, ports[ports.len() - 1].number);
        let address = ([127, 0, 0, 1], of_clients).into();
        let https = backend != Backend::Reference
            && !behind_nginx
            && setup.https.unwrap_or_else(|| tls::is_asked_for() || setup.version(backend).is_some());
        let target = match setup.version(backend) {
            Some(version) => Target::Version(address, version),
            None if https => Target::Tls(address),
            None => Target::Tcp(address),
        };
        let server = match backend {
            Backend::Reference => Server::Reference(Reference::start(&place, setup, port)),
            Backend::Howdah(mode) => Server::Howdah(Howdah::start(&place, mode, setup, port, https)),
        };
        let front = behind_nginx.then(|| WebServer::start(&place, setup, of_clients, true));
        let mut site = Self { backend, target, ports, server, front, place, _directory: directory };
        if !site.wait_until_ready(setup.expect_boot_failure) {
            let log = site.log();
            site.abandon();
            panic!("the server did not get ready; its log:\n{log}");
        }
        if let Server::Howdah(howdah) = &mut site.server {
            howdah.remember_descriptors(setup.workers + setup.more_processes);
        }
        site
    }

    /// Accepts the descriptors that the server has open now: it opens its connection to NATS in the background.
    pub fn accept_descriptors(&mut self) {
        if let Server::Howdah(howdah) = &mut self.server {
            howdah.accept_descriptors();
        }
    }

    /// Polls until PHP responds or, if PHP is expected not to start, until the server does.
    fn wait_until_ready(&mut self, static_only: bool) -> bool {
        let target = match self.target {
            // Over plain TCP a server that does not listen yet is detected at once.
            Target::Version(address, _) => Target::Tls(address),
            ref target => target.clone(),
        };
        let path = if static_only { "/ready.txt" } else { "/gate.php" };
        let mut ended = false;
        let answered = eventually(PATIENCE, || {
            ended = match &mut self.server {
                Server::Howdah(howdah) => howdah.has_ended(),
                Server::Reference(reference) => reference.has_ended(),
            };
            ended
                || Conn::try_open(&target).is_ok_and(|mut conn| {
                    conn.try_send(&Request::get(path).close().bytes()).is_ok()
                        && conn.try_response("GET").is_some_and(|response| response.status == 200)
                })
        });
        answered && !ended
    }

    /// The mode of the site; `None` on the reference.
    pub fn mode(&self) -> Option<Mode> {
        self.backend.mode()
    }

    /// True if a worker keeps its state between requests.
    pub fn keeps_state(&self) -> bool {
        matches!(self.mode(), Some(Mode::Worker | Mode::Async))
    }

    /// True for nginx and PHP-FPM.
    pub fn is_reference(&self) -> bool {
        self.backend == Backend::Reference
    }

    /// Howdah's process; fails on the reference.
    pub fn howdah(&self) -> &Howdah {
        match &self.server {
            Server::Howdah(howdah) => howdah,
            Server::Reference(_) => panic!("this scenario needs Howdah"),
        }
    }

    /// Howdah's process; fails on the reference.
    #[must_use]
    pub fn howdah_mut(&mut self) -> &mut Howdah {
        match &mut self.server {
            Server::Howdah(howdah) => howdah,
            Server::Reference(_) => panic!("this scenario needs Howdah"),
        }
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.place.root.join(path)
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    pub fn port(&self) -> u16 {
        match &self.target {
            Target::Tcp(address) | Target::Tls(address) | Target::Version(address, _) => address.port(),
            Target::Unix(_) => 0,
        }
    }

    /// The Unix socket's path (`Setup::unix_listener`).
    pub fn unix(&self) -> Target {
        Target::Unix(self.place.run.join("http.sock"))
    }

    /// The second TCP listener (`Setup::second_listener`).
    pub fn second(&self) -> Target {
        Target::Tcp(([127, 0, 0, 1], self.howdah().second_port()).into())
    }

    /// Howdah's own HTTP listener, bypassing the web server in front of it.
    pub fn direct(&self) -> Target {
        Target::Tcp(([127, 0, 0, 1], self.ports[0].number).into())
    }

    /// Path of the FastCGI listener (`Setup::behind_nginx`).
    pub fn fastcgi(&self) -> PathBuf {
        reference::socket(&self.place)
    }

    pub fn conn(&self) -> Conn {
        Conn::open(&self.target)
    }

    /// Sends a request on a separate connection.
    pub fn send(&self, request: &Request) -> Response {
        self.conn().exchange(&request.clone().close())
    }

    /// Gets a path on a separate connection.
    pub fn get(&self, target: &str) -> Response {
        self.send(&Request::get(target))
    }

    /// Gets a path, fails unless the status is 200, and returns the body's text.
    pub fn get_ok(&self, target: &str) -> String {
        self.get(target).expect(200).text()
    }

    /// A gate at which scripts can wait. Each wait of a script needs its own name.
    pub fn gate(&self, name: &str) -> Gate {
        Gate::new(&self.place.top.join("gates"), name)
    }

    /// Number of times that scripts have set this mark.
    pub fn marks(&self, name: &str) -> u64 {
        fs::metadata(self.place.top.join("marks").join(name)).map_or(0, |m| m.len())
    }

    /// Waits until scripts have set this mark this many times.
    pub fn wait_for_mark(&self, name: &str, times: u64) {
        let done = eventually(PATIENCE, || self.marks(name) >= times);
        assert!(done, "mark {name:?} was set {} times, not {times}; log:\n{}", self.marks(name), self.log());
    }

    /// Everything the server has logged so far.
    pub fn log(&self) -> String {
        match &self.server {
            Server::Howdah(howdah) => howdah.log(),
            Server::Reference(reference) => reference.log(),
        }
    }

    /// Everything that the nginx in front has logged so far (`Setup::behind_nginx`).
    pub fn front_log(&self) -> String {
        self.front.as_ref().map(WebServer::log).unwrap_or_default()
    }

    /// Waits until the log has a line with all of these texts, and returns that line.
    pub fn wait_for_log(&self, texts: &[&str]) -> String {
        let mut found = None;
        let _ = eventually(PATIENCE, || {
            found = self.log().lines().find(|l| texts.iter().all(|t| l.contains(t))).map(str::to_owned);
            found.is_some()
        });
        found.unwrap_or_else(|| panic!("no log line with {texts:?} in:\n{}", self.log()))
    }

    /// Shuts the server down and checks what it leaves behind.
    pub fn finish(self) {
        match self.server {
            Server::Howdah(howdah) => howdah.finish(&self.place),
            Server::Reference(reference) => reference.finish(),
        }
        // nginx still has open connections to Howdah, which shuts down nevertheless.
        if let Some(front) = self.front {
            front.finish();
        }
    }

    /// Ends the server at once, without checks (the test has already failed).
    pub fn abandon(self) {
        if let Some(front) = self.front {
            front.finish();
        }
        match self.server {
            Server::Howdah(howdah) => howdah.abandon(),
            Server::Reference(reference) => reference.finish(),
        }
    }
}

/// Writes a file atomically, so that a server never sees half of it.
pub fn replace_file(path: &Path, content: impl AsRef<[u8]>) {
    let beside = path.with_extension("new");
    fs::write(&beside, content).unwrap_or_else(|e| panic!("{}: {e}", beside.display()));
    // OPcache distinguishes versions of a file by time in seconds; two versions of the same second would look the same.
    let file = fs::File::options().write(true).open(&beside).unwrap_or_else(|e| panic!("{}: {e}", beside.display()));
    let later = std::time::SystemTime::now() + Duration::from_secs(2);
    file.set_modified(later).unwrap_or_else(|e| panic!("{}: {e}", beside.display()));
    fs::rename(&beside, path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

//! Requirements of a scenario: files, PHP settings, limits. One description that every backend understands.

use crate::modes::{Backend, Scripts};
use crate::tls;
use crate::versions::Version;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Content of a file.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    /// This code, adapted to the mode that runs the scenario (`modes.rs`).
    Script(String),
}

/// Description of a site to start. Methods return it, so that a scenario reads as one expression.
#[derive(Debug, Clone)]
pub struct Setup {
    pub(crate) files: Vec<(String, Content)>,
    pub(crate) trees: Vec<PathBuf>,
    pub(crate) scripts: Scripts,
    pub(crate) workers: usize,
    /// Maximum number of workers; 0: as many as `workers`.
    pub(crate) most_workers: usize,
    pub(crate) more_processes: usize,
    pub(crate) ini: Vec<(String, String)>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) own_env: Vec<(String, OsString)>,
    pub(crate) times: Vec<String>,
    pub(crate) args: Vec<String>,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) unix_listener: bool,
    pub(crate) second_listener: bool,
    pub(crate) behind_nginx: bool,
    /// Also in a run that puts nginx in front of all scenarios.
    pub(crate) never_behind_nginx: bool,
    pub(crate) addresses_in_file: bool,
    /// A service manager receives the server's notifications (`Howdah::manager`).
    pub(crate) notified: bool,
    pub(crate) passes_sockets: bool,
    pub(crate) leaves_descriptor: bool,
    /// The scenario always uses TLS (`Some(true)`), or never does (`Some(false)`).
    pub(crate) https: Option<bool>,
    /// The reason why no other version of HTTP can replace HTTP/1.1.
    pub(crate) http1: Option<String>,
    /// The certificates for TLS.
    pub(crate) certificates: tls::Plan,
    pub(crate) expected_log: Vec<String>,
    pub(crate) allowed_log: Vec<String>,
    pub(crate) expect_boot_failure: bool,
    pub(crate) expect_exit: Option<i32>,
    pub(crate) user: Option<String>,
    pub(crate) linked_program: bool,
    pub(crate) open_to_users: bool,
    pub(crate) measures_memory: bool,
    /// `howdah dev` instead of `howdah serve`.
    pub(crate) develops: bool,
    /// A requirement of the scenario that this machine lacks, and the reason for it.
    pub(crate) lack: Option<(String, String)>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            trees: Vec::new(),
            scripts: Scripts::Wrapped,
            workers: 2,
            most_workers: 0,
            more_processes: 0,
            ini: Vec::new(),
            env: Vec::new(),
            own_env: Vec::new(),
            times: Vec::new(),
            args: Vec::new(),
            settings: Vec::new(),
            unix_listener: false,
            second_listener: false,
            behind_nginx: false,
            never_behind_nginx: false,
            addresses_in_file: false,
            notified: false,
            passes_sockets: false,
            leaves_descriptor: false,
            https: None,
            http1: None,
            certificates: tls::Plan::default(),
            expected_log: Vec::new(),
            allowed_log: Vec::new(),
            expect_boot_failure: false,
            expect_exit: Some(0),
            user: None,
            linked_program: false,
            open_to_users: false,
            measures_memory: false,
            lack: None,
            develops: false,
        }
    }
}

impl Setup {
    /// Puts a file below the document root.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.files.push((path.to_owned(), Content::Bytes(content.as_ref().to_vec())));
        self
    }

    /// Puts a PHP script below the document root and adds the opening tag. Requests for its path run it, in every mode.
    #[must_use]
    pub fn php(mut self, path: &str, code: &str) -> Self {
        self.files.push((path.to_owned(), Content::Script(code.to_owned())));
        self
    }

    /// Puts a PHP file for inclusion by scripts below the document root, the same in every mode.
    #[must_use]
    pub fn library(self, path: &str, code: &str) -> Self {
        self.file(path, format!("<?php\n{code}\n"))
    }

    /// Copies a script of `tests/www` to the same name below the document root.
    #[must_use]
    pub fn www(self, path: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("www").join(path);
        let text = std::fs::read_to_string(&source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
        let code = text.strip_prefix("<?php\n").unwrap_or_else(|| panic!("{}: not a script", source.display()));
        self.php(path, code)
    }

    /// Copies a directory's content, including the targets of its symbolic links, to the document root.
    #[must_use]
    pub fn tree(mut self, source: &Path) -> Self {
        self.trees.push(source.to_owned());
        self
    }

    /// Puts copies of a script of `tests/www` at other paths.
    #[must_use]
    pub fn copies(mut self, source: &str, paths: &[&str]) -> Self {
        for path in paths {
            self = self.www(source);
            if let Some(last) = self.files.last_mut() {
                (*path).clone_into(&mut last.0);
            }
        }
        self
    }

    /// Sets the number of PHP processes (default 2).
    #[must_use]
    pub fn workers(mut self, n: usize) -> Self {
        self.workers = n;
        self
    }

    /// Lets the pool grow from its number of PHP processes to this one while requests wait.
    #[must_use]
    pub fn grows_to(mut self, n: usize) -> Self {
        self.most_workers = n;
        self
    }

    /// Declares the number of processes of the scenario's own pools, including zygotes: readiness waits for them.
    #[must_use]
    pub fn more_processes(mut self, n: usize) -> Self {
        self.more_processes = n;
        self
    }

    /// Sets a PHP setting, as `-d key=value` does. `@ROOT@` stands for the document root, `@TOP@` for the site's directory.
    #[must_use]
    pub fn ini(mut self, key: &str, value: &str) -> Self {
        self.ini.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Sets an environment variable of the server itself.
    #[must_use]
    pub fn own_env(mut self, key: &str, value: impl Into<OsString>) -> Self {
        self.own_env.push((key.to_owned(), value.into()));
        self
    }

    /// Shortens a duration that no setting changes (`fixed_time` in `crates/config`), to a value such as `200ms`.
    #[must_use]
    pub fn time(mut self, name: &str, duration: &str) -> Self {
        self.times.push(format!("{name}={duration}"));
        self
    }

    /// Starts the server through a link, `howdah::link_to_program`, whose target may change later.
    #[must_use]
    pub fn linked_program(mut self) -> Self {
        self.linked_program = true;
        self
    }

    /// Sets an environment variable for the pool's scripts.
    #[must_use]
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Adds an argument to Howdah's command line; the reference ignores it.
    #[must_use]
    pub fn arg(mut self, argument: &str) -> Self {
        self.args.push(argument.to_owned());
        self
    }

    /// Sets a key of `howdah.toml`, such as `http.max_body`, to a value in TOML. The reference understands
    /// `http.max_body` and `status_path` and ignores others. `@ROOT@` and `@TOP@` are replaced as in `ini`.
    #[must_use]
    pub fn setting(mut self, key: &str, value: &str) -> Self {
        assert!(!["mode", "script", "boot"].contains(&key), "{key}: see `run`, `Setup::script` and `Setup::boot`");
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Sets a key of `howdah.toml` to a time limit (see `limit`).
    #[must_use]
    pub fn limit(self, key: &str, milliseconds: u64) -> Self {
        self.setting(key, &format!("\"{}ms\"", crate::limit(milliseconds).as_millis()))
    }

    /// Makes the mode run this script of the scenario, by its path from the document root; all scripts stay unchanged.
    #[must_use]
    pub fn script(self, path: &str) -> Self {
        self.booting("script", path)
    }

    /// Makes the mode boot this file of the scenario, by its path from the document root; all scripts stay unchanged.
    #[must_use]
    pub fn boot(self, path: &str) -> Self {
        self.booting("boot", path)
    }

    fn booting(mut self, key: &str, path: &str) -> Self {
        // Settings are relative to their file, which is next to the document root.
        let path = if path.starts_with("../") { path.to_owned() } else { format!("../root/{path}") };
        self.scripts = Scripts::AsTheyAre;
        self.settings.push((key.to_owned(), format!("\"{path}\"")));
        self
    }

    /// Also listens on a Unix socket (`Site::unix`).
    #[must_use]
    pub fn unix_listener(mut self) -> Self {
        self.unix_listener = true;
        self
    }

    /// Puts nginx in front, which forwards requests for scripts over FastCGI; clients connect to nginx.
    #[must_use]
    pub fn behind_nginx(mut self) -> Self {
        self.behind_nginx = true;
        self
    }

    /// Puts no nginx in front, even in a run that does so for all scenarios, for this reason.
    #[must_use]
    pub fn never_behind_nginx(mut self, _why: &str) -> Self {
        self.never_behind_nginx = true;
        self
    }

    /// `HOWDAH_TEST_FASTCGI=1` puts nginx in front of every scenario that does not decide this itself.
    pub(crate) fn is_behind_nginx(&self, backend: Backend) -> bool {
        let all = std::env::var_os("HOWDAH_TEST_FASTCGI").is_some_and(|value| value != "0");
        backend != Backend::Reference && !self.never_behind_nginx && (self.behind_nginx || all)
    }

    /// Also listens on a second TCP port (`Site::second`).
    #[must_use]
    pub fn second_listener(mut self) -> Self {
        self.second_listener = true;
        self
    }

    /// Passes the server a socket for its notifications, as systemd does (`Howdah::manager`).
    #[must_use]
    pub fn notified(mut self) -> Self {
        self.notified = true;
        self
    }

    /// Passes sockets to the server, as systemd does: the one of its port, and its Unix socket if it has one, else the
    /// one for HTTP/3.
    #[must_use]
    pub fn passes_sockets(mut self) -> Self {
        self.passes_sockets = true;
        self
    }

    /// Leaves descriptor 9 open for the server, as a careless parent does: `/dev/zero`.
    #[must_use]
    pub fn leaves_descriptor(mut self) -> Self {
        self.leaves_descriptor = true;
        self
    }

    /// Sets the address in `howdah.toml`, not on the command line, so that a reload can change it.
    #[must_use]
    pub fn addresses_in_file(mut self) -> Self {
        self.addresses_in_file = true;
        self
    }

    /// Uses TLS with the server, but not with the reference. The certificate is for `localhost`: `site.pem` in the
    /// site's directory.
    #[must_use]
    pub fn https(mut self) -> Self {
        self.https = Some(true);
        self
    }

    /// As `https`, with certificates for these names, in files with these prefixes.
    #[must_use]
    pub fn https_certificates(mut self, certificates: &[(&str, &[&str])]) -> Self {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        self.certificates.names = certificates.iter().map(|(stem, of)| ((*stem).to_owned(), names(of))).collect();
        self.https()
    }

    /// As `https`, with an expired certificate.
    #[must_use]
    pub fn https_expired(mut self) -> Self {
        self.certificates.expired = true;
        self.https()
    }

    /// Uses TLS on the second listener (`Site::second`), with clients that may (`optional`) or must (`required`)
    /// present a certificate: `clients.pem` in the site's directory is one they can present.
    #[must_use]
    pub fn https_clients(mut self, auth: &str) -> Self {
        self.certificates.clients = Some(auth.to_owned());
        self.never_https().second_listener()
    }

    /// Never uses TLS, even in a run that does so for all scenarios: the scenario is about plain connections.
    #[must_use]
    pub fn never_https(mut self) -> Self {
        self.https = Some(false);
        self
    }

    /// Starts `howdah dev` instead of `howdah serve`; the reference ignores it.
    #[must_use]
    pub fn developing(mut self) -> Self {
        self.develops = true;
        self.setting("root", "\"@ROOT@\"").setting("acme.state", "\"@TOP@/state\"")
    }

    /// Declares that the scenario is about HTTP/1.1's bytes or connections, for this reason. In runs with another
    /// version it is skipped and counted.
    #[must_use]
    pub fn http1(mut self, why: &str) -> Self {
        self.http1 = Some(why.to_owned());
        self
    }

    /// The reason why it cannot run in the HTTP version of this run of the tests.
    pub(crate) fn only_in_http1(&self, backend: Backend) -> Option<&str> {
        if backend == Backend::Reference || Version::asked_for().is_none() {
            return None;
        }
        let plain = (self.https == Some(false)).then_some("it is about connections without TLS");
        self.http1.as_deref().or(plain)
    }

    /// The HTTP version underneath the client, unless it is HTTP/1.1.
    pub(crate) fn version(&self, backend: Backend) -> Option<Version> {
        let fits = backend != Backend::Reference
            && !self.is_behind_nginx(backend)
            && self.http1.is_none()
            && self.https != Some(false);
        Version::asked_for().filter(|_| fits)
    }

    /// Declares that the log will contain an error line with this text; the test fails if it does not.
    #[must_use]
    pub fn expect_log(mut self, text: &str) -> Self {
        self.expected_log.push(text.to_owned());
        self
    }

    /// Declares that the log may contain an error line with this text, if that depends on timing.
    #[must_use]
    pub fn allow_log(mut self, text: &str) -> Self {
        self.allowed_log.push(text.to_owned());
        self
    }

    /// Declares that PHP will not start; readiness then means only that the server responds.
    #[must_use]
    pub fn expect_boot_failure(mut self) -> Self {
        self.expect_boot_failure = true;
        self
    }

    /// Declares the exit status, or `None` if the scenario ends the server itself.
    #[must_use]
    pub fn expect_exit(mut self, status: Option<i32>) -> Self {
        self.expect_exit = status;
        self
    }

    /// Declares that the scenario measures or exhausts memory, which an address sanitizer affects.
    #[must_use]
    pub fn measures_memory(mut self) -> Self {
        self.measures_memory = true;
        self
    }

    /// Declares that the scenario cannot run on this machine: `run` skips it.
    #[must_use]
    pub fn lacks(mut self, what: &str, why: &str) -> Self {
        self.lack = Some((what.to_owned(), why.to_owned()));
        self
    }

    /// Declares that the scenario needs the rights to switch to several users.
    #[must_use]
    pub fn needs_root(self) -> Self {
        if rustix::process::geteuid().is_root() { self } else { self.lacks("root", "only root becomes other users") }
    }

    /// Has this user start the server, instead of root if root runs the tests. The reference ignores it.
    #[must_use]
    pub fn started_by(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self.open_to_users()
    }

    /// Lets every user write to the directories of the server and PHP, for scenarios in which these are different
    /// users.
    #[must_use]
    pub fn open_to_users(mut self) -> Self {
        self.open_to_users = true;
        self
    }
}

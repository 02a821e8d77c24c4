//! `howdah-fpm`, and PHP-FPM itself, with the same configuration.

use crate::client::{Conn, Target};
use crate::howdah::program;
use crate::nginx::Nginx;
use crate::process::{PATIENCE, eventually, signal, wait_for_exit};
use crate::request::Request;
use crate::response::Response;
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A process with a PHP-FPM configuration, in a directory to which its paths are relative.
pub struct Fpm {
    pub process: Child,
    pub top: PathBuf,
    sockets: Vec<String>,
}

/// `howdah-fpm` as a link, as packages install it.
pub fn howdah_fpm(directory: &Path) -> PathBuf {
    let link = directory.join("howdah-fpm");
    if !link.exists() {
        symlink(program(), &link).unwrap_or_else(|e| panic!("{e}"));
    }
    link
}

/// The newest installed PHP-FPM, with its version.
pub fn php_fpm() -> Option<(PathBuf, &'static str)> {
    let versions = ["8.5", "8.4", "8.3", "8.2"];
    versions.into_iter().map(|v| (PathBuf::from(format!("/usr/sbin/php-fpm{v}")), v)).find(|(path, _)| path.exists())
}

pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        howdah_skip::record("root", "only root has pools of several users");
    }
    is_root
}

/// A directory with access for every user.
pub fn open_directory() -> tempfile::TempDir {
    let directory = tempfile::Builder::new().prefix("howdah-fpm-").tempdir().unwrap_or_else(|e| panic!("{e}"));
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap_or_else(|e| panic!("{e}"));
    directory
}

impl Fpm {
    /// Starts a program with the configuration in this directory.
    pub fn start(program: &Path, top: &Path, sockets: &[&str]) -> Self {
        let log = fs::File::create(top.join("out.log")).unwrap_or_else(|e| panic!("{e}"));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(["-F", "-p"]).arg(top).arg("-y");
        command.arg(top.join("php-fpm.conf")).env("TMPDIR", top).env("OUTSIDE", "yes");
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap_or_else(|e| panic!("{e}"));
        let sockets = sockets.iter().map(|name| (*name).to_owned()).collect();
        let fpm = Self { process, top: top.to_owned(), sockets };
        let listens = || fpm.sockets.iter().all(|name| top.join(name).exists());
        assert!(eventually(PATIENCE, listens), "{}: {}", program.display(), fpm.log());
        fpm
    }

    pub fn log(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.top.join(name)).unwrap_or_default();
        read("out.log") + &read("error.log")
    }

    /// Ends the process as Debian's unit does.
    pub fn end(mut self) {
        signal(self.process.id(), Signal::QUIT);
        assert!(wait_for_exit(&mut self.process, PATIENCE).is_some(), "{}", self.log());
        for name in self.sockets.iter().map(String::as_str).chain(["fpm.pid"]) {
            assert!(!self.top.join(name).exists(), "{name} is left\n{}", self.log());
        }
    }
}

impl Drop for Fpm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// nginx in front of a directory's pools. Each pool's name is its URL path and the name of its socket.
pub fn front(top: &Path, pools: &[&str], root: &Path) -> Nginx {
    Nginx::start(1, |_, ports| {
        let location = |pool: &str| {
            format!(
                "location /{pool}/ {{ include /etc/nginx/fastcgi.conf; fastcgi_pass unix:{}/{pool}.sock; }}",
                top.display()
            )
        };
        format!(
            "server {{ listen 127.0.0.1:{}; root {}; {} }}",
            ports[0],
            root.display(),
            pools.iter().map(|pool| location(pool)).collect::<String>()
        )
    })
}

/// Sends a GET request through nginx and returns the response.
pub fn get(nginx: &Nginx, target: &str) -> Response {
    let mut conn = Conn::open(&Target::Tcp(([127, 0, 0, 1], nginx.port(0)).into()));
    conn.exchange(&Request::get(target).close())
}

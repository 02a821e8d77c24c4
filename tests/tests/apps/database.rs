//! A private MariaDB: own data directory, own Unix socket, no TCP port. It ends with the test.

use howdah_tests::process::{self, eventually, wait_for_exit};
use rustix::process::Signal;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) struct Database {
    server: Child,
    socket: PathBuf,
    _directory: TempDir,
}

/// Argument for the server's user: MariaDB refuses to run as root unless `--user` says so.
fn user_argument() -> Vec<&'static str> {
    if rustix::process::geteuid().is_root() { vec!["--user=root"] } else { Vec::new() }
}

impl Database {
    /// Creates an empty database server and starts it.
    pub(crate) fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("howdah-db-").tempdir().unwrap();
        let data = directory.path().join("data");
        let output = Command::new("mariadb-install-db")
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                "--skip-name-resolve",
            ])
            .args(user_argument())
            // Otherwise servers that start at the same time remove each other's temporary tables.
            .arg(format!("--tmpdir={}", directory.path().display()))
            .arg(format!("--datadir={}", data.display()))
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|e| panic!("mariadb-install-db: {e}: run `make setup-apps`"));
        assert!(output.status.success(), "mariadb-install-db: {}", String::from_utf8_lossy(&output.stderr));
        let socket = directory.path().join("db.sock");
        let log = directory.path().join("db.log");
        let server = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", server_program(), "--no-defaults", "--skip-networking"])
            .args(user_argument())
            .args(["--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"])
            .arg(format!("--tmpdir={}", directory.path().display()))
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", directory.path().join("db.pid").display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap_or_else(|e| panic!("mariadbd: {e}"));
        let mut database = Self { server, socket, _directory: directory };
        let ready = eventually(Duration::from_secs(60), || {
            database.server.try_wait().unwrap().is_some() || database.client(&["-e", "SELECT 1"]).is_ok()
        });
        let running = database.server.try_wait().unwrap().is_none();
        assert!(ready && running, "mariadbd: {}", std::fs::read_to_string(&log).unwrap_or_default());
        database
    }

    fn client(&self, arguments: &[&str]) -> Result<(), String> {
        let output = Command::new("mariadb")
            .args(["--no-defaults", "--user=root", "--socket"])
            .arg(&self.socket)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| e.to_string())?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
    }

    pub(crate) fn run(&self, sql: &str) {
        self.client(&["-e", sql]).unwrap_or_else(|e| panic!("{sql}: {e}"));
    }

    /// Replaces the content of a database with that of another one.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        self.run(&format!("DROP DATABASE IF EXISTS {to}; CREATE DATABASE {to}"));
        let mut dump = Command::new("mariadb-dump")
            .args(["--no-defaults", "--user=root", "--socket"])
            .arg(&self.socket)
            .arg(from)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("mariadb-dump: {e}"));
        let load = Command::new("mariadb")
            .args(["--no-defaults", "--user=root", "--socket"])
            .arg(&self.socket)
            .arg(to)
            .stdin(dump.stdout.take().unwrap())
            .status()
            .unwrap_or_else(|e| panic!("mariadb: {e}"));
        assert!(dump.wait().unwrap().success() && load.success(), "cannot copy the database {from}");
    }

    /// The Unix socket for clients.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        process::signal(self.server.id(), Signal::TERM);
        if wait_for_exit(&mut self.server, Duration::from_secs(20)).is_none() {
            process::signal(self.server.id(), Signal::KILL);
            let _ = self.server.wait();
        }
    }
}

/// Debian installs servers in a directory that is not in a normal user's PATH.
fn server_program() -> &'static str {
    if Path::new("/usr/sbin/mariadbd").exists() { "/usr/sbin/mariadbd" } else { "mariadbd" }
}

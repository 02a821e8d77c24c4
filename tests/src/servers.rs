//! Private database servers for scenarios: MariaDB, PostgreSQL, Redis (with and without encryption), NATS. Each has its
//! own directory and ends with the test.

use crate::process::{self, PATIENCE, eventually, wait_for_exit};
use crate::site::Port;
use crate::tls::Certificate;
use rustix::process::Signal;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

#[derive(Debug)]
pub struct Server {
    process: Child,
    /// The TCP port on 127.0.0.1.
    pub port: u16,
    _held: Port,
    /// Its data directory; MariaDB's Unix socket is `db.sock` in it.
    directory: TempDir,
}

fn checked(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|e| panic!("{command:?}: {e}: run `make setup-test`"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn directory() -> TempDir {
    let directory = tempfile::Builder::new().prefix("howdah-db-").tempdir();
    directory.unwrap_or_else(|e| panic!("tempdir: {e}"))
}

/// A self-signed key and certificate; clients do not have to trust it.
fn certificate(directory: &Path) -> (PathBuf, PathBuf) {
    let (key, certificate) = (directory.join("key.pem"), directory.join("cert.pem"));
    checked(
        Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate),
    );
    (key, certificate)
}

/// True if the tests run as root, which some servers refuse.
fn as_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn spawn(command: &mut Command, directory: TempDir, port: Port, ready: impl Fn(&Path) -> bool) -> Server {
    let log = directory.path().join("server.log");
    let output = File::create(&log).unwrap_or_else(|e| panic!("{e}"));
    let errors = output.try_clone().unwrap_or_else(|e| panic!("{e}"));
    let process = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn();
    let process = process.unwrap_or_else(|e| panic!("{command:?}: {e}: run `make setup-test`"));
    let mut server = Server { process, port: port.number, _held: port, directory };
    let answered =
        eventually(PATIENCE, || server.process.try_wait().is_ok_and(|s| s.is_some()) || ready(server.directory.path()));
    let running = server.process.try_wait().is_ok_and(|s| s.is_none());
    assert!(answered && running, "{command:?}: {}", std::fs::read_to_string(&log).unwrap_or_default());
    server
}

fn quiet(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

impl Server {
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts MariaDB; user `root` without a password, on TCP and on a Unix socket, encrypted if a client asks for it.
    pub fn mariadb() -> Self {
        let directory = directory();
        let top = directory.path().to_owned();
        let user: &[&str] = if as_root() { &["--user=root"] } else { &[] };
        checked(
            Command::new("mariadb-install-db")
                .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
                .arg("--skip-name-resolve")
                .args(user)
                // Otherwise servers that start at the same time share the names of their temporary tables.
                .arg(format!("--tmpdir={}", top.display()))
                .arg(format!("--datadir={}", top.join("data").display())),
        );
        let (key, cert) = certificate(&top);
        let held = Port::hold();
        let port = held.number;
        // Debian installs servers in a directory that is not in a normal user's PATH.
        let program = if Path::new("/usr/sbin/mariadbd").exists() { "/usr/sbin/mariadbd" } else { "mariadbd" };
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", program, "--no-defaults", "--bind-address=127.0.0.1"])
            .args(user)
            .args(["--innodb-buffer-pool-size=32M", "--skip-log-bin", "--skip-name-resolve"])
            // The default disconnects clients that do not finish the handshake in time, which hits clients on a busy
            // machine.
            .arg("--connect-timeout=300")
            .arg(format!("--port={port}"))
            .arg(format!("--ssl-key={}", key.display()))
            .arg(format!("--ssl-cert={}", cert.display()))
            .arg(format!("--datadir={}", top.join("data").display()))
            .arg(format!("--tmpdir={}", top.display()))
            .arg(format!("--socket={}", top.join("db.sock").display()))
            .arg(format!("--pid-file={}", top.join("db.pid").display()));
        let server = spawn(&mut command, directory, held, |top| {
            quiet(
                Command::new("mariadb")
                    .args(["--no-defaults", "--user=root", "-e", "SELECT 1", "--socket"])
                    .arg(top.join("db.sock")),
            )
        });
        // Over TCP with skipped name resolution, root is a different user.
        checked(
            Command::new("mariadb")
                .args(["--no-defaults", "--user=root", "--socket"])
                .arg(top.join("db.sock"))
                .args(["-e", "CREATE USER tester@'127.0.0.1'; GRANT ALL ON *.* TO tester@'127.0.0.1'"]),
        );
        server
    }

    /// Runs SQL on MariaDB, as its `root`.
    pub fn run(&self, sql: &str) {
        let socket = self.directory().join("db.sock");
        let command = &mut Command::new("mariadb");
        checked(command.args(["--no-defaults", "--user=root", "-e", sql, "--socket"]).arg(socket));
    }

    /// Starts PostgreSQL; user `tester` without a password, encrypted if a client asks for it. As root it runs as
    /// `postgres`.
    pub fn postgres() -> Self {
        let directory = directory();
        let top = directory.path().to_owned();
        let (key, cert) = certificate(&top);
        let mut prefix: Vec<&str> = vec!["setpriv", "--pdeathsig", "KILL"];
        if as_root() {
            prefix.extend(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
            checked(Command::new("chown").args(["-R", "postgres:postgres"]).arg(&top));
        }
        prefix.push("--");
        let under = |program: &str| {
            let mut command = Command::new(prefix[0]);
            command.args(&prefix[1..]).arg(postgres_programs().join(program)).current_dir(&top);
            command
        };
        let data = top.join("data");
        checked(under("initdb").args(["--auth=trust", "--username=tester", "--no-sync", "-D"]).arg(&data));
        let held = Port::hold();
        let port = held.number;
        let mut command = under("postgres");
        command
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "ssl=on"])
            .args(["-c", &format!("unix_socket_directories={}", top.display())])
            .args(["-c", &format!("ssl_key_file={}", key.display())])
            .args(["-c", &format!("ssl_cert_file={}", cert.display())]);
        spawn(&mut command, directory, held, |_| {
            quiet(Command::new(postgres_programs().join("pg_isready")).args([
                "-h",
                "127.0.0.1",
                "-p",
                &port.to_string(),
            ]))
        })
    }

    /// Starts Redis; with `encrypted` it accepts only TLS.
    pub fn redis(encrypted: bool) -> Self {
        let directory = directory();
        let held = Port::hold();
        let port = held.number;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", "redis-server", "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(directory.path());
        if encrypted {
            let (key, cert) = certificate(directory.path());
            command.args(["--port", "0", "--tls-auth-clients", "no", "--tls-port", &port.to_string()]);
            command
                .arg("--tls-key-file")
                .arg(key)
                .arg("--tls-cert-file")
                .arg(&cert)
                .arg("--tls-ca-cert-file")
                .arg(cert);
        } else {
            command.args(["--port", &port.to_string()]);
        }
        spawn(&mut command, directory, held, |_| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
    }

    /// Starts Redis that accepts only TLS, for a client that checks its certificate and knows the password.
    pub fn redis_with_password(certificate: &Certificate, password: &str) -> Self {
        let directory = directory();
        let held = Port::hold();
        let port = held.number;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", "redis-server", "--bind", "127.0.0.1", "--save", "", "--dir"])
            .arg(directory.path())
            .args(["--port", "0", "--tls-auth-clients", "no", "--tls-port", &port.to_string()])
            .args(["--requirepass", password, "--tls-key-file"])
            .arg(&certificate.key)
            .arg("--tls-cert-file")
            .arg(&certificate.cert)
            .arg("--tls-ca-cert-file")
            .arg(&certificate.cert);
        spawn(&mut command, directory, held, |_| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
    }
}

impl Server {
    pub fn nats() -> Self {
        let directory = directory();
        let held = Port::hold();
        let port = held.number;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "nats-server", "-a", "127.0.0.1", "-js", "-sd"]);
        command.arg(directory.path()).args(["-p", &port.to_string()]);
        spawn(&mut command, directory, held, |_| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
    }

    /// Suspends the server: it accepts connections and sends nothing.
    pub fn suspend(&self) {
        process::signal(self.process.id(), Signal::STOP);
    }

    pub fn resume(&self) {
        process::signal(self.process.id(), Signal::CONT);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        process::signal(self.process.id(), Signal::CONT);
        // PostgreSQL takes SIGINT as a fast shutdown; SIGTERM would wait for its clients.
        process::signal(self.process.id(), Signal::INT);
        process::signal(self.process.id(), Signal::TERM);
        if wait_for_exit(&mut self.process, PATIENCE).is_none() {
            process::signal(self.process.id(), Signal::KILL);
            let _ = self.process.wait();
        }
    }
}

/// Debian installs each version's programs separately; the newest is used.
fn postgres_programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").map(|d| d.flatten().map(|e| e.path()).collect());
    let mut versions: Vec<PathBuf> = versions.unwrap_or_default();
    versions.sort();
    versions.pop().map_or_else(PathBuf::new, |newest| newest.join("bin"))
}

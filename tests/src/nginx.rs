//! nginx as a separate server, as the peer of the server under test.

use crate::process::{PATIENCE, eventually, signal, wait_for_exit};
use crate::site::Port;
use rustix::process::Signal;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running nginx. Dropping it ends nginx.
pub struct Nginx {
    process: Child,
    ports: Vec<Port>,
    directory: TempDir,
}

impl Nginx {
    /// Starts nginx on this many free ports of 127.0.0.1. `servers` returns the content of `http { }` for a directory
    /// for its files and the ports.
    ///
    /// # Panics
    /// nginx does not listen.
    pub fn start(ports: usize, servers: impl FnOnce(&Path, &[u16]) -> String) -> Self {
        let directory = tempfile::Builder::new().prefix("howdah-nginx-").tempdir().unwrap_or_else(|e| panic!("{e}"));
        let ports: Vec<Port> = (0..ports).map(|_| Port::hold()).collect();
        let numbers: Vec<u16> = ports.iter().map(|port| port.number).collect();
        let (top, servers) = (directory.path().display(), servers(directory.path(), &numbers));
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {top}/{kind};"))
            .concat();
        let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
        let configuration = format!(
            "{user} daemon off; worker_processes 1; pid {top}/pid; error_log {top}/error.log;
             events {{ worker_connections 200; }} http {{ access_log off; {temporary} {servers} }}"
        );
        let (file, log) = (directory.path().join("nginx.conf"), directory.path().join("error.log"));
        fs::write(&file, configuration).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let mut command = Command::new("setpriv");
        // With its path: /usr/sbin is not in every user's PATH.
        command.args(["--pdeathsig", "TERM", "--", "/usr/sbin/nginx", "-e"]).arg(&log).arg("-c").arg(&file);
        let process = command.stdin(Stdio::null()).spawn().unwrap_or_else(|e| panic!("cannot start nginx: {e}"));
        let nginx = Self { process, ports, directory };
        let ready = || numbers.iter().all(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok());
        let said = || fs::read_to_string(&log).unwrap_or_default();
        assert!(eventually(PATIENCE, ready), "nginx does not listen: {}", said());
        nginx
    }

    /// One of the ports that nginx listens on.
    pub fn port(&self, at: usize) -> u16 {
        self.ports[at].number
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        signal(self.process.id(), Signal::TERM);
        let _ = wait_for_exit(&mut self.process, PATIENCE);
    }
}

//! `howdah init FILE`: imports configurations of other servers, and compares those servers with Howdah path by path.

mod apache;
mod caddy;
mod nginx;

use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{PATIENCE, eventually, signal, wait_for_exit};
use howdah_tests::site::Port;
use howdah_tests::{Conn, Response, Target, php};
use rustix::process::Signal;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Files of each application; the scripts print how they were called.
const FILES: &[&str] = &[
    "index.php",
    "other.php",
    "update.php",
    "api.php",
    "style.css",
    "favicon.ico",
    "robots.txt",
    ".env",
    ".git/config",
    ".well-known/a.txt",
    "sites/default/files/x.php",
    "sites/default/files/a.txt",
    "sites/default/private/a.txt",
    "wp-content/uploads/x.php",
    "wp-content/uploads/a.png",
    "vendor/a.php",
    "vendor/a.txt",
    "images/a.png",
    "images/deleted/b.png",
    "includes/c.txt",
    "cache/a.txt",
    "dir/index.php",
    "dir2/a.txt",
];

/// Paths that are requested in addition to those of the files.
const PATHS: &[&str] = &[
    "/",
    "/?a=1",
    "/page",
    "/page/two?x=y",
    "/index.php/page",
    "/index.php?q=1",
    "/none.php",
    "/none.css",
    "/none/none.png",
    "/wiki/Main_Page",
    "/wiki/A/B",
    "/dir/",
    "/images/none.png",
    "/sites/none/files/y.php",
    "/.none",
    "/a.b/c.php",
    "/wp-content/uploads/none.php",
    "/UPLOADS/x.PHP",
    "/feed/",
    "/vendor/none.php",
];

/// Paths at which Howdah differs on purpose: application, paths, reason.
type Differs = (&'static str, &'static [&'static str], &'static str);

fn write_files(root: &Path) {
    for name in FILES {
        let path = root.join("public").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = if name.ends_with(".php") {
            format!("<?php\n{}", php!("import/called.php"))
        } else {
            format!("file {name}")
        };
        fs::write(path, text).unwrap();
    }
}

fn ask(port: u16, host: &str, path: &str) -> Response {
    let mut conn = Conn::open(&Target::Tcp(([127, 0, 0, 1], port).into()));
    let bytes = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    {
        conn.send(bytes.as_bytes());
        conn.response("GET")
    }
}

/// Configurations of some applications, each a name and its text, with their files in a directory.
struct Applications {
    texts: &'static [(&'static str, &'static str)],
    directory: TempDir,
    port: Port,
}

impl Applications {
    fn new(texts: &'static [(&'static str, &'static str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        texts.iter().for_each(|(name, _)| write_files(&directory.path().join(name)));
        Self { texts, directory, port: Port::hold() }
    }

    fn root(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// All texts as one file, with the listen address and the socket of PHP-FPM.
    fn text(&self, listen: &str, socket: &Path) -> String {
        let texts = self.texts.iter().map(|(name, text)| {
            let text = text.replace("__ROOT__", &self.root(name).display().to_string());
            text.replace("__SOCKET__", &socket.display().to_string())
                .replace("__PORT__", listen)
                .replace("__NAME__", name)
        });
        texts.collect()
    }

    /// Imports the file and serves the result.
    fn serve(&self, name: &str, text: &str) -> Imported {
        let (file, toml) = (self.directory.path().join(name), self.directory.path().join("howdah.toml"));
        fs::write(&file, text).unwrap();
        let printed = Command::new(program()).args(["init", "--print"]).arg(&file).output().unwrap();
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let page = String::from_utf8(printed.stdout).unwrap();
        fs::write(&toml, &page).unwrap();
        let log = self.directory.path().join("log");
        let errors = fs::File::create(&log).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program()).args(["serve", "--allow-root", "--workers", "4"]);
        command.arg("--config").arg(&toml).arg("--php").arg(php_program()).arg("--admin");
        command.arg(format!("unix:{}", self.directory.path().join("admin.sock").display()));
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap();
        let imported = Imported { process, port: self.port.number, page };
        let ready = || TcpStream::connect(("127.0.0.1", imported.port)).is_ok();
        assert!(eventually(PATIENCE, ready), "{}\n{}", fs::read_to_string(&log).unwrap(), imported.page);
        imported
    }
}

/// Howdah with an imported configuration. Dropping it ends the server.
struct Imported {
    process: Child,
    port: u16,
    page: String,
}

impl Drop for Imported {
    fn drop(&mut self) {
        signal(self.process.id(), Signal::TERM);
        let _ = wait_for_exit(&mut self.process, PATIENCE);
    }
}

/// Requests all paths from both servers. The responses must be equal except where `differs` lists a reason.
fn compare(applications: &Applications, ours: &Imported, reference: u16, further: &[&str], differs: &[Differs]) {
    let mut wrong = String::new();
    let files = FILES.iter().map(|file| format!("/{file}"));
    let paths: Vec<String> = files.chain(PATHS.iter().chain(further).map(ToString::to_string)).collect();
    for (name, _) in applications.texts {
        for path in &paths {
            let host = format!("{name}.localhost");
            let [own, truth] = [ours.port, reference].map(|port| ask(port, &host, path));
            // Each server has its own error pages.
            let is_same = own.status == truth.status && (own.status != 200 || own.text() == truth.text());
            let may_differ = differs.iter().any(|(own, paths, _)| own == name && paths.contains(&path.as_str()));
            if is_same == may_differ {
                let shown = |response: &Response| {
                    let text: String = response.text().chars().take(60).collect();
                    format!("{} {text:?}", response.status)
                };
                let _ = writeln!(wrong, "{name} {path}: {}, reference: {}", shown(&own), shown(&truth));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}\n{}", ours.page);
}

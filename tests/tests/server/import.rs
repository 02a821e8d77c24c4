//! `howdah init FILE`: imports configurations of other servers, and compares those servers with Howdah path by path.

mod apache;
mod caddy;
mod nginx;
mod roadrunner;
mod unit;

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

/// Additional files of nginx's applications, which are requested from those.
const OF_NGINX: &[&str] = &[
    "remote.php",
    "status.php",
    "cron.php",
    "get.php",
    "static.php",
    "matomo.php",
    "ocs/v1.php",
    "js/index.php",
    "js/container_a_preview.js",
    "config/config.php",
    "config/a.txt",
    "lib/a.css",
    "data/a.txt",
    "core/a.js",
    "tmp/a.txt",
    "media/a.jpg",
    "media/customer/a.txt",
    "media/theme_customization/a.xml",
    "media/theme_customization/a.txt",
    "static/a.css",
    "static/a.zip",
    "apps/a.mjs",
    "apps/a.woff2",
    "bundles/a.js",
    "README.md",
    "occ",
];

/// Paths that are requested from nginx's applications in addition.
const PATHS_OF_NGINX: &[&str] = &[
    "/remote.php/dav/a",
    "/remote",
    "/remote/a",
    "/ocs/v1.php/a?b=c",
    "/.well-known/carddav",
    "/.well-known/acme-challenge/none",
    "/.well-known/acme-challenge",
    "/.well-known/other",
    "/apps/files",
    "/apps/none.mjs",
    "/apps/none.woff2",
    "/issue/a",
    "/data",
    "/db_a",
    "/setup",
    "/setup/index.php",
    "/setup/a.txt",
    "/setup/pub/a.css",
    "/update/none",
    "/pub/a",
    "/pub/style.css",
    "/pub/media/customer/a.txt",
    "/pub/media/a.jpg",
    "/static/version12/a.css",
    "/static/none.css",
    "/static/none.xml",
    "/static/none",
    "/media/none.jpg?a=b",
    "/media/none.xml",
    "/media/none",
    "/media/import/none",
    "/plugins/none.json",
    "/misc/user/a",
    "/LICENSE",
];

/// Files outside of the document root.
const OUTSIDE: &[&str] = &["setup/index.php", "setup/a.txt", "setup/pub/a.css"];

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
    let public = FILES.iter().chain(OF_NGINX).map(|name| (root.join("public").join(name), name));
    for (path, name) in public.chain(OUTSIDE.iter().map(|name| (root.join(name), name))) {
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
    ask_as(port, host, "GET", path, "")
}

/// A request with a method and a header line, on a connection that ends with it.
fn ask_as(port: u16, host: &str, method: &str, path: &str, header: &str) -> Response {
    let mut conn = Conn::open(&Target::Tcp(([127, 0, 0, 1], port).into()));
    let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
    let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{length}{header}\r\n");
    conn.send(head.as_bytes());
    conn.response(method)
}

/// Sends requests (method, path, header) to both servers, which must decide alike and with the status given.
fn compare_refusals(host: &str, ours: &Imported, reference: u16, requests: &[(&str, &str, &str, u16)]) {
    let mut wrong = String::new();
    for (method, path, header, status) in requests {
        let [own, truth] = [ours.port, reference].map(|port| ask_as(port, host, method, path, header));
        let is_same = own.status != 200 || own.text() == truth.text();
        if (own.status, truth.status) != (*status, *status) || !is_same {
            let (own, truth) = (own.status, truth.status);
            let _ = writeln!(wrong, "{method} {path} {header}: {own}, reference: {truth}, expected: {status}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}\n{}", ours.page);
}

/// The user anna with an empty password, and her header line.
const USERS: &str = "anna:{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk=\n";
const ANNA: &str = "Authorization: Basic YW5uYTo=";

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

/// `true` for the same status and target. Each server may write the target with or without its own address.
fn is_same_redirect(own: &Response, truth: &Response) -> bool {
    let path = |response: &Response| {
        let target = response.header("location").unwrap_or_default().to_owned();
        target
            .split_once("://")
            .map_or(target.clone(), |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]).to_owned())
    };
    own.status == truth.status && path(own) == path(truth)
}

/// Requests all paths from both servers. The responses must be equal except where `differs` lists a reason. Where the
/// reference sends the source of a script, a refusal is expected.
fn compare(applications: &Applications, ours: &Imported, reference: u16, further: &[&str], differs: &[Differs]) {
    let mut wrong = String::new();
    let files = FILES.iter().map(|file| format!("/{file}"));
    let paths: Vec<String> = files.chain(PATHS.iter().chain(further).map(ToString::to_string)).collect();
    for (name, _) in applications.texts {
        for path in &paths {
            let host = format!("{name}.localhost");
            let [own, truth] = [ours.port, reference].map(|port| ask(port, &host, path));
            // Each server has its own error pages.
            let is_source = truth.status == 200 && truth.text().starts_with("<?php");
            let is_same = match own.status {
                403 | 404 if is_source => true,
                200 => truth.status == 200 && own.text() == truth.text(),
                status if (300..400).contains(&status) => is_same_redirect(&own, &truth),
                status => status == truth.status,
            };
            let may_differ = differs.iter().any(|(own, paths, _)| own == name && paths.contains(&path.as_str()));
            if is_same == may_differ {
                let shown = |response: &Response| {
                    let text: String = response.text().chars().take(60).collect();
                    format!("{} {} {text:?}", response.status, response.header("location").unwrap_or_default())
                };
                let _ = writeln!(wrong, "{name} {path}: {}, reference: {}", shown(&own), shown(&truth));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}\n{}", ours.page);
}

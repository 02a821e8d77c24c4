//! `howdah init nginx.conf`: published configurations of applications, and the same paths asked of nginx and of Howdah.

use howdah_tests::howdah::{php_program, program};
use howdah_tests::nginx::Nginx;
use howdah_tests::process::{PATIENCE, eventually, signal, wait_for_exit};
use howdah_tests::site::Port;
use howdah_tests::{Backend, Conn, Response, Setup, Site, Target, php};
use rustix::process::Signal;
use std::fmt::Write as _;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

const APPLICATIONS: &[(&str, &str)] = &[
    ("wordpress", include_str!("import/wordpress.conf")),
    ("drupal", include_str!("import/drupal.conf")),
    ("laravel", include_str!("import/laravel.conf")),
    ("symfony", include_str!("import/symfony.conf")),
    ("mediawiki", include_str!("import/mediawiki.conf")),
];

/// Files of each application; the scripts say how they were called.
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

/// Paths that are asked for in addition to those of the files.
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

/// Where Howdah is stricter than the configuration, by application and path.
const STRICTER: &[(&str, &[&str], &str)] = &[
    (
        "laravel",
        &[
            "/other.php",
            "/update.php",
            "/api.php",
            "/sites/default/files/x.php",
            "/wp-content/uploads/x.php",
            "/vendor/a.php",
            "/dir/index.php",
            "/dir/",
        ],
        "nginx sends the source of scripts that it does not run",
    ),
    ("laravel", &["/index.php/page"], "PATH_INFO is not split from SCRIPT_NAME there"),
    ("symfony", &["/.env", "/.git/config"], "hidden files are sent"),
];

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

#[test]
fn published_configurations_of_nginx_serve_the_same_paths_alike() {
    let setup = Setup::default().workers(4);
    let truth = Site::start(Backend::Reference, &setup);
    let directory = tempfile::tempdir().unwrap();
    let port = Port::hold();
    let socket = truth.fastcgi().display().to_string();
    let all = |listen: &str| {
        APPLICATIONS.iter().fold(String::new(), |all, (name, text)| {
            let root = directory.path().join(name).display().to_string();
            let text = text.replace("__ROOT__", &root).replace("__SOCKET__", &socket).replace("__PORT__", listen);
            all + &text.replace("localhost", &format!("{name}.localhost"))
        })
    };
    APPLICATIONS.iter().for_each(|(name, _)| write_files(&directory.path().join(name)));
    let nginx = Nginx::start(1, |_, ports| all(&format!("127.0.0.1:{}", ports[0])));
    let (conf, toml) = (directory.path().join("nginx.conf"), directory.path().join("howdah.toml"));
    fs::write(&conf, all(&format!("127.0.0.1:{}", port.number))).unwrap();
    let printed = Command::new(program()).args(["init", "--print"]).arg(&conf).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    fs::write(&toml, &printed.stdout).unwrap();
    let log = directory.path().join("log");
    let errors = fs::File::create(&log).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program()).args([
        "serve",
        "--allow-root",
        "--workers",
        "4",
        "--config",
    ]);
    command.arg(&toml).arg("--php").arg(php_program()).arg("--admin");
    command.arg(format!("unix:{}", directory.path().join("admin.sock").display()));
    let mut ours = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap();
    let ready = || TcpStream::connect(("127.0.0.1", port.number)).is_ok();
    assert!(
        eventually(PATIENCE, ready),
        "{}\n{}",
        fs::read_to_string(&log).unwrap(),
        String::from_utf8_lossy(&printed.stdout)
    );
    let mut wrong = String::new();
    let files = FILES.iter().map(|file| format!("/{file}"));
    let paths: Vec<String> = files.chain(PATHS.iter().map(ToString::to_string)).collect();
    for (name, _) in APPLICATIONS {
        for path in paths.iter() {
            let host = format!("{name}.localhost");
            let [own, truth] = [port.number, nginx.port(0)].map(|port| ask(port, &host, path));
            // Pages for errors are each server's own.
            let is_same = own.status == truth.status && (own.status != 200 || own.text() == truth.text());
            let is_stricter = STRICTER.iter().any(|(own, paths, _)| own == name && paths.contains(&path.as_str()));
            if is_same == is_stricter {
                let _ = writeln!(
                    wrong,
                    "{name} {path}: {} {:?}, nginx: {} {:?}",
                    own.status,
                    own.text().chars().take(60).collect::<String>(),
                    truth.status,
                    truth.text().chars().take(60).collect::<String>()
                );
            }
        }
    }
    signal(ours.id(), Signal::TERM);
    let _ = wait_for_exit(&mut ours, PATIENCE);
    assert!(wrong.is_empty(), "{wrong}\n{}", String::from_utf8_lossy(&printed.stdout));
    truth.finish();
}

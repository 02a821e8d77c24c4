//! The surrounding application: its needs work in a sandbox as without.

use super::{sandboxed, shell, site};
use howdah_tests::process::eventually;
use howdah_tests::servers::Server;
use howdah_tests::site::Port;
use howdah_tests::{Mode, Part, Request, multipart, php, run, script_scenario};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

script_scenario!(
    an_application_works_in_a_sandbox,
    howdah_only = "PHP-FPM has no sandbox",
    |s| sandboxed(s)
        .workers(2)
        .php("upload.php", php!("an_application_works_in_a_sandbox_upload.php"))
        .php("session.php", "session_start(); echo $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; session_write_close();")
        .library("lib/used.php", "return 'library';"),
    |site| {
        let big = vec![b'x'; 300_000];
        let parts = [
            Part { name: "as", file: None, content: b"big.bin" },
            Part { name: "f", file: Some(("big.bin", "application/octet-stream")), content: &big },
        ];
        assert_eq!(site.send(&multipart("/upload.php", &parts)).expect(200).text(), "true");
        assert_eq!(site.get("/uploads/big.bin").expect(200).body.len(), big.len());
        let first = site.get("/session.php").expect(200);
        let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(site.send(&Request::get("/session.php").header("Cookie", &cookie)).expect(200).text(), "2");
        let seen = shell(site, php!("an_application_works_in_a_sandbox_script.php"));
        let expected = serde_json::json!({"across": "moved", "locked": 1, "gone": true, "list": true, "lib": "library",
            "opcache": true, "intl": "1.234,5", "zone": 7200, "iconv": true, "random": 32, "file type": "text/plain",
            "null": 1, "sqlite": true, "load": 3, "memory file": 100, "tmpfile": 1, "xml": "b"});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&seen).unwrap(), expected);
    },
);

/// Regression: a worker forked from the template may not list its descriptors there, and closed those of the boot.
#[test]
fn forked_workers_keep_the_boots_open_files() {
    run(
        Mode::Snapshot,
        |s| sandboxed(s).workers(4).php("slow.php", "$open = tmpfile(); usleep(50000); echo getmypid();"),
        |site| {
            let site = &*site;
            let ask = || (0..5).map(|_| site.get_ok("/slow.php")).collect::<Vec<_>>();
            let workers: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
                let clients: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
                clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
            });
            assert!(workers.len() >= 2, "{workers:?}");
        },
    );
}

/// An HTTPS server run by OpenSSL.
struct Https {
    process: Child,
    port: Port,
    directory: tempfile::TempDir,
}

impl Https {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (key, cert) = (directory.path().join("key.pem"), directory.path().join("cert.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout"])
            .args([key.as_os_str(), "-out".as_ref(), cert.as_os_str()])
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        let port = Port::hold();
        let process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", "openssl", "s_server", "-www", "-quiet", "-accept"])
            .arg(format!("127.0.0.1:{}", port.number))
            .args(["-key".as_ref(), key.as_os_str(), "-cert".as_ref(), cert.as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let up = || std::net::TcpStream::connect(("127.0.0.1", port.number)).is_ok();
        assert!(eventually(Duration::from_secs(60), up), "openssl s_server");
        Self { process, port, directory }
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn databases_and_services_that_are_named_are_reached() {
    let (database, https) = (Server::mariadb(), Https::start());
    let (port, socket) = (database.port, database.directory().join("db.sock").display().to_string());
    for mode in [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async] {
        let sandbox = format!(
            "{{ profile = \"app\", write = [\"@ROOT@/uploads\"], connect = [{port}, {}], read = [\"{}\"] }}",
            https.port.number,
            https.directory.path().display()
        );
        run(
            mode,
            |s| site(s).workers(1).setting("sandbox", &sandbox),
            |site| {
                let code = php!(
                    "databases_and_services_that_are_named_are_reached.php",
                    PORT = port,
                    SOCKET = socket,
                    NUMBER = https.port.number,
                    PATH = https.directory.path().display()
                );
                assert_eq!(shell(site, &code), "[42,42,true]", "{mode:?}");
            },
        );
    }
}

//! The admin endpoint: permitted clients, and the required form of requests.

use howdah_tests::howdah::program;
use howdah_tests::site::Port;
use howdah_tests::{Conn, Site, Target, php, scenario, script_scenario};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

/// A script's attempts: directly, through a program it starts, and through one that has detached from it.
const ORDERS: &str = php!("admin/orders.php");

/// Everything that a script tried was refused, and the server still serves with the same workers.
fn is_refused(site: &Site) {
    let answers = site.get("/orders.php").expect(200).json();
    for (order, answer) in answers.as_object().unwrap() {
        let refused = matches!(answer.as_str(), Some("403" | "Permission denied" | "000" | ""));
        assert!(refused, "{order}: {answer}");
    }
    assert!(answers.as_object().unwrap().len() >= 8);
    let status = site.howdah().status();
    assert_eq!(status["pools"][0]["reloads"], 0, "{status}");
    assert_eq!(site.get_ok("/ready.txt"), "ready\n");
}

script_scenario!(
    scripts_of_the_servers_user_cannot_order_it,
    howdah_only = "the endpoint is Howdah's own",
    |s| {
        let s = s.php("orders.php", ORDERS).open_to_users();
        if rustix::process::geteuid().is_root() { s.started_by("daemon") } else { s }
    },
    |site| {
        let answers = site.get("/orders.php").expect(200).json();
        assert_eq!(answers["POST /stop"], "403", "the socket itself is open to the server's user: {answers}");
        is_refused(site);
        let log = site.log();
        assert!(log.contains("the admin endpoint refuses a process that the server started"), "{log}");
    }
);

script_scenario!(
    scripts_of_other_users_cannot_control_the_server,
    howdah_only = "the endpoint is Howdah's own",
    // Even if every user may open the file.
    |s| s
        .php("orders.php", ORDERS)
        .needs_root()
        .open_to_users()
        .setting("user", "\"nobody\"")
        .setting("php.user", "\"www-data\""),
    |site| {
        let socket = site.place().run.join("admin.sock");
        fs::set_permissions(socket, fs::Permissions::from_mode(0o666)).unwrap();
        is_refused(site);
    }
);

script_scenario!(
    scripts_that_run_as_root_cannot_order_it,
    howdah_only = "the endpoint is Howdah's own",
    |s| s.php("orders.php", ORDERS),
    |site| is_refused(site)
);

scenario!(the_socket_is_private_to_its_owner, howdah_only = "the endpoint is Howdah's own", |s| s, |site| {
    let found = fs::metadata(site.place().run.join("admin.sock")).unwrap();
    assert_eq!((found.mode() & 0o777, found.uid()), (0o600, rustix::process::geteuid().as_raw()));
    assert!(site.howdah().command(&["status"]).status.success());
});

/// A server whose admin endpoint is on an address.
pub(super) struct OnAddress {
    server: std::process::Child,
    listen: u16,
    pub(super) admin: u16,
    _ports: [Port; 2],
    directory: tempfile::TempDir,
}

impl OnAddress {
    pub(super) fn start(more: &[&str]) -> Self {
        Self::start_with(&[], more)
    }

    /// As `start`, with files in addition to `index.html`.
    pub(super) fn start_with(files: &[(&str, &str)], more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        fs::write(directory.path().join("index.html"), "page").unwrap();
        let ports = [Port::hold(), Port::hold()];
        let [listen, admin] = [ports[0].number, ports[1].number];
        fs::write(directory.path().join("howdah.toml"), more.join("\n")).unwrap();
        let log = fs::File::create(directory.path().join("log")).unwrap();
        let server = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program())
            .args(["serve", "--workers", "1", "--listen"])
            .arg(format!("127.0.0.1:{listen}"))
            .arg("--admin")
            .arg(format!("127.0.0.1:{admin}"))
            .env("HOWDAH_ALLOW_ROOT", "true")
            .current_dir(directory.path())
            .stderr(log)
            .spawn()
            .unwrap();
        let started = Self { server, listen, admin, _ports: ports, directory };
        let up = howdah_tests::process::eventually(howdah_tests::process::PATIENCE, || {
            Conn::try_open(&started.target(admin)).is_ok() && Conn::try_open(&started.target(listen)).is_ok()
        });
        assert!(up, "{}", started.log());
        started
    }

    /// The address for visitors.
    pub(super) fn visitors(&self) -> Target {
        self.target(self.listen)
    }

    pub(super) fn target(&self, port: u16) -> Target {
        Target::Tcp(([127, 0, 0, 1], port).into())
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    pub(super) fn ask(&self, text: &str) -> u16 {
        let mut conn = Conn::open(&self.target(self.admin));
        conn.send(text.as_bytes());
        conn.try_response(if text.starts_with("HEAD") { "HEAD" } else { "GET" }).map_or(0, |answer| answer.status)
    }

    pub(super) fn command(&self, arguments: &[&str], token: &str) -> std::process::Output {
        Command::new(program())
            .args(arguments)
            .arg("--admin")
            .arg(format!("127.0.0.1:{}", self.admin))
            .env("HOWDAH_ADMIN_TOKEN", token)
            .current_dir("/")
            .output()
            .unwrap()
    }
}

impl Drop for OnAddress {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn no_web_page_can_order_a_server_on_an_address() {
    let site = OnAddress::start(&[]);
    // The server listens before it logs this.
    let said = || site.log().contains("without `admin_token`");
    assert!(howdah_tests::process::eventually(howdah_tests::process::PATIENCE, said), "{}", site.log());
    let port = site.admin;
    let own = format!("127.0.0.1:{port}");
    for (host, status) in [
        (own.as_str(), 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("attacker.example", 403),
        ("localhost.attacker.example", 403),
        ("127.0.0.1.attacker.example", 403),
    ] {
        assert_eq!(site.ask(&format!("GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n")), status, "{host}");
        let absolute = format!("GET http://{host}/status HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(site.ask(&absolute), status, "{host} in the target");
    }
    // Forms that a browser sends without a preflight request, with and without the headers that show their origin.
    for path in ["/stop", "/reload", "/frankenphp/workers/restart"] {
        for fields in [
            "Content-Type: text/plain\r\n",
            "Content-Type: application/x-www-form-urlencoded\r\n",
            "Origin: https://attacker.example\r\n",
            "Origin: null\r\nX-Howdah: 1\r\n",
            "Sec-Fetch-Site: cross-site\r\nX-Howdah: 1\r\n",
        ] {
            let request = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: 0\r\n\r\n");
            assert_eq!(site.ask(&request), 403, "{request}");
        }
    }
    let preflight = "OPTIONS /stop HTTP/1.1\r\nHost: localhost\r\nOrigin: https://attacker.example\r\n\r\n";
    assert_eq!(site.ask(preflight), 403);
    assert!(site.command(&["status"], "").status.success(), "{}", site.log());
    assert!(Conn::try_open(&site.target(site.listen)).is_ok(), "the server keeps serving");
    assert!(site.command(&["stop"], "").status.success(), "{}", site.log());
}

#[test]
fn a_tcp_admin_address_needs_the_token() {
    let site = OnAddress::start(&["admin_token = \"a long one\""]);
    assert!(!site.log().contains("without `admin_token`"), "{}", site.log());
    let ask = |field: &str| site.ask(&format!("GET /status HTTP/1.1\r\nHost: localhost\r\n{field}\r\n"));
    assert_eq!(ask("Authorization: Bearer a long one\r\n"), 200);
    for field in ["", "Authorization: Bearer a long on\r\n", "Authorization: Basic a long one\r\n", "X-Howdah: 1\r\n"] {
        assert_eq!(ask(field), 401, "{field}");
    }
    for arguments in [["status"], ["reload"], ["stop"]] {
        assert!(!site.command(&arguments, "another").status.success(), "{arguments:?}");
    }
    assert!(site.command(&["reload"], "a long one").status.success(), "{}", site.log());
    assert!(site.command(&["stop"], "a long one").status.success(), "{}", site.log());
}

#[test]
fn addresses_that_others_reach_need_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let check = |arguments: &[&str]| {
        let output = Command::new(program())
            .args(["check", directory.path().to_str().unwrap(), "--admin"])
            .args(arguments)
            .env("HOWDAH_ALLOW_ROOT", "true")
            .current_dir(directory.path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for address in [":9090", "0.0.0.0:9090", "[::]:9090", "192.0.2.7:9090", "[::ffff:192.0.2.7]:9090"] {
        let (code, said) = check(&[address]);
        assert!(code == Some(1) && said.contains("set admin_token"), "{address}: {said}");
    }
    for address in ["127.0.0.1:9090", "127.8.8.8:9090", "[::1]:9090", "localhost:9090"] {
        assert_eq!(check(&[address]).0, Some(0), "{address}");
    }
}

//! The doctor as a proxy in front of the server that serves an application now.

mod alike;
mod ends;
mod wire;

use howdah_tests::process::{self, PATIENCE, eventually, signal, wait_for_exit};
use howdah_tests::site::Port;
use howdah_tests::{Backend, Conn, Request, Response, Setup, Site, Target};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// The message after `--pages` comparisons.
const ENOUGH: &str = "copying no more requests: ";

/// A running `howdah doctor --listen`, in its own process group.
struct Shadow {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    target: Target,
    port: Port,
}

impl Shadow {
    /// Starts it with `dir/shop`, copying all requests, in front of the server at `old`, and waits until it listens.
    fn start(dir: &Path, old: &str, arguments: &[&str]) -> Self {
        let port = Port::hold();
        let address = format!("127.0.0.1:{}", port.number);
        let mut command = super::command(dir, &["shop", "--against", old, "--listen", &address, "--share", "100"]);
        command.args(["--json", "-"]).args(arguments).process_group(0);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (lines, stderr) = (Arc::<Mutex<Vec<String>>>::default(), child.stderr.take().unwrap());
        let seen = Arc::clone(&lines);
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).for_each(|line| seen.lock().unwrap().push(line));
        });
        let shadow = Self { child, lines, target: Target::Tcp(address.parse().unwrap()), port };
        shadow.wait_for(&format!("listening on {address}: passing requests on to {old}, copying 100 %"));
        shadow
    }

    /// Waits for a line that begins with `start`.
    fn wait_for(&self, start: &str) {
        let has = || self.lines.lock().unwrap().iter().any(|line| line.starts_with(start));
        assert!(eventually(PATIENCE, has), "{start}: {:#?}", self.lines.lock().unwrap());
    }

    fn send(&self, request: &Request) -> Response {
        Conn::open(&self.target).exchange(request)
    }

    /// The process of `howdah serve`.
    fn server(&self) -> u32 {
        let children = process::children(self.child.id());
        assert_eq!(children.len(), 1, "the doctor's only child: {children:?}");
        children[0]
    }

    /// Waits for its end; returns the exit status and the report.
    fn report(mut self) -> (Option<i32>, Value) {
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let status = wait_for_exit(&mut self.child, PATIENCE).expect("the doctor does not end");
        let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {:#?}", self.lines.lock().unwrap()));
        (status.code(), report)
    }

    fn end(self) -> (Option<i32>, Value) {
        signal(self.child.id(), Signal::TERM);
        self.report()
    }
}

/// The directory `shop` with these settings.
fn shop(toml: &str) -> TempDir {
    let top = tempfile::tempdir().unwrap();
    fs::create_dir(top.path().join("shop")).unwrap();
    fs::write(top.path().join("shop/howdah.toml"), toml).unwrap();
    top
}

fn url(old: &Site) -> String {
    format!("http://127.0.0.1:{}", old.port())
}

fn differing(report: &Value) -> Vec<(&str, Vec<&str>)> {
    let pages = report["different"].as_array().unwrap().iter();
    pages
        .map(|page| {
            let differences = page["differences"].as_array().unwrap().iter();
            (page["path"].as_str().unwrap(), differences.map(|found| found["part"].as_str().unwrap()).collect())
        })
        .collect()
}

/// A response without its date and the fields about its connection, and with the requested port replaced.
fn steady(response: &Response, port: u16) -> (u16, Vec<(String, String)>, String) {
    let is_steady = |name: &str| !["date", "connection"].contains(&name.to_ascii_lowercase().as_str());
    let fields = response.headers.iter().filter(|(name, _)| is_steady(name));
    (response.status, fields.cloned().collect(), response.text().replace(&port.to_string(), "PORT"))
}

#[test]
fn live_requests_are_copied_and_compared_and_clients_get_the_old_servers_responses() {
    let setup = Setup::default()
        .workers(2)
        .php("home.php", "setcookie('s', bin2hex(random_bytes(16))); echo 'home at ', time(), ' for ', bin2hex(random_bytes(8));")
        .php("state.php", "echo 1 / 3;")
        .php("header.php", "header('X-Of: ' . ($_SERVER['HTTP_X_OF'] ?? '')); echo $_SERVER['HTTP_ACCEPT'], ' ', $_SERVER['HTTP_HOST'], ' ', $_SERVER['QUERY_STRING'];")
        .php("client.php", "echo $_SERVER['HTTP_X_FORWARDED_FOR'] ?? 'none', ' ', implode(' ', array_keys($_GET));")
        .php("enter.php", "session_start(); $_SESSION['name'] = $_POST['name']; echo 'hello';")
        .php("who.php", "session_start(); echo 'you are ', $_SESSION['name'] ?? 'nobody';")
        .php("logout.php", "file_put_contents(__DIR__ . '/left', 'x', FILE_APPEND); echo 'bye';")
        .file("old.txt", "old\n");
    let old = Site::start(Backend::Reference, &setup);
    let (root, sessions) = (old.place().root.display(), old.place().sessions.display());
    let top = shop(&format!(
        "root = \"{root}\"\n[php.ini]\nprecision = \"5\"\n\"session.save_path\" = \"{sessions}\"\n\
         [[rule]]\npath = \"/old.txt\"\nstatus = 404\n"
    ));
    let shadow = Shadow::start(top.path(), &url(&old), &["--sessions"]);
    let cookies: Vec<String> = (0..3)
        .map(|n| {
            let entered = shadow.send(&Request::form("/enter.php", &format!("name=visitor{n}"))).expect(200);
            entered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
        })
        .collect();
    let mut conn = Conn::open(&shadow.target);
    let mut get = |path: &str| conn.exchange(&Request::get(path)).text();
    for path in ["/home.php", "/home.php", "/state.php", "/state.php?again", "/logout.php", "/old.txt"] {
        get(path);
    }
    assert_eq!(get("/client.php"), "127.0.0.1 ");
    for (n, cookie) in cookies.iter().enumerate() {
        let who = conn.exchange(&Request::get("/who.php").header("Cookie", cookie)).expect(200);
        assert_eq!(who.text(), format!("you are visitor{n}"));
    }
    let asked = Request::get("/header.php?a=%20b").header("Accept", "x/y").header("X-Of", "me");
    let (through, direct) = (conn.exchange(&asked), old.send(&asked));
    assert_eq!(steady(&through, shadow.port.number), steady(&direct, old.port()), "the old server's response");
    assert_eq!(shadow.send(&Request::get("/missing")).status, 404);
    assert_eq!(shadow.send(&Request::new("HEAD", "/state.php")).status, 200);
    shadow.wait_for("GET /state.php differs in body: `0.");
    shadow.wait_for("GET /state.php?again differs in body: `0.");
    shadow.wait_for("GET /old.txt differs in status: `200` there, `404` here");
    shadow.wait_for("GET /missing differs in content-type: `text/html` there, `text/plain; charset=utf-8` here");
    let (code, report) = shadow.end();
    assert_eq!(code, Some(1), "{report:#}");
    let body = |path| (path, vec!["body"]);
    let found = differing(&report);
    assert_eq!((found[1].0, found[1].1[0], found.len()), ("/old.txt", "status", 4), "{report:#}");
    assert_eq!(found[2..], [body("/state.php"), body("/state.php?again")], "{report:#}");
    let traffic = &report["traffic"];
    assert_eq!((&traffic["requests"], &traffic["chosen"]), (&json!(16), &json!(12)), "{report:#}");
    assert_eq!(traffic["skipped"]["changing"], 1, "{report:#}");
    let waiting = traffic["skipped"]["ended"].as_u64().unwrap_or_default();
    assert_eq!(report["pages"].as_u64().unwrap() + waiting, 11, "{report:#}");
    let left = fs::read(old.place().root.join("left")).unwrap();
    assert_eq!(left, b"x", "a request that may log out is not repeated");
    let names: Vec<_> = fs::read_dir(top.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["shop"], "nothing is left");
    old.finish();
}

#[test]
fn copies_leave_the_sessions_of_visitors_alone() {
    let code = "file_put_contents(__DIR__ . '/seen', ini_get('precision') . ($_COOKIE['s'] ?? '-') . ' ', FILE_APPEND); echo 'page';";
    let old = Site::start(Backend::Reference, &Setup::default().php("page.php", code));
    let top = shop(&format!("root = \"{}\"\n[php.ini]\nprecision = \"5\"\n", old.place().root.display()));
    let shadow = Shadow::start(top.path(), &url(&old), &["--pages", "1"]);
    let mut conn = Conn::open(&shadow.target);
    for header in [("Cookie", "s=1"), ("Authorization", "Basic YTpi"), ("X-Any", "1")] {
        assert_eq!(conn.exchange(&Request::get("/page.php").header(header.0, header.1)).text(), "page");
    }
    shadow.wait_for(ENOUGH);
    let (code, report) = shadow.end();
    assert_eq!((code, &report["traffic"]["skipped"]), (Some(0), &json!({"visitor": 2})), "{report:#}");
    let seen = fs::read_to_string(old.place().root.join("seen")).unwrap();
    assert!(seen.ends_with("5- ") && seen.matches(" 5").count() == 1, "{seen}");
    old.finish();
}

/// Howdah responds only after all clients have their responses, then stops, then is killed.
#[test]
fn a_slow_or_dead_howdah_delays_no_client() {
    let code = "while (ini_get('precision') === '5' && !file_exists(__DIR__ . '/go')) { usleep(5000); } echo 'page';";
    let old = Site::start(Backend::Reference, &Setup::default().workers(2).php("page.php", code));
    let root = old.place().root.clone();
    let top = shop(&format!("root = \"{}\"\n[php.ini]\nprecision = \"5\"\n", root.display()));
    let shadow = Shadow::start(top.path(), &url(&old), &[]);
    let mut conn = Conn::open(&shadow.target);
    let mut ask = |n: usize| {
        for n in 0..n {
            assert_eq!(conn.exchange(&Request::get(&format!("/page.php?{n}"))).text(), "page");
        }
    };
    ask(200);
    let server = shadow.server();
    signal(server, Signal::STOP);
    ask(50);
    signal(server, Signal::CONT);
    fs::write(root.join("go"), "").unwrap();
    // Eventually it keeps up again.
    let is_back = |line: &String| line.contains(" requests passed on; ") && !line.contains("; 0 copies");
    let lines = || shadow.lines.lock().unwrap().clone();
    assert!(eventually(PATIENCE, || lines().iter().any(is_back)), "{:#?}", lines());
    signal(server, Signal::KILL);
    shadow.wait_for("howdah has ended");
    ask(50);
    shadow.wait_for("GET /page.php?");
    let (code, report) = shadow.end();
    assert_eq!(code, Some(1), "{report:#}");
    assert!(report.to_string().contains("no response: "), "{report:#}");
    let traffic = &report["traffic"];
    let skipped: u64 = traffic["skipped"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert!(traffic["skipped"]["busy"].as_u64() > Some(50), "{report:#}");
    assert_eq!((&traffic["requests"], &traffic["unanswered"]), (&json!(300), &json!(0)), "{report:#}");
    assert_eq!(skipped + report["pages"].as_u64().unwrap(), 300, "{report:#}");
    old.finish();
}

#[test]
fn a_proxy_without_a_server_behind_it_or_without_an_address_does_not_start() {
    let top = shop("root = \".\"\n");
    fs::write(top.path().join("shop/index.php"), "<?php echo 'home';").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = listener.local_addr().unwrap().to_string();
    let asked = |arguments: &[&str]| {
        let dir = top.path().join("shop").display().to_string();
        let output = super::doctor(top.path(), &[&[&*dir, "--quiet"], arguments].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let port = Port::hold();
    let (own, any) = (format!("http://127.0.0.1:{}", port.number), format!(":{}", port.number));
    let cases: [(&[&str], &str); 6] = [
        (&["--against", &own, "--listen", &any], "is the proxy's own address"),
        (&["--listen", ":0"], "--against"),
        (&["--against", "last.json", "--listen", ":0"], "--listen needs a server"),
        (&["--against", "http://127.0.0.1:1", "--listen", &busy], "cannot listen on 127.0.0.1:"),
        (&["--against", "http://127.0.0.1:1", "--listen", "nonsense"], "cannot listen on nonsense"),
        (&["--against", "http://127.0.0.1:1", "--share", "5"], "--listen"),
    ];
    for (arguments, message) in cases {
        let (code, said) = asked(arguments);
        assert!(code == Some(2) && said.contains(message), "{arguments:?}: {code:?} {said}");
    }
}

//! A server with few descriptors, or none left: begun requests are served, and existing files are never "not found".

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, Site, Target, howdah, scenario};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use std::process::{Command, Stdio};

/// Sets the server's limit of open descriptors.
fn limit(site: &Site, maximum: u64) {
    let pid = Pid::from_raw(i32::try_from(site.howdah().pid()).unwrap());
    let limit = Rlimit { current: Some(maximum), ..getrlimit(Resource::Nofile) };
    prlimit(pid, Resource::Nofile, limit).unwrap();
}

scenario!(
    a_server_without_descriptors_responds_503_and_never_404,
    howdah_only = "the harness does not limit the reference's processes",
    |s| s
        .setting("front_controller", "\"front.php\"")
        .php("front.php", "echo 'front ', strlen(file_get_contents('php://input'));")
        .allow_log("Too many open files"),
    |site| {
        let body = "x".repeat(100_000);
        let mut conn = site.conn();
        let mut status = |path: &str, body: &str| conn.exchange(&Request::new("POST", path).body(body)).status;
        assert_eq!(status("/some/page", &body), 200);
        limit(site, 3);
        for path in ["/some/other/page", "/front.php"] {
            assert!(matches!(status(path, ""), 200 | 503), "{path}");
        }
        assert_eq!(status("/a/third/page", ""), 503);
        assert_eq!(status("/some/page", &body), 503);
        let _ = site.wait_for_log(&["Too many open files"]);
        limit(site, 1024);
        let request = Request::new("POST", "/a/third/page").body(body.clone());
        assert!(eventually(PATIENCE, || site.send(&request).status == 200));
    },
);

/// Number of times that the server's threads have blocked and resumed.
fn wakes(site: &Site) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{}/task", site.howdah().pid())).unwrap().flatten();
    let wakes = threads.map(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
    });
    wakes.sum()
}

scenario!(
    listeners_without_descriptors_log_that_once,
    howdah_only = "the harness does not limit the reference's processes",
    |s| s.unix_listener().file("page.txt", "page").allow_log("Too many open files"),
    |site| {
        limit(site, 3);
        let (by_tcp, by_unix) = (Conn::open(site.target()), Conn::open(&site.unix()));
        let said = "cannot accept connections";
        let _ = site.wait_for_log(&[said]);
        // Both listeners retry ten times a second, and wake for nothing else.
        let before = wakes(site);
        assert!(eventually(PATIENCE, || wakes(site) > before + 15));
        assert_eq!(site.log().matches(said).count(), 1, "{}", site.log());
        limit(site, 1024);
        for mut conn in [by_tcp, by_unix] {
            assert_eq!(conn.exchange(&Request::get("/page.txt")).expect(200).text(), "page");
        }
    },
);

#[test]
fn with_128_descriptors_requests_on_open_connections_are_served() {
    let top = tempfile::tempdir().unwrap();
    std::fs::write(top.path().join("index.php"), "<?php echo strlen(file_get_contents('php://input'));").unwrap();
    let socket = top.path().join("s");
    let mut server = Command::new("sh")
        .args(["-c", "ulimit -n 128 && exec \"$0\" \"$@\""])
        .arg(howdah::program())
        .args(["serve", "--allow-root", "--workers", "2", "--set", "threads=1"])
        .arg(top.path())
        .arg(format!("--listen=unix:{}", socket.display()))
        .arg(format!("--admin=unix:{}", top.path().join("admin").display()))
        .current_dir(top.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(top.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let target = Target::Unix(socket);
    assert!(eventually(PATIENCE, || Conn::try_open(&target).is_ok()));
    let asked = |conn: &mut Conn, n: usize| {
        let request = Request::new("POST", &format!("/page/{n}")).body("x".repeat(100_000));
        conn.exchange(&request).expect(200).text()
    };
    let mut idle = Vec::new();
    for n in 0..200 {
        let mut conn = Conn::open(&target);
        if n % 10 == 0 {
            assert_eq!(asked(&mut conn, n), "100000");
        }
        idle.push(conn);
    }
    for (n, conn) in idle.iter_mut().enumerate().rev().take(5) {
        assert_eq!(asked(conn, 1000 + n), "100000");
    }
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    let _ = server.wait();
    let log = std::fs::read_to_string(top.path().join("log")).unwrap();
    assert!(log.contains("http.max_connections is 32: the process may have only 128 descriptors"), "{log}");
    assert!(!log.contains("Too many open files"), "{log}");
}

/// Room for connections of `threads` clients, six times over. Each client sends request after request over its
/// connection, and reconnects only if a response was declared the last one.
#[test]
fn active_clients_are_notified_before_their_connection_ends() {
    howdah_tests::run(
        howdah_tests::Mode::Classic,
        |s| s.workers(1).setting("http.max_connections", "4").setting("threads", "1").file("a.txt", "a"),
        |site| {
            let target = site.target();
            let cut: usize = std::thread::scope(|scope| {
                let clients: Vec<_> = (0..24)
                    .map(|_| {
                        scope.spawn(|| {
                            let (mut conn, mut cut) = (Conn::open(target), 0);
                            for _ in 0..40 {
                                let answered = conn.try_send(&Request::get("/a.txt").bytes()).ok();
                                match answered.and_then(|()| conn.try_response("GET")) {
                                    Some(response) if response.header("connection") != Some("close") => {}
                                    Some(_) => conn = Conn::open(target),
                                    None => (conn, cut) = (Conn::open(target), cut + 1),
                                }
                            }
                            cut
                        })
                    })
                    .collect();
                clients.into_iter().map(|client| client.join().unwrap()).sum()
            });
            assert_eq!(cut, 0, "requests without a response");
        },
    );
}

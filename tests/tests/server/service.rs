//! The interface between systemd and a server: state notifications (`Type=notify`), the watchdog (`WatchdogSec=`), and
//! the sockets that a unit passes.

use super::http3;
use super::users::two_users;
use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{self, PATIENCE, eventually};
use howdah_tests::service::{with_kept, with_two_kept};
use howdah_tests::site::{free_port, replace_file};
use howdah_tests::{Conn, Mode, Request, Setup, Site, Target, run, scenario};
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Prints the variables as PHP sees them.
const VARIABLES: &str = "foreach (['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'LISTEN_FDS', 'LISTEN_PID', \
    'LISTEN_FDNAMES', 'HOWDAH_TAKES_OVER'] as $name) { if (getenv($name) !== false) { echo $name, ' '; } }";

fn text(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn upgrade(site: &Site) {
    let output = site.howdah().command(&["upgrade"]);
    assert!(output.status.success(), "{}\nlog:\n{}", text(&output), site.howdah().log());
}

scenario!(
    the_service_manager_is_notified_of_start_reload_and_stop,
    howdah_only = "NOTIFY_SOCKET is Howdah's",
    |s| s.notified().workers(1).expect_log("reload failed").php("variables.php", VARIABLES),
    |site| {
        let (manager, pid) = (site.howdah().manager(), site.howdah().pid());
        let ready = manager.until("READY=1");
        assert_eq!((ready.pid, ready.value("STATUS")), (pid, Some("every pool serves")));
        assert_eq!(site.get_ok("/variables.php"), "");
        assert!(site.howdah().command(&["reload"]).status.success());
        let reloading = manager.until("RELOADING=1");
        assert!(reloading.value("MONOTONIC_USEC").unwrap().parse::<u64>().unwrap() > 0);
        assert!(manager.hear().says("READY=1"));
        let settings = site.place().run.join("howdah.toml");
        let good = std::fs::read(&settings).unwrap();
        replace_file(&settings, [&good[..], b"grace = \"a while\"\n"].concat());
        assert!(!site.howdah().command(&["reload"]).status.success());
        assert!(manager.hear().says("RELOADING=1"));
        assert!(manager.hear().says("READY=1"), "the server keeps serving with the previous settings");
        replace_file(&settings, good);
        site.howdah().signal(Signal::TERM);
        let stopping = manager.hear();
        assert!(stopping.says("STOPPING=1") && stopping.pid == pid, "{stopping:?}");
        assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
    },
);

#[test]
fn a_server_whose_php_does_not_start_is_ready_and_reports_why() {
    let setup = |s: Setup| {
        s.notified()
            .workers(1)
            .script("worker.php")
            .expect_boot_failure()
            .expect_log("no application")
            .allow_log("ended before it")
            .php("worker.php", "throw new Exception('no application');")
    };
    run(Mode::Worker, setup, |site| {
        let ready = site.howdah().manager().until("READY=1");
        assert_eq!(ready.value("STATUS"), Some("pools without a serving worker: default"));
    });
}

scenario!(
    a_watchdog_is_notified_before_and_after_an_upgrade,
    howdah_only = "NOTIFY_SOCKET is Howdah's",
    |s| s.notified().own_env("WATCHDOG_USEC", "400000").workers(1).php("variables.php", VARIABLES),
    |site| {
        let (manager, old) = (site.howdah().manager(), site.howdah().pid());
        let _ = manager.until("READY=1");
        assert_eq!(manager.until("WATCHDOG=1").pid, old);
        assert_eq!(manager.until("WATCHDOG=1").pid, old);
        upgrade(site);
        let replaced = loop {
            let notice = manager.hear();
            if notice.value("MAINPID").is_some() {
                break notice;
            }
            assert_eq!(notice.pid, old, "the new process notifies too early: {notice:?}");
        };
        let new: u32 = replaced.value("MAINPID").unwrap().parse().unwrap();
        assert_eq!(replaced.pid, old);
        assert!(replaced.says("WATCHDOG=1"), "the new process's watchdog time starts anew: {replaced:?}");
        assert_eq!(
            manager.until("BARRIER=1").pid,
            old,
            "the old process waits until systemd has read its notification"
        );
        for _ in 0..3 {
            let notice = manager.hear();
            assert_eq!(notice.pid, new, "the old process is not the service any more: {notice:?}");
            assert!(!notice.says("STOPPING=1"));
        }
        site.howdah_mut().follow();
        assert_eq!(site.howdah().pid(), new);
        assert_eq!(site.get_ok("/variables.php"), "");
        let _ = site.howdah().manager().heard();
        site.howdah().signal(Signal::TERM);
        assert_eq!(site.howdah().manager().until("STOPPING=1").pid, new);
        assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
    },
);

scenario!(
    the_sockets_of_a_unit_are_served_and_stay_its_own,
    howdah_only = "LISTEN_FDS is Howdah's",
    |s| s.passes_sockets().unix_listener().workers(1).php("variables.php", VARIABLES),
    |site| {
        let file = site.place().run.join("http.sock");
        let before = inode(&file);
        for _ in 0..2 {
            let unix = Conn::open(&site.unix()).exchange(&Request::get("/variables.php")).expect(200).text();
            assert_eq!((site.get_ok("/variables.php"), unix), (String::new(), String::new()));
            upgrade(site);
            site.howdah_mut().follow();
        }
        site.howdah().signal(Signal::TERM);
        assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
        assert_eq!(inode(&file), before, "the unit's socket file stays");
    },
);

scenario!(
    the_socket_file_of_a_unit_outlives_a_launcher_too,
    howdah_only = "LISTEN_FDS is Howdah's",
    |s| two_users(s).passes_sockets().unix_listener().workers(1).php("variables.php", VARIABLES),
    |site| {
        let file = site.place().run.join("http.sock");
        let before = inode(&file);
        assert_eq!(Conn::open(&site.unix()).exchange(&Request::get("/variables.php")).expect(200).text(), "");
        site.howdah().signal(Signal::TERM);
        assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
        assert_eq!(inode(&file), before);
    },
);

/// A server that replaces one that has ended, with its settings. Dropping it ends the server.
struct Next(std::process::Child);

impl Next {
    fn start(site: &Site, kept: std::os::fd::OwnedFd, name: &str, port: u16) -> Self {
        Self::serving(site, with_kept(kept, name, "setpriv"), &format!("127.0.0.1:{port}"))
    }

    /// `command` is the command of `setpriv`.
    fn serving(site: &Site, mut command: std::process::Command, listen: &str) -> Self {
        let place = site.place();
        let output = std::fs::File::create(place.top.join("next.log")).unwrap();
        let child = command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program())
            .arg("serve")
            .arg(&place.root)
            .arg("--config")
            .arg(place.run.join("howdah.toml"))
            .arg("--admin")
            .arg(format!("unix:{}", place.run.join("admin.sock").display()))
            .args(["--workers", "1", "--listen", listen, "--php"])
            .arg(php_program())
            .env("HOWDAH_ALLOW_ROOT", "true")
            .env("NOTIFY_SOCKET", place.top.join("notify.sock"))
            .stderr(output)
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        process::signal(self.0.id(), Signal::TERM);
        let _ = self.0.wait();
    }
}

scenario!(
    clients_that_connect_after_a_servers_end_wait_for_the_next,
    howdah_only = "NOTIFY_SOCKET is Howdah's",
    |s| s.notified().workers(1).php("hello.php", "echo 'hello';"),
    |site| {
        let (port, pid) = (site.port(), site.howdah().pid());
        let name = format!("howdah-tcp-127.0.0.1-{port}");
        let mut kept = site.howdah().manager().until("FDSTORE=1");
        assert_eq!((kept.pid, kept.value("FDNAME")), (pid, Some(&*name)));
        let socket = kept.descriptors.pop().expect("the notification has a socket");

        assert!(site.howdah().command(&["reload"]).status.success());
        let again = site.howdah().manager().heard();
        assert!(!again.iter().any(|notice| notice.text.contains("FDSTORE")), "the socket was stored twice: {again:?}");

        site.howdah().signal(Signal::KILL);
        assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
        let mut waiting = Conn::open(site.target());
        waiting.send("GET /hello.php HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let next = Next::start(site, socket.try_clone().unwrap(), &name, port);
        assert_eq!(waiting.response("GET").text(), "hello");
        drop(next);
        let said = site.howdah().manager().heard();
        assert!(!said.iter().any(|notice| notice.says("FDSTORE=1")), "the socket was stored twice: {said:?}");

        // With another address the old socket is not needed.
        let next = Next::start(site, socket, &name, free_port());
        let gone = site.howdah().manager().until("FDSTOREREMOVE=1");
        assert_eq!((gone.pid, gone.value("FDNAME")), (next.0.id(), Some(&*name)));
        assert!(site.howdah().manager().until("FDSTORE=1").value("FDNAME") != Some(&*name));
        let log = std::fs::read_to_string(site.place().top.join("next.log")).unwrap();
        assert!(!log.contains("service manager passed"), "{log}");
    },
);

/// Runs until the file `hold` is removed.
const SLOW: &str = "touch(__DIR__ . '/began'); \
    for (; is_file(__DIR__ . '/hold'); clearstatcache()) { usleep(10_000); } echo 'slow';";

scenario!(
    http_3_clients_of_an_ending_server_reach_the_next,
    howdah_only = "NOTIFY_SOCKET is Howdah's",
    |s| http3::http3(s).notified().workers(1).php("slow.php", SLOW).file("hold", ""),
    |site| {
        let port = site.port();
        let mut kept: Vec<(std::os::fd::OwnedFd, String)> = Vec::new();
        while kept.len() < 2 {
            let mut notice = site.howdah().manager().until("FDSTORE=1");
            let name = notice.value("FDNAME").unwrap().to_owned();
            kept.push((notice.descriptors.pop().expect("the notification has a socket"), name));
        }
        let mut slow = Conn::open(site.target());
        slow.send(Request::get("/slow.php").bytes());
        assert!(eventually(PATIENCE, || site.file("began").exists()));
        site.howdah().signal(Signal::TERM);
        let _ = site.howdah().manager().until("STOPPING=1");
        let mut late = http3::Client::start(site, &["patient", "/hello.php"]);
        assert_eq!(late.line(), "asked");
        std::fs::remove_file(site.file("hold")).unwrap();
        assert_eq!(slow.response("GET").text(), "slow");
        drop(slow);
        assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
        let sockets = <[_; 2]>::try_from(kept).expect("one of TCP and one of UDP");
        let _next = Next::serving(site, with_two_kept(sockets, "setpriv"), &format!("https://127.0.0.1:{port}"));
        assert_eq!(late.end()["text"], "hello");
    },
);

/// Opens a connection for each request until `stop` is set, and counts them. Panics at the first one without a
/// response.
fn ask(target: &Target, stop: &AtomicBool) -> u32 {
    let bytes = Request::get("/f.txt").header("Connection", "close").bytes();
    let mut asked = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut conn = Conn::open(target);
        conn.send(&bytes);
        assert_eq!(conn.response("GET").expect(200).text(), "file", "after {asked} requests");
        asked += 1;
    }
    asked
}

scenario!(
    clients_with_a_connection_for_each_request_lose_none_at_restarts,
    howdah_only = "NOTIFY_SOCKET is Howdah's",
    |s| s.notified().setting("threads", "2").workers(1).file("f.txt", "file"),
    |site| {
        let (port, target) = (site.port(), site.target().clone());
        let name = format!("howdah-tcp-127.0.0.1-{port}");
        let socket =
            site.howdah().manager().until("FDSTORE=1").descriptors.pop().expect("the notification has a socket");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..8).map(|_| scope.spawn(|| ask(&target, &stop))).collect();
            let restarts = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                site.howdah().signal(Signal::TERM);
                assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
                for _ in 0..25 {
                    let _next = Next::start(site, socket.try_clone().unwrap(), &name, port);
                    let _ = site.howdah().manager().until("READY=1");
                }
                let _last = Next::start(site, socket.try_clone().unwrap(), &name, port);
                let _ = site.howdah().manager().until("READY=1");
                stop.store(true, Ordering::Relaxed);
                clients.into_iter().map(|client| client.join().unwrap()).sum::<u32>()
            }));
            stop.store(true, Ordering::Relaxed);
            // A client in the socket's queue would wait for ever.
            drop(socket);
            assert!(restarts.unwrap() > 0);
        });
    },
);

scenario!(
    requests_that_are_on_their_way_at_a_stop_are_answered,
    howdah_only = "checks how Howdah stops",
    |s| s.notified().workers(1).php("hello.php", "echo 'hello';"),
    |site| {
        let request = Request::get("/hello.php");
        let (mut unused, mut used) = (site.conn(), site.conn());
        assert_eq!(used.exchange(&request).expect(200).text(), "hello");
        site.howdah().signal(Signal::TERM);
        let _ = site.howdah().manager().until("STOPPING=1");
        // The time that a retransmission may take.
        std::thread::sleep(Duration::from_millis(300));
        for conn in [&mut unused, &mut used] {
            let response = conn.exchange(&request).expect(200);
            assert_eq!((response.text(), response.header("connection")), ("hello".to_owned(), Some("close")));
        }
        assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
    },
);

scenario!(
    requests_that_were_sent_ahead_do_not_cost_the_last_response_of_a_stop,
    howdah_only = "checks how Howdah stops",
    |s| {
        let php = "require 'gate.php'; gate('g'); echo str_repeat('x', 400000);";
        // The thread that closes one connection has notified the other one too.
        s.http1("pipelined requests").notified().setting("threads", "1").workers(1).php("long.php", php)
    },
    |site| {
        let gate = site.gate("g");
        let (mut conn, mut idle) = (site.conn(), site.conn());
        let _ = idle.exchange(&Request::get("/nothing")).expect(404);
        conn.send(Request::get("/long.php").bytes());
        let held = gate.wait();
        conn.send(Request::get("/long.php").bytes());
        site.howdah().signal(Signal::TERM);
        let _ = site.howdah().manager().until("STOPPING=1");
        assert!(idle.closed_by_server());
        // The server has read the second request by now, but not this one: a close with unread bytes is a reset.
        conn.send(Request::get("/long.php").bytes());
        held.release();
        // By then some of it has reached the server's side of the connection.
        std::thread::sleep(Duration::from_millis(300));
        let response = conn.response("GET").expect(200);
        assert_eq!((response.text().len(), response.header("connection")), (400_000, Some("close")));
        drop(conn);
        assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
    },
);

scenario!(
    the_socket_of_a_unit_for_http_3_is_read,
    howdah_only = "LISTEN_FDS is Howdah's",
    |s| http3::http3(s).passes_sockets().workers(1),
    |site| {
        assert_eq!(http3::run(site, &["get", "/hello.php"])["text"], "hello");
        upgrade(site);
        site.howdah_mut().follow();
        assert_eq!(http3::run(site, &["get", "/hello.php"])["text"], "hello");
    },
);

scenario!(
    a_socket_without_an_address_is_reported,
    howdah_only = "LISTEN_FDS is Howdah's",
    |s| s.passes_sockets().workers(1).php("hello.php", "echo 'hello';"),
    |site| {
        assert_eq!(site.get_ok("/hello.php"), "hello");
        let log = site.howdah().log();
        let told = format!("the service manager passed the socket quic on 127.0.0.1:{} (UDP)", site.port());
        assert!(log.contains(&told), "{log}");
    },
);

fn inode(path: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).unwrap().ino()
}

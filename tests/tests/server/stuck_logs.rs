//! A log without a reader, or without room, costs only lines: the server keeps running, and it can be stopped.

use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::{PATIENCE, eventually, wait_for_exit};
use howdah_tests::site::Port;
use howdah_tests::{Conn, Request, Site, Target, scenario, script_scenario};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// More than a pipe and the queue can hold.
const FLOOD: &str = "for ($i = 0; $i < 6000; $i++) { error_log(str_repeat('x', 1000)); } echo 'logged';";

fn dropped(site: &Site, which: &str) -> u64 {
    let status = Conn::open(&site.howdah().admin()).exchange(&Request::get("/status").close()).json();
    status[which].as_u64().unwrap()
}

fn goes_on_and_stops(site: &mut Site) {
    assert_eq!(site.get_ok("/flood.php"), "logged");
    assert!(eventually(PATIENCE, || dropped(site, "error_log_dropped") > 0), "nothing was dropped");
    for _ in 0..20 {
        assert_eq!(site.get_ok("/fast.php"), "fast");
        assert_eq!(site.get_ok("/a.txt"), "static");
    }
    // Reopening the log does not block either.
    site.howdah().signal(rustix::process::Signal::USR1);
    assert_eq!(site.get_ok("/fast.php"), "fast");
    site.howdah().signal(rustix::process::Signal::TERM);
    assert_eq!(site.howdah_mut().wait(), Some(0));
}

/// A named pipe of the calling test. Opening it only for writing would block until there is a reader.
struct Pipe(PathBuf);

impl Pipe {
    fn path() -> PathBuf {
        std::env::temp_dir().join(format!("howdah-{}-{:?}", std::process::id(), std::thread::current().id()))
    }

    fn make() -> String {
        let path = Self::path();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        path.display().to_string()
    }

    /// Removes it at the end of the test.
    fn remove_later() -> Self {
        Self(Self::path())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

script_scenario!(
    an_error_log_without_a_reader_delays_nothing,
    howdah_only = "the log is Howdah's",
    |s| s
        .workers(1)
        .arg("--set")
        .arg(&format!("log.error={}", Pipe::make()))
        .file("a.txt", "static")
        .php("flood.php", FLOOD)
        .php("fast.php", "echo 'fast';"),
    |site| {
        let _pipe = Pipe::remove_later();
        goes_on_and_stops(site);
    },
);

scenario!(
    an_access_log_without_a_reader_delays_nothing,
    howdah_only = "the log is Howdah's",
    |s| s.workers(1).arg("--access-log").arg(&Pipe::make()).expect_log("cannot reopen a log").file("a.txt", "static"),
    |site| {
        let _pipe = Pipe::remove_later();
        let target = format!("/a.txt?{}", "x".repeat(15_000));
        let mut conn = site.conn();
        for _ in 0..600 {
            assert_eq!(conn.exchange(&Request::get(&target)).expect(200).text(), "static");
        }
        site.howdah().signal(rustix::process::Signal::USR1);
        assert_eq!(site.get_ok("/a.txt"), "static");
        site.howdah().signal(rustix::process::Signal::TERM);
        assert_eq!(site.howdah_mut().wait(), Some(0));
    },
);

script_scenario!(
    an_error_log_without_room_delays_nothing,
    howdah_only = "the log is Howdah's",
    |s| s
        .workers(1)
        .arg("--set")
        .arg("log.error=/dev/full")
        .file("a.txt", "static")
        .php("flood.php", FLOOD)
        .php("fast.php", "echo 'fast';"),
    goes_on_and_stops,
);

/// As with `howdah serve 2>&1 | something`, when `something` hangs.
#[test]
fn a_standard_error_that_is_not_read_delays_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("flood.php"), format!("<?php {FLOOD}")).unwrap();
    std::fs::write(root.join("a.txt"), "static").unwrap();
    let port = Port::hold();
    let mut server = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program())
        .args([
            "serve",
            &root.display().to_string(),
            "--workers",
            "1",
            "--listen",
            &format!("127.0.0.1:{}", port.number),
        ])
        .args(["--admin", &format!("unix:{}", dir.path().join("admin").display())])
        .args(["--php", &php_program().display().to_string()])
        .env("TMPDIR", dir.path())
        .env("HOWDAH_ALLOW_ROOT", "true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let target = Target::Tcp(([127, 0, 0, 1], port.number).into());
    assert!(eventually(PATIENCE, || Conn::try_open(&target).is_ok()), "the server does not listen");
    let ask = |path: &str| Conn::open(&target).exchange(&Request::get(path).close()).expect(200).text();
    for _ in 0..2 {
        assert_eq!(ask("/flood.php"), "logged");
        assert_eq!(ask("/a.txt"), "static");
    }
    howdah_tests::process::signal(server.id(), rustix::process::Signal::TERM);
    let ended = wait_for_exit(&mut server, PATIENCE);
    let _ = server.kill();
    assert_eq!(ended.and_then(|status| status.code()), Some(0), "the server does not stop");
}

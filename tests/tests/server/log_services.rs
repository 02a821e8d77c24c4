//! Logs that go to journald or syslog, or have no room: what arrives there, and that requests are served whatever happens to it.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, run};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A daemon that takes datagrams: journald, or syslog's.
struct Daemon {
    dir: tempfile::TempDir,
    got: Arc<Mutex<Vec<String>>>,
}

impl Daemon {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(dir.path().join("socket")).unwrap();
        let got = Arc::new(Mutex::new(Vec::new()));
        let entries = got.clone();
        // Ends with an empty datagram.
        std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 18];
            while let Ok(length @ 1..) = socket.recv(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                entries.lock().unwrap_or_else(PoisonError::into_inner).push(text);
            }
        });
        Self { dir, got }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("socket")
    }

    /// The entry with all of these texts, once it is there.
    fn entry(&self, texts: &[&str]) -> String {
        let find = || {
            let got = self.got.lock().unwrap_or_else(PoisonError::into_inner);
            got.iter().find(|entry| texts.iter().all(|text| entry.contains(text))).cloned()
        };
        assert!(eventually(PATIENCE, || find().is_some()), "no entry with {texts:?}: {:#?}", self.got);
        find().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = UnixDatagram::unbound().and_then(|socket| socket.send_to(&[], self.path()));
    }
}

#[test]
fn journald_gets_what_the_server_scripts_and_requests_say() {
    let daemon = Daemon::start();
    let target = format!("journald:{}", daemon.path().display());
    let setup = |s: howdah_tests::Setup| {
        s.workers(1)
            .arg("--error-log")
            .arg(&target)
            .arg("--access-log")
            .arg(&target)
            .php("says.php", "error_log('from the script'); echo 'said';")
    };
    run(Mode::Classic, setup, |site| {
        assert_eq!(site.get_ok("/says.php?a=1"), "said");
        let _ = daemon.entry(&["SYSLOG_IDENTIFIER=howdah\n", "PRIORITY=6\n", " serves "]);
        let of_script = daemon.entry(&["HOWDAH_TARGET=php\n", "from the script"]);
        assert!(of_script.contains("HOWDAH_POOL=default\n") && of_script.contains("HOWDAH_REQUEST="), "{of_script}");
        let of_request = daemon.entry(&["SYSLOG_IDENTIFIER=howdah-access\n", "HOWDAH_URI=/says.php?a=1\n"]);
        for field in
            ["HOWDAH_STATUS=200\n", "HOWDAH_METHOD=GET\n", "HOWDAH_REMOTE=127.0.0.1\n", "HOWDAH_POOL=default\n"]
        {
            assert!(of_request.contains(field), "{field}: {of_request}");
        }
        assert!(of_request.contains("MESSAGE=127.0.0.1 - - ["), "{of_request}");
    });
}

#[test]
fn syslog_gets_them_as_entries() {
    let daemon = Daemon::start();
    let target = format!("syslog:{}", daemon.path().display());
    let setup = |s: howdah_tests::Setup| {
        s.workers(1).arg("--error-log").arg(&target).arg("--access-log").arg(&target).file("a.txt", "static")
    };
    run(Mode::Classic, setup, |site| {
        assert_eq!(site.get_ok("/a.txt"), "static");
        assert!(daemon.entry(&[" serves "]).starts_with("<30>1 2"));
        assert!(daemon.entry(&["GET /a.txt"]).contains(" howdah-access "));
    });
}

#[test]
fn a_daemon_that_reads_nothing_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let _socket = UnixDatagram::bind(&path).unwrap();
    let target = format!("journald:{}", path.display());
    let setup = |s: howdah_tests::Setup| s.workers(1).arg("--access-log").arg(&target).file("a.txt", "static");
    run(Mode::Classic, setup, |site| {
        let target = format!("/a.txt?{}", "x".repeat(15_000));
        let mut conn = site.conn();
        for _ in 0..400 {
            assert_eq!(conn.exchange(&Request::get(&target)).expect(200).text(), "static");
        }
        site.howdah().signal(rustix::process::Signal::TERM);
        assert_eq!(site.howdah_mut().wait(), Some(0));
    });
}

#[test]
fn a_full_disk_is_said_once_and_so_is_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let target = path.display().to_string();
    let setup = |s: howdah_tests::Setup| {
        s.workers(1).arg("--access-log").arg(&target).expect_log("cannot write the access log").file("a.txt", "static")
    };
    run(Mode::Classic, setup, |site| {
        for _ in 0..20 {
            assert_eq!(site.get_ok("/a.txt"), "static");
        }
        let _ = site.wait_for_log(&["cannot write the access log"]);
        std::fs::remove_file(&path).unwrap();
        site.howdah().signal(rustix::process::Signal::USR1);
        let _ = site.wait_for_log(&["logs reopened"]);
        assert_eq!(site.get_ok("/a.txt?again"), "static");
        let log = site.wait_for_log(&["the access log can be written again; 20 lines were lost"]);
        assert_eq!(log.matches("cannot write the access log").count(), 1, "{log}");
        let written = || std::fs::read_to_string(&path).unwrap_or_default();
        assert!(eventually(PATIENCE, || written().contains("/a.txt?again")), "{}", written());
    });
}

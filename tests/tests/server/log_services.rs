//! Logs sent to journald or syslog, or without room: the received entries, and that requests are served whatever
//! happens to the log.

use howdah_skip::skip;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::site::Port;
use howdah_tests::{Mode, Request, run};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// A daemon that receives datagrams: journald's or syslog's.
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

    /// Waits for an entry with all of these texts.
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
fn journald_gets_messages_of_the_server_scripts_and_requests() {
    let daemon = Daemon::start();
    let target = format!("journald:{}", daemon.path().display());
    let setup = |s: howdah_tests::Setup| {
        s.workers(1)
            .arg("--set")
            .arg(&format!("log.error={target}"))
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
        s.workers(1)
            .arg("--set")
            .arg(&format!("log.error={target}"))
            .arg("--access-log")
            .arg(&target)
            .file("a.txt", "static")
    };
    run(Mode::Classic, setup, |site| {
        assert_eq!(site.get_ok("/a.txt"), "static");
        assert!(daemon.entry(&[" serves "]).starts_with("<30>howdah["));
        assert!(daemon.entry(&["GET /a.txt"]).starts_with("<30>howdah-access["));
    });
}

/// A line as parsed by a real daemon: program, process, severity and message, from its local socket, by UDP and by TCP.
#[test]
fn rsyslog_parses_entries_over_every_transport() {
    if !rsyslog_is_there() {
        skip!("rsyslog", "no rsyslogd");
    }
    let (udp, tcp) = (Port::hold(), Port::hold());
    let daemon = Rsyslog::start(udp.number, tcp.number);
    for target in [
        format!("syslog:{}", daemon.path("socket").display()),
        format!("syslog:udp://127.0.0.1:{}", udp.number),
        format!("syslog:tcp://127.0.0.1:{}", tcp.number),
    ] {
        let mark = target.replace([':', '/'], "-");
        let setup = |s: howdah_tests::Setup| {
            s.workers(1)
                .arg("--set")
                .arg(&format!("log.error={target}"))
                .arg("--access-log")
                .arg(&target)
                .php("says.php", "error_log(\"from\\nthe script of $_GET[mark]\");")
        };
        run(Mode::Classic, setup, |site| {
            assert_eq!(site.get(&format!("/says.php?mark={mark}")).status, 200);
            let of_script = daemon.line(&["the script of", &mark]);
            assert!(of_script.starts_with("howdah|daemon|info|"), "{of_script}");
            let of_request = daemon.line(&["howdah-access|", "GET /says.php", &mark]);
            assert!(of_request.starts_with("howdah-access|daemon|info|"), "{of_request}");
            let process = |line: &str| line.split('|').nth(3).map(str::to_owned);
            assert_eq!(process(&of_request), process(&of_script));
            assert_eq!(process(&of_request), Some(site.howdah().pid().to_string()), "{of_request}");
        });
    }
}

fn rsyslog_is_there() -> bool {
    Path::new(RSYSLOG).exists()
}

/// Debian installs it in a directory that is not in a normal user's PATH.
const RSYSLOG: &str = "/usr/sbin/rsyslogd";

struct Rsyslog {
    process: Child,
    dir: tempfile::TempDir,
}

impl Rsyslog {
    fn start(udp: u16, tcp: u16) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().display();
        let settings = format!(
            r#"global(workDirectory="{top}" maxMessageSize="64k")
            module(load="imuxsock" SysSock.Use="off")
            input(type="imuxsock" Socket="{top}/socket")
            module(load="imudp")
            input(type="imudp" address="127.0.0.1" port="{udp}")
            module(load="imtcp")
            input(type="imtcp" address="127.0.0.1" port="{tcp}")
            template(name="told" type="string" string="%programname%|%syslogfacility-text%|%syslogseverity-text%|%procid%|%msg%\n")
            action(type="omfile" file="{top}/log" template="told" flushOnTXEnd="on")
            "#
        );
        std::fs::write(dir.path().join("rsyslog.conf"), settings).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", RSYSLOG, "-n", "-i"]).arg(dir.path().join("pid"));
        command.arg("-f").arg(dir.path().join("rsyslog.conf"));
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut daemon = Self { process, dir };
        let serves = || {
            UnixDatagram::unbound().is_ok_and(|socket| socket.connect(daemon.path("socket")).is_ok())
                && std::net::TcpStream::connect(("127.0.0.1", tcp)).is_ok()
        };
        assert!(eventually(PATIENCE, serves), "rsyslogd does not serve: {:?}", daemon.process.try_wait());
        daemon
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Waits for a line with all of these texts.
    fn line(&self, texts: &[&str]) -> String {
        let find = || {
            let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
            log.lines().find(|line| texts.iter().all(|text| line.contains(text))).map(str::to_owned)
        };
        let log = || std::fs::read_to_string(self.path("log")).unwrap_or_default();
        assert!(eventually(PATIENCE, || find().is_some()), "no line with {texts:?}: {}", log());
        find().unwrap()
    }
}

impl Drop for Rsyslog {
    fn drop(&mut self) {
        howdah_tests::process::signal(self.process.id(), rustix::process::Signal::TERM);
        if howdah_tests::process::wait_for_exit(&mut self.process, PATIENCE).is_none() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

#[test]
fn a_stuck_syslog_daemon_delays_no_request() {
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
fn a_full_disk_and_its_end_are_logged_once() {
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
        let _ = site.wait_for_log(&["access log is writable again", "lines were lost"]);
        for once in ["cannot write the access log", "access log is writable again"] {
            assert_eq!(site.log().matches(once).count(), 1, "{once}: {}", site.log());
        }
        let written = || std::fs::read_to_string(&path).unwrap_or_default();
        assert!(eventually(PATIENCE, || written().contains("/a.txt?again")), "{}", written());
    });
}

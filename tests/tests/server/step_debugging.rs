//! Step debugging with Xdebug: a listening debugger gets a session for each request, stops at its breakpoint, reads a
//! variable and continues the request, in every mode that runs one request at a time.

use howdah_tests::process::PATIENCE;
use howdah_tests::{Mode, Request, Setup, Site, patience, run};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// A stop in the debugger: the session's number, the file, and `$n` there.
type Seen = (usize, String, String);

/// A debugger for the DBGp protocol. It sets one breakpoint in each session.
struct Debugger {
    port: u16,
    seen: Receiver<Seen>,
}

/// One message from PHP: its length, NUL, XML, NUL.
pub(super) fn message(stream: &mut TcpStream) -> Option<String> {
    let mut part = || {
        let mut bytes = Vec::new();
        let mut byte = [0];
        while stream.read(&mut byte).ok()? == 1 && byte[0] != 0 {
            bytes.push(byte[0]);
        }
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
    };
    let _length = part()?;
    part()
}

pub(super) fn ask(stream: &mut TcpStream, command: &str) -> Option<String> {
    stream.write_all(format!("{command}\0").as_bytes()).ok()?;
    message(stream)
}

fn attribute(xml: &str, name: &str) -> String {
    let at = xml.find(&format!("{name}=\"")).map(|at| at + name.len() + 2);
    at.and_then(|at| xml[at..].split('"').next()).unwrap_or_default().to_owned()
}

/// Runs a session to its end, with a breakpoint in the third line of `work.php`. `None` if PHP has closed the
/// connection.
fn session(mut stream: TcpStream, seen: impl Fn(&str, &str)) -> Option<()> {
    let init = message(&mut stream).filter(|init| init.contains("<init"))?;
    // Paths built by PHP may contain `..`; the file's does not.
    let main = attribute(&init, "fileuri");
    let main = std::fs::canonicalize(main.trim_start_matches("file://")).ok()?;
    let file = main.with_file_name("work.php");
    ask(&mut stream, &format!("breakpoint_set -i 1 -t line -f file://{} -n 3", file.display()))?;
    let mut answer = ask(&mut stream, "run -i 2")?;
    while attribute(&answer, "status") == "break" {
        let at = attribute(&answer, "filename");
        let value = ask(&mut stream, "property_get -i 3 -n $n")?;
        let value = value.split("<![CDATA[").nth(1).and_then(|v| v.split("]]>").next()).unwrap_or("none");
        seen(at.rsplit('/').next().unwrap_or_default(), value);
        answer = ask(&mut stream, "run -i 4")?;
    }
    // The script's end, where Xdebug waits for the last command.
    ask(&mut stream, "stop -i 5").map(drop)
}

impl Debugger {
    /// Starts listening. The thread lives as long as the test program.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, seen) = channel();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let sender = sender.clone();
                let seen = move |file: &str, n: &str| drop(sender.send((number, file.to_owned(), n.to_owned())));
                std::thread::spawn(move || session(stream, seen));
            }
        });
        Self { port, seen }
    }

    /// Number of the session that has stopped in request `n`, which is not 0: the harness's own requests have no
    /// number.
    fn session_of(&self, n: usize) -> usize {
        let mut seen = std::iter::repeat_with(|| self.seen.recv_timeout(patience(PATIENCE)));
        let seen = seen.find(|seen| seen.as_ref().map_or(true, |(.., value)| value != "0")).unwrap();
        let (session, file, value) = seen.unwrap_or_else(|e| panic!("no session for request {n}: {e}"));
        assert_eq!((file.as_str(), value), ("work.php", n.to_string()));
        session
    }
}

/// The file in which the debugger stops, at its third line.
const CODE: &str = include_str!("php/step_debugging/code.php");

fn debugged(setup: Setup, port: u16, start: &str) -> Setup {
    setup
        .xdebug()
        .workers(1)
        .ini("xdebug.mode", "debug")
        .ini("xdebug.start_with_request", start)
        // Otherwise Xdebug gives up after a fifth of a second.
        .ini("xdebug.connect_timeout_ms", "60000")
        .ini("xdebug.client_host", "127.0.0.1")
        .ini("xdebug.client_port", &port.to_string())
        .ini("opcache.file_update_protection", "0")
        .file("work.php", CODE)
}

/// Each request with the trigger has its own session, others have none.
fn has_a_session_for_each_request(mode: Mode, start: &str, application: impl Fn(Setup) -> Setup) {
    let debugger = Debugger::start();
    run(
        mode,
        |s| application(debugged(s, debugger.port, start)),
        |site: &mut Site| {
            let mut sessions = HashSet::new();
            for n in 1..=4 {
                assert_eq!(ask_for_debugging(site, n), format!("worked {}", 2 * n));
                assert!(sessions.insert(debugger.session_of(n)), "request {n} has the session of another one");
                if start == "trigger" {
                    assert_eq!(site.get_ok("/index.php?n=7"), "worked 14");
                    assert!(debugger.seen.try_recv().is_err(), "a session without a request for it");
                }
            }
        },
    );
}

fn ask_for_debugging(site: &Site, n: usize) -> String {
    let request = Request::get(&format!("/index.php?n={n}")).header("Cookie", "XDEBUG_SESSION=test");
    site.send(&request).expect(200).text()
}

const SCRIPT: &str = "require_once __DIR__ . '/work.php'; echo work((int) ($_GET['n'] ?? 0));";

fn classic(setup: Setup) -> Setup {
    setup.php("index.php", SCRIPT)
}

fn worker(setup: Setup) -> Setup {
    setup.script("worker.php").file("worker.php", include_str!("php/step_debugging/worker.php"))
}

fn boot_file(setup: Setup, boot: &str) -> Setup {
    setup.boot("boot.php").file("boot.php", boot).php("index.php", SCRIPT)
}

#[test]
fn classic_mode_is_debugged() {
    has_a_session_for_each_request(Mode::Classic, "yes", classic);
    has_a_session_for_each_request(Mode::Classic, "trigger", classic);
}

/// Xdebug cannot end a session before the script ends, which in worker mode serves all requests.
#[test]
fn worker_mode_has_one_session_from_the_first_request_that_asks() {
    let debugger = Debugger::start();
    run(
        Mode::Worker,
        |s| worker(debugged(s, debugger.port, "trigger")),
        |site: &mut Site| {
            assert_eq!(site.get_ok("/index.php?n=7"), "worked 14");
            assert!(debugger.seen.try_recv().is_err(), "a session without a request for it");
            assert_eq!(ask_for_debugging(site, 1), "worked 2");
            let session = debugger.session_of(1);
            for n in 2..=4 {
                assert_eq!(site.get_ok(&format!("/index.php?n={n}")), format!("worked {}", 2 * n));
                assert_eq!(debugger.session_of(n), session);
            }
        },
    );
}

#[test]
fn snapshot_mode_is_debugged_in_a_worker_script() {
    has_a_session_for_each_request(Mode::Snapshot, "yes", worker);
    has_a_session_for_each_request(Mode::Snapshot, "trigger", worker);
}

#[test]
fn snapshot_mode_is_debugged_behind_a_boot_file() {
    has_a_session_for_each_request(Mode::Snapshot, "yes", |s| {
        boot_file(s, "<?php require_once __DIR__ . '/work.php';")
    });
    has_a_session_for_each_request(Mode::Snapshot, "trigger", |s| {
        boot_file(s, "<?php require_once __DIR__ . '/work.php';")
    });
}

#[test]
fn snapshot_mode_is_debugged_behind_howdah_snapshot() {
    let boot = "<?php require_once __DIR__ . '/work.php'; Howdah\\snapshot();";
    has_a_session_for_each_request(Mode::Snapshot, "trigger", |s| boot_file(s, boot));
}

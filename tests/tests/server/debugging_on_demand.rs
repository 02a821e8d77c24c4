//! Step debugging under `howdah dev`: requests with a debugging trigger run in a pool with Xdebug, which connects to
//! the debugger; all others run without Xdebug, and the debugger does not see them.

use super::step_debugging::{ask, message};
use howdah_tests::process::PATIENCE;
use howdah_tests::{Mode, Request, Response, Setup, Site, patience, run};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{scope, spawn};

/// A debugger for the DBGp protocol.
struct Debugger {
    port: u16,
    /// Each connection of Xdebug, after its first message.
    sessions: Receiver<Session>,
}

/// A debugging session, in which PHP waits before the script's first line.
struct Session {
    stream: TcpStream,
    init: String,
}

impl Debugger {
    /// Starts listening. The thread lives as long as the test program.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, sessions) = channel();
        spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let init = message(&mut stream).unwrap_or_default();
                drop(sender.send(Session { stream, init }));
            }
        });
        Self { port, sessions }
    }

    fn next(&self) -> Session {
        let session = self.sessions.recv_timeout(patience(PATIENCE)).unwrap_or_else(|e| panic!("no session: {e}"));
        assert!(session.init.contains("<init "), "{}", session.init);
        session
    }

    fn hears_nothing(&self) -> bool {
        self.sessions.try_recv().is_err()
    }

    /// Sends a request that is debugged; `meanwhile` runs while the request waits in its first line.
    fn debug(&self, site: &Site, request: &Request, meanwhile: impl FnOnce(&Session)) -> Response {
        scope(|threads| {
            let response = threads.spawn(|| site.send(request));
            let session = self.next();
            meanwhile(&session);
            session.go_on();
            response.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
        })
    }
}

impl Session {
    /// Continues the script to its end.
    fn go_on(mut self) {
        let end = ask(&mut self.stream, "run -i 1").unwrap_or_default();
        assert!(end.contains("status=\"stopping\""), "{end}");
        let _ = ask(&mut self.stream, "stop -i 2");
    }
}

const WHICH: &str = "echo extension_loaded('xdebug') ? 'with' : 'without';";

/// `howdah dev` with Xdebug that connects to this debugger.
fn debugging(setup: Setup, debugger: &Debugger) -> Setup {
    unarmed(setup.xdebug(), debugger.port)
}

/// As `debugging`, for an Xdebug that the scenario loads itself.
fn unarmed(setup: Setup, port: u16) -> Setup {
    setup
        .developing()
        .more_processes(1)
        .time("shrink_after", "1s")
        .ini("xdebug.client_host", "127.0.0.1")
        .ini("xdebug.client_port", &port.to_string())
        // Otherwise Xdebug gives up after a fifth of a second.
        .ini("xdebug.connect_timeout_ms", "60000")
}

fn with_cookie(path: &str) -> Request {
    Request::get(path).header("Cookie", "theme=dark; XDEBUG_SESSION=ide")
}

#[test]
fn requests_that_ask_for_it_are_debugged_and_others_run_without_xdebug() {
    let debugger = Debugger::start();
    run(
        Mode::Classic,
        |s| debugging(s, &debugger).php("index.php", WHICH),
        |site| {
            let line = "Step debugging: a request with XDEBUG_SESSION or XDEBUG_TRIGGER";
            assert_eq!(site.log().matches(line).count(), 1, "{}", site.log());
            let triggers = [
                with_cookie("/index.php"),
                Request::get("/index.php").header("Cookie", "XDEBUG_TRIGGER=1"),
                Request::get("/?a=b&XDEBUG_SESSION=ide"),
                Request::get("/any/page?XDEBUG_TRIGGER"),
                Request::get("/index.php?XDEBUG_SESSION_START=ide"),
            ];
            for request in &triggers {
                assert_eq!(site.get_ok("/index.php"), "without");
                let similar = Request::get("/?x=XDEBUG_SESSION").header("Cookie", "MY_XDEBUG_SESSION=1");
                assert_eq!(site.send(&similar).expect(200).text(), "without");
                assert!(debugger.hears_nothing(), "a session without a request for it");
                let seen = |session: &Session| assert!(session.init.contains("/index.php\""), "{}", session.init);
                assert_eq!(debugger.debug(site, request, seen).expect(200).text(), "with", "{request:?}");
            }
            assert_eq!(site.get_ok("/index.php"), "without");
            assert!(debugger.hears_nothing());
        },
    );
}

/// A breakpoint holds a request for longer than any other request may take; others continue meanwhile.
#[test]
fn no_time_limit_ends_a_debugged_request() {
    let debugger = Debugger::start();
    run(
        Mode::Classic,
        |s| {
            debugging(s, &debugger)
                .php("index.php", WHICH)
                .php("sleeps.php", "sleep(60);")
                .setting("deadline", "\"1s\"")
                .setting("rule", "[{ path = \"/index.php\", deadline = \"1s\" }]")
                .allow_log("worker killed")
                .allow_log("request failed")
        },
        |site| {
            let response = debugger.debug(site, &with_cookie("/index.php"), |_| {
                // It began later, and has exceeded its time limit.
                assert_eq!(site.get("/sleeps.php").status, 504);
                assert_eq!(site.get_ok("/index.php"), "without");
            });
            assert_eq!(response.expect(200).text(), "with");
        },
    );
}

/// Errors have pages there too.
#[test]
fn a_debugged_request_that_fails_has_its_error_page() {
    let debugger = Debugger::start();
    run(
        Mode::Classic,
        |s| debugging(s, &debugger).allow_log("LogicException").php("index.php", "throw new LogicException('no way');"),
        |site| {
            let request = with_cookie("/index.php").header("Accept", "text/html");
            let page = debugger.debug(site, &request, |_| {}).expect(500).text();
            assert!(page.contains("class=\"it\"") && page.contains("no way"), "{page}");
        },
    );
}

/// If the application has only a worker script, each debugged request has a separate worker.
#[test]
fn requests_of_a_worker_script_are_debugged_one_by_one() {
    let debugger = Debugger::start();
    run(
        Mode::Worker,
        |s| {
            debugging(s, &debugger)
                .script("worker.php")
                .file("worker.php", include_str!("php/debugging_on_demand/worker.php"))
                .allow_log("out of workers")
        },
        |site| {
            for _ in 0..3 {
                assert_eq!(site.get_ok("/page"), "without");
                assert!(debugger.hears_nothing(), "a session without a request for it");
                assert_eq!(debugger.debug(site, &with_cookie("/page"), |_| {}).expect(200).text(), "with");
            }
        },
    );
}

/// As installed by `apt` and `pecl`: in PHP's extension directory, and not named in any configuration.
#[test]
fn xdebug_is_found_in_the_directory_of_extensions() {
    let mut directory = String::new();
    run(
        Mode::Classic,
        |s| s.php("index.php", "echo ini_get('extension_dir');"),
        |site| {
            directory = site.get_ok("/index.php");
        },
    );
    let Some(unpacked) = std::env::var_os("HOWDAH_EXTENSIONS").map(|dir| Path::new(&dir).join("xdebug.so")) else {
        howdah_skip::skip!("xdebug", "`make test` unpacks its package");
    };
    if !unpacked.exists() {
        howdah_skip::skip!("xdebug", "`make test` unpacks its package where the distribution has one");
    }
    let extensions = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(&directory).unwrap().flatten() {
        symlink(file.path(), extensions.path().join(file.file_name())).unwrap();
    }
    // It may be installed on this machine.
    let _ = symlink(unpacked, extensions.path().join("xdebug.so"));
    let debugger = Debugger::start();
    run(
        Mode::Classic,
        |s| {
            unarmed(s, debugger.port)
                .ini("extension_dir", &extensions.path().display().to_string())
                .php("index.php", WHICH)
        },
        |site| {
            assert_eq!(site.get_ok("/index.php"), "without");
            assert_eq!(debugger.debug(site, &with_cookie("/index.php"), |_| {}).expect(200).text(), "with");
        },
    );
}

#[test]
fn where_xdebug_is_missing_one_line_says_how_to_get_it() {
    run(
        Mode::Classic,
        |s| s.developing().php("index.php", WHICH),
        |site| {
            let log = site.log();
            let lines: Vec<&str> = log.lines().filter(|line| line.contains("tep debugging")).collect();
            // It may be installed on this machine.
            let installed = lines.iter().any(|line| line.starts_with("Step debugging: a request with "));
            let advice = "No step debugging: PHP has no Xdebug (`apt install php-xdebug` or `pecl install xdebug`).";
            assert!(lines.len() == 1 && (installed || lines == [advice]), "{log}");
            let which = if installed { "with" } else { "without" };
            assert_eq!(site.send(&with_cookie("/index.php")).expect(200).text(), which);
        },
    );
}

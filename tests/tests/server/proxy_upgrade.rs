//! Proxied connections that switch protocols: WebSocket with an independent library, and bytes written by hand.

use super::proxy::behind;
use howdah_skip::skip;
use howdah_tests::process::{PATIENCE, eventually, signal};
use howdah_tests::site::Port;
use howdah_tests::upstream::{field, switched};
use howdah_tests::{Conn, Mode, Request, Setup, Site, Upstream, run};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Debian's Python, which can import Debian's packages.
pub(super) const PYTHON: &str = "/usr/bin/python3";

pub(super) fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/server/websocket").join(name)
}

pub(super) fn has_websockets() -> bool {
    Command::new(PYTHON).args(["-c", "import websockets"]).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// An echo server that ends when it is dropped.
pub(super) struct Echo {
    process: Child,
    pub(super) port: Port,
}

impl Echo {
    pub(super) fn start() -> Self {
        let port = Port::hold();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", PYTHON]).arg(script("echo.py")).arg(port.number.to_string());
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "listening\n");
        Self { process, port }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        signal(self.process.id(), Signal::KILL);
        let _ = self.process.wait();
    }
}

pub(super) fn upgraded(site: &Site) -> u64 {
    let status = site.howdah().status();
    status["connections"]["upgraded"].as_u64().unwrap()
}

#[test]
fn websocket_messages_come_back_whole_and_in_order() {
    talk(|s| s, |site| format!("ws://127.0.0.1:{}/ws/", site.port()));
}

#[test]
fn websocket_messages_come_back_over_tls() {
    talk(|s| s.https(), |site| format!("wss://localhost:{}/ws/", site.port()));
}

fn talk(set: impl FnOnce(Setup) -> Setup, url: impl FnOnce(&Site) -> String) {
    if !has_websockets() {
        skip!("python3-websockets", "the WebSocket peer");
    }
    let echo = Echo::start();
    let route = format!("[{{ path = \"/ws/*\", proxy = \"http://127.0.0.1:{}\" }}]", echo.port.number);
    run(
        Mode::Classic,
        |s| set(s.workers(1).setting("rule", &route)),
        |site| {
            let mut command = Command::new(PYTHON);
            command.arg(script("talk.py")).arg(url(site)).arg(site.place().top.join("site.pem"));
            let output = command.output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "all came back\n", "{errors}");
            assert!(eventually(PATIENCE, || upgraded(site) == 0));
            assert_eq!(site.get_ok("/ready.txt"), "ready\n");
        },
    );
}

const ASK: &str = "GET /p/x HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

pub(super) const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// A server that switches protocols, sends something at once, echoes each line, and ends at `bye`.
pub(super) fn lines() -> Upstream {
    Upstream::start(|peer| {
        if let Some(head) = peer.head() {
            peer.send(format!("{}welcome\n", switched(&head)));
            loop {
                let line = peer.until("\n");
                if line.is_empty() || line == "bye\n" || !line.ends_with('\n') {
                    return;
                }
                peer.send(line);
            }
        }
    })
}

fn line(conn: &mut Conn) -> String {
    let mut line = String::new();
    while let Some(byte) = conn.raw_byte() {
        line.push(char::from(byte));
        if byte == b'\n' {
            break;
        }
    }
    line
}

#[test]
fn data_that_both_sides_send_ahead_arrives() {
    let upstream = lines();
    behind(&upstream, |site| {
        let mut conn = site.conn();
        conn.send(format!("{ASK}early\n"));
        let head = conn.next_head();
        assert_eq!(
            (head.status, head.header("upgrade"), head.header("connection")),
            (101, Some("websocket"), Some("upgrade"))
        );
        assert_eq!(head.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert_eq!((head.header("content-length"), head.header("transfer-encoding")), (None, None));
        assert_eq!((line(&mut conn).as_str(), line(&mut conn).as_str()), ("welcome\n", "early\n"));
        let asked = upstream.last_head();
        assert_eq!((field(&asked, "connection"), field(&asked, "upgrade")), (Some("upgrade"), Some("WebSocket")));
        assert_eq!(field(&asked, "sec-websocket-version"), Some("13"));
        assert_eq!(upgraded(site), 1);
        conn.send("later\n");
        assert_eq!(line(&mut conn), "later\n");
        conn.send("bye\n");
        assert!(conn.closed_by_server());
        assert!(eventually(PATIENCE, || upgraded(site) == 0));
    });
}

#[test]
fn data_that_a_slow_client_has_not_taken_does_not_wait_in_tls() {
    let upstream = Upstream::start(|peer| {
        if peer.head().is_some() {
            peer.send(SWITCH);
            while let Ok(length) = peer.until("\n").trim_end().parse::<usize>() {
                peer.send(format!("{}\n", "x".repeat(length)));
            }
        }
    });
    let route = upstream.route();
    run(
        Mode::Classic,
        |s| s.workers(1).https().setting("rule", &route),
        |site| {
            let mut conn = site.conn();
            conn.shrink_receive_buffer();
            conn.send(ASK);
            assert_eq!(conn.next_head().status, 101);
            // Data that the socket does not take at once must be sent later without further data from either side.
            for length in (1..5).map(|number| number * 40_021) {
                conn.send(format!("{length}\n"));
                assert_eq!(line(&mut conn).len(), length + 1);
            }
            drop(conn);
            upstream.wait_until_alone();
        },
    );
}

#[test]
fn when_the_client_of_an_upgraded_connection_leaves_its_server_is_notified() {
    let upstream = lines();
    behind(&upstream, |site| {
        for how in ["reset", "close"] {
            let mut conn = site.conn();
            conn.send(ASK);
            assert_eq!(conn.next_head().status, 101);
            assert_eq!(line(&mut conn), "welcome\n");
            if how == "reset" {
                conn.reset()
            } else {
                drop(conn)
            }
            upstream.wait_until_alone();
        }
    });
}

#[test]
fn a_server_that_does_not_switch_protocols_responds_as_usual() {
    let upstream = Upstream::saying("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
    behind(&upstream, |site| {
        let mut conn = site.conn();
        for _ in 0..2 {
            conn.send(ASK);
            assert_eq!(conn.response("GET").expect(403).text(), "no");
        }
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn an_unrequested_protocol_change_is_a_fault() {
    let upstream = Upstream::start(|peer| {
        if peer.head().is_some() {
            peer.send(SWITCH);
            peer.wait_for_end();
        }
    });
    behind(&upstream, |site| {
        assert_eq!(site.get("/p/").status, 502);
        // With a body, or over HTTP/1.0, there is no switch either.
        assert_eq!(
            site.send(&Request::post("/p/", "a/b", "x").header("Connection", "upgrade").header("Upgrade", "websocket"))
                .status,
            502
        );
        let mut conn = site.conn();
        conn.send(ASK.replace("HTTP/1.1", "HTTP/1.0"));
        assert_eq!(conn.response("GET").status, 502);
        let _ = site.wait_for_log(&["it switches to a protocol that was not requested"]);
    });
}

#[test]
fn a_stop_ends_upgraded_connections_without_waiting_for_the_grace_time() {
    let upstream = lines();
    let route = upstream.route();
    run(
        Mode::Classic,
        |s| s.workers(1).setting("rule", &route).setting("grace", "\"1h\""),
        |site| {
            let mut conn = site.conn();
            conn.send(ASK);
            assert_eq!(conn.next_head().status, 101);
            assert_eq!(line(&mut conn), "welcome\n");
            site.howdah().signal(Signal::TERM);
            assert_eq!(site.howdah_mut().wait(), Some(0));
            assert!(conn.closed_by_server());
            upstream.wait_until_alone();
        },
    );
}

#[test]
fn an_upgraded_connection_that_is_silent_for_too_long_is_ended() {
    let upstream = lines();
    let proxy = format!("{{ to = \"{}\", response_timeout = \"200ms\" }}", upstream.url());
    let route = "[{ path = \"/p/*\", proxy = \"app\" }]";
    run(
        Mode::Classic,
        |s| s.workers(1).time("proxy.pause", "200ms").setting("proxy.app", &proxy).setting("rule", route),
        |site| {
            let mut conn = site.conn();
            conn.send(ASK);
            assert_eq!(conn.next_head().status, 101);
            assert_eq!(line(&mut conn), "welcome\n");
            assert!(conn.closed_by_server());
            upstream.wait_until_alone();
        },
    );
}

//! WebSocket over HTTP/2 (RFC 8441): an extended CONNECT from a client that shares no code with the server (Python's
//! h2) becomes an HTTP/1.1 upgrade to the proxied server.

use super::proxy_upgrade::{Echo, PYTHON, SWITCH, lines, script, upgraded};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::upstream::{field, switched};
use howdah_tests::{Mode, Setup, Site, Upstream, run};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A site over TLS with the files for the client, and everything below `/p/` proxied.
fn behind(upstream: &Upstream, set: impl FnOnce(Setup) -> Setup, body: impl FnOnce(&mut Site)) {
    let proxy = format!("{{ to = \"{}\" }}", upstream.url());
    let routes = "[{ path = \"/p/*\", proxy = \"app\" }]";
    run(
        Mode::Classic,
        |s| set(client(s).setting("proxy.app", &proxy).setting("rule", routes)),
        |site| {
            body(site);
            upstream.cut();
        },
    );
}

/// As `behind`, without a proxied server.
pub(super) fn client(setup: Setup) -> Setup {
    let setup = setup.workers(1).https().php("seen.php", "touch(__DIR__ . '/ran'); echo 'ran';").file("a.txt", "a");
    let has = Command::new(PYTHON).args(["-c", "import h2, websockets"]).stderr(Stdio::null()).status();
    match has.is_ok_and(|status| status.success()) {
        true => setup,
        false => setup.lacks("python3-h2", "the client of HTTP/2 and WebSocket"),
    }
}

pub(super) struct ConnectClient {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl ConnectClient {
    pub(super) fn start(site: &Site, arguments: &[&str]) -> Self {
        let mut command = Command::new(PYTHON);
        command.arg(script("over_http2.py")).arg(site.port().to_string()).arg(site.place().top.join("site.pem"));
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    pub(super) fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(super) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub(super) fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success(), "{text}");
        text.trim_end().to_owned()
    }
}

pub(super) fn said(site: &Site, arguments: &[&str]) -> String {
    ConnectClient::start(site, arguments).end()
}

#[test]
fn messages_of_several_streams_arrive_whole_and_in_order() {
    if !super::proxy_upgrade::has_websockets() {
        howdah_skip::skip!("python3-websockets", "the WebSocket peer");
    }
    let echo = Echo::start();
    let rule = format!("[{{ path = \"/p/*\", proxy = \"http://127.0.0.1:{}\" }}]", echo.port.number);
    run(
        Mode::Classic,
        |s| client(s).setting("rule", &rule),
        |site| {
            assert_eq!(said(site, &["talk", "/p/"]), "all came back");
            assert!(eventually(PATIENCE, || upgraded(site) == 0));
            assert_eq!(site.get_ok("/a.txt"), "a");
        },
    );
}

/// A server that completes the WebSocket handshake with this value, whatever the request.
fn accepting(accept: &'static str) -> Upstream {
    Upstream::start(move |peer| {
        if peer.head().is_some() {
            peer.send(SWITCH.replace("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", accept));
            peer.wait_for_end();
        }
    })
}

#[test]
fn the_upstream_server_sees_an_http_1_upgrade_with_a_separate_handshake() {
    let upstream = accepting("AAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    behind(
        &upstream,
        |s| s,
        |site| {
            // Its response does not match the request's key.
            assert_eq!(said(site, &["ask", "/p/x?y=1", "websocket"]), "502");
            let head = upstream.last_head();
            assert!(head.starts_with("GET /p/x?y=1 HTTP/1.1\r\n"), "{head}");
            assert_eq!((field(&head, "connection"), field(&head, "upgrade")), (Some("upgrade"), Some("websocket")));
            assert_eq!(field(&head, "sec-websocket-version"), Some("13"));
            assert_eq!(field(&head, "sec-websocket-key").unwrap().len(), 24);
            assert_eq!(field(&head, "host"), Some(&*format!("localhost:{}", site.port())));
            assert_eq!(field(&head, "origin"), Some("https://localhost"));
            let _ = site.wait_for_log(&["its response does not match the WebSocket handshake"]);
        },
    );
}

#[test]
fn handlers_that_speak_only_http_refuse_other_protocols() {
    let upstream = Upstream::saying("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno");
    behind(
        &upstream,
        |s| s,
        |site| {
            assert_eq!(said(site, &["settings", "/"]), "1");
            assert_eq!(said(site, &["ask", "/seen.php", "websocket"]), "405");
            assert_eq!(said(site, &["ask", "/a.txt", "websocket"]), "405");
            assert_eq!(said(site, &["ask", "/none", "websocket"]), "404");
            assert!(!site.place().root.join("ran").exists());
            // A protocol that the proxy does not permit, and a server that does not switch to a permitted one.
            assert_eq!(said(site, &["ask", "/p/", "h2c"]), "501");
            assert_eq!(upstream.requests(), 0);
            assert_eq!(said(site, &["ask", "/p/", "websocket"]), "501");
            assert_eq!(upstream.requests(), 1);
        },
    );
}

#[test]
fn a_refusal_of_the_upgrade_reaches_the_client() {
    let upstream = Upstream::saying("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
    behind(&upstream, |s| s, |site| assert_eq!(said(site, &["ask", "/p/", "websocket"]), "403"));
}

#[test]
fn without_a_proxy_extended_connect_is_not_offered() {
    run(Mode::Classic, client, |site| {
        assert_eq!(said(site, &["settings", "/"]), "0");
        assert_eq!(said(site, &["ask", "/p/", "websocket"]), "reset PROTOCOL_ERROR");
    });
}

#[test]
fn each_side_is_notified_of_the_others_end() {
    let upstream = lines();
    behind(
        &upstream,
        |s| s,
        |site| {
            // The client resets the stream: the server's connection ends.
            let mut talk = ConnectClient::start(site, &["reset", "/p/"]);
            assert_eq!(talk.line(), "200 welcome");
            upstream.wait_until_alone();
            drop(talk.child.stdin.take());
            let _ = talk.end();
            // The server's connection breaks: the client's stream ends.
            let mut talk = ConnectClient::start(site, &["stay", "/p/"]);
            assert_eq!(talk.line(), "200 welcome");
            assert_eq!(upgraded(site), 1);
            upstream.cut();
            assert_eq!(talk.end(), "end");
            assert!(eventually(PATIENCE, || upgraded(site) == 0));
        },
    );
}

#[test]
fn a_stop_ends_streams_without_waiting_for_the_grace_time() {
    let upstream = lines();
    behind(
        &upstream,
        |s| s.setting("grace", "\"1h\""),
        |site| {
            let mut talk = ConnectClient::start(site, &["stay", "/p/"]);
            assert_eq!(talk.line(), "200 welcome");
            site.howdah().signal(Signal::TERM);
            assert_eq!(site.howdah_mut().wait(), Some(0));
            assert_eq!(talk.end(), "closed");
            upstream.wait_until_alone();
        },
    );
}

#[test]
fn a_client_without_room_is_disconnected_and_holds_no_memory() {
    let upstream = Upstream::start(|peer| {
        if let Some(head) = peer.head() {
            peer.send(switched(&head));
            peer.send("welcome\n");
            while peer.send([b'x'; 65536]) {}
        }
    });
    behind(
        &upstream,
        |s| s.setting("http.client_timeout", "\"1s\""),
        |site| {
            let mut talk = ConnectClient::start(site, &["lazy", "/p/"]);
            assert_eq!(talk.line(), "200 welcome");
            assert_eq!(talk.end(), "reset CANCEL");
            upstream.wait_until_alone();
        },
    );
}

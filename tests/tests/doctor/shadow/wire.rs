//! Requests and responses of every kind on their way through the doctor.

use super::{ENOUGH, Shadow, shop};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::upstream::{Peer, field};
use howdah_tests::{Conn, Request, Upstream};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tempfile::TempDir;

const PIECE: usize = 1 << 20;
/// Number of pieces of bodies that must not be kept.
const LARGE: usize = 64;
/// Maximum growth of the proxy by them, in KiB.
const GROWTH: u64 = 24 << 10;

/// An application whose front page is the one of `respond`.
fn home() -> TempDir {
    let top = shop("root = \".\"\nindex = [\"index.php\"]\n[php.ini]\ndefault_charset = \"\"\nexpose_php = \"0\"\n");
    fs::write(top.path().join("shop/index.php"), "<?php echo 'home';").unwrap();
    top
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Reads up to and including this text, without regard to framing.
fn raw_until(conn: &mut Conn, end: &str) -> String {
    let mut seen = Vec::new();
    while !seen.ends_with(end.as_bytes()) {
        match conn.raw_byte() {
            Some(byte) => seen.push(byte),
            None => panic!("the connection ended before {end:?}: {:?}", String::from_utf8_lossy(&seen)),
        }
    }
    String::from_utf8(seen).unwrap()
}

/// Peak memory of a process in KiB.
fn peak(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The old server of the following test: one kind of response for each path.
fn respond(peer: &mut Peer, goes_on: &AtomicBool, left: &AtomicBool) {
    while let Some(head) = peer.head() {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        match path.as_str() {
            "/big" => {
                peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\nfirst", LARGE * PIECE));
                while !goes_on.load(SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                peer.send(vec![b'x'; PIECE - 5]);
                (1..LARGE).all(|_| peer.send(vec![b'x'; PIECE]));
            }
            "/upload" => {
                let length: usize = field(&head, "content-length").unwrap().parse().unwrap();
                let half = peer.bytes(length / 2).len();
                goes_on.store(true, SeqCst);
                let body = half + peer.bytes(length - half).len();
                peer.send(format!(
                    "HTTP/1.1 201 Created\r\nX-Case: Kept\r\nContent-Length: 0\r\nX-Got: {body}\r\n\r\n"
                ));
            }
            "/switch" => {
                peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
                for _ in 0..2 {
                    let said = peer.until("\n");
                    peer.send(format!("echo {said}"));
                }
                peer.wait_for_end();
                left.store(true, SeqCst);
                return;
            }
            "/endless" | "/never" => {
                if path == "/endless" {
                    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
                }
                peer.wait_for_end();
                left.store(true, SeqCst);
                return;
            }
            "/once" => {
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
                if !head.starts_with("HEAD") {
                    peer.send("once");
                }
                return;
            }
            _ => {
                let is_compressed = field(&head, "accept-encoding") == Some("gzip");
                let (body, coding) =
                    if is_compressed { (gzip(b"home"), "Content-Encoding: gzip\r\n") } else { (b"home".to_vec(), "") };
                let length = body.len();
                peer.send(format!(
                    "HTTP/1.1 200 OK\r\n{coding}Content-Length: {length}\r\nContent-Type: text/html\r\n\r\n"
                ));
                if !head.starts_with("HEAD") {
                    peer.send(body);
                }
            }
        }
    }
}

#[test]
fn every_method_body_and_protocol_passes_through_as_it_comes() {
    let (goes_on, left) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (there_on, there_left) = (Arc::clone(&goes_on), Arc::clone(&left));
    let mut old = Upstream::start(move |peer| respond(peer, &there_on, &there_left));
    let top = home();
    let shadow = Shadow::start(top.path(), &old.url(), &["--pages", "2"]);
    let mut conn = Conn::open(&shadow.target);
    let before = peak(shadow.child.id());
    // A response reaches the client while the old server still sends it, and is not kept.
    conn.send(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(conn.head("GET").status, 200);
    assert_eq!(conn.read_some().unwrap(), b"first");
    goes_on.store(true, SeqCst);
    let mut length = 5;
    while let Some(piece) = conn.read_some() {
        length += piece.len();
    }
    assert_eq!(length, LARGE * PIECE);
    // A body reaches the old server while the client still sends it; fields keep their case and order.
    goes_on.store(false, SeqCst);
    let size = LARGE * PIECE;
    conn.send(format!("PURGE /upload HTTP/1.1\r\nHost: x\r\nX-MiXed: yes\r\nContent-Length: {size}\r\n\r\n"));
    (0..LARGE / 2).for_each(|_| conn.send(vec![b'y'; PIECE]));
    assert!(eventually(PATIENCE, || goes_on.load(SeqCst)), "the body waits for its end");
    (0..LARGE / 2).for_each(|_| conn.send(vec![b'y'; PIECE]));
    let created = conn.response("PURGE");
    assert_eq!((created.status, created.header("x-got")), (201, Some(&*size.to_string())));
    assert!(created.headers.contains(&("X-Case".to_owned(), "Kept".to_owned())), "{created:?}");
    let head = old.last_head();
    let expected = format!(
        "PURGE /upload HTTP/1.1\r\nHost: x\r\nX-MiXed: yes\r\nContent-Length: {size}\r\nX-Forwarded-For: 127.0.0.1"
    );
    assert_eq!(head, expected);
    let after = peak(shadow.child.id());
    assert!(after < before + GROWTH, "{before} to {after} KiB");
    // A change of protocol, also with bytes that come before the response.
    let mut switched = Conn::open(&shadow.target);
    switched.send(b"GET /switch HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello\n");
    let answer = raw_until(&mut switched, "echo hello\n");
    assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n"), "{answer}");
    switched.send("more\n");
    assert_eq!(raw_until(&mut switched, "\n"), "echo more\n");
    left.store(false, SeqCst);
    switched.half_close();
    assert!(eventually(PATIENCE, || left.load(SeqCst)), "the end of a changed protocol");
    // The old server learns that a client has left, before and within a response.
    for path in ["/endless", "/never"] {
        left.store(false, SeqCst);
        let requests = old.requests();
        let mut leaves = Conn::open(&shadow.target);
        leaves.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(eventually(PATIENCE, || old.requests() > requests));
        if path == "/endless" {
            assert_eq!(leaves.head("GET").status, 200);
            assert_eq!(leaves.read_some().unwrap(), b"first");
        }
        drop(leaves);
        assert!(eventually(PATIENCE, || left.load(SeqCst)), "{path}: the old server still sends");
    }
    // Connections to the old server are kept, and replaced if it ends them after a response.
    let connections = old.connections();
    (0..3).for_each(|_| assert_eq!(conn.exchange(&Request::new("HEAD", "/")).text(), ""));
    assert!(old.connections() <= connections + 1);
    for _ in 0..3 {
        assert_eq!(conn.exchange(&Request::post("/once", "text/plain", "a")).text(), "once");
        assert_eq!(conn.exchange(&Request::new("OPTIONS", "/once")).text(), "once");
        assert_eq!(conn.exchange(&Request::new("HEAD", "/once")).status, 200);
    }
    // Without an old server clients get the reason, and the next one is asked again.
    old.end();
    let response = shadow.send(&Request::post("/", "text/plain", vec![b'z'; 3 * PIECE]));
    assert_eq!((response.status, response.header("connection")), (502, Some("close")));
    let text = response.text();
    assert!(text.contains("howdah doctor: cannot connect to 127.0.0.1:") && text.contains("refused"), "{text}");
    shadow.wait_for("no response from the old server: cannot connect");
    old.listen(|peer| respond(peer, &AtomicBool::new(true), &AtomicBool::new(false)));
    assert_eq!(shadow.send(&Request::get("/")).text(), "home");
    let compressed = shadow.send(&Request::get("/?b").header("Accept-Encoding", "gzip"));
    assert_eq!((compressed.header("content-encoding"), compressed.decoded()), (Some("gzip"), b"home".to_vec()));
    // `--pages 2`: after two comparisons, clients are served as before.
    shadow.wait_for(ENOUGH);
    assert_eq!(shadow.send(&Request::get("/?c")).text(), "home");
    let (code, report) = shadow.end();
    assert_eq!(code, Some(0), "{report:#}");
    let traffic = &report["traffic"];
    assert_eq!(
        (&report["pages"], &traffic["skipped"], &traffic["unanswered"]),
        (&Value::from(2), &json!({"cut": 2, "large": 1}), &Value::from(1)),
        "{report:#}"
    );
}

/// The old server of the following test.
fn respond_early(peer: &mut Peer) {
    while let Some(head) = peer.head() {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        match path.as_str() {
            "/hints" => {
                peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </b.css>\r\n\r\n");
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
            "/trailers" => {
                assert!(head.contains("\r\nTE: trailers\r\nConnection: TE"), "{head}");
                peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n");
            }
            "/chunks" => {
                let body = peer.until("0\r\nX-Sum: 1\r\n\r\n");
                peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
            }
            "/continue" => {
                assert_eq!(field(&head, "expect"), Some("100-continue"));
                peer.send("HTTP/1.1 100 Continue\r\n\r\n");
                let body = peer.bytes(4);
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
                peer.send(body);
            }
            "/refused" => {
                peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n");
                return;
            }
            "/until-end" => {
                peer.send("HTTP/1.0 200 OK\r\n\r\nto the end");
                return;
            }
            "/broken" => {
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart");
                return;
            }
            "/nonsense" => {
                peer.send("nonsense\r\n\r\n");
                return;
            }
            _ => return,
        }
    }
}

#[test]
fn interim_early_and_broken_responses_and_trailers_pass_through() {
    let old = Upstream::start(respond_early);
    let top = home();
    let shadow = Shadow::start(top.path(), &old.url(), &[]);
    let mut conn = Conn::open(&shadow.target);
    let hints = conn.exchange(&Request::get("/hints"));
    let links: Vec<_> = hints.interim.iter().map(|hint| (hint.status, hint.header("link"))).collect();
    assert_eq!((links, hints.text()), (vec![(103, Some("</a.css>")), (103, Some("</b.css>"))], "ok".to_owned()));
    conn.send("GET /trailers HTTP/1.1\r\nHost: x\r\nTE: trailers, gzip\r\nConnection: TE\r\n\r\n");
    let trailers = raw_until(&mut conn, "X-Sum: 1\r\n\r\n");
    assert!(trailers.ends_with("\r\n\r\n2;a=b\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n"), "{trailers}");
    let chunked = "3\r\nabc\r\n1;x\r\nd\r\n0\r\nX-Sum: 1\r\n\r\n";
    conn.send(format!("POST /chunks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunked}"));
    assert_eq!(conn.response("POST").text(), chunked);
    // Two requests at once; the body of the first is sent only once it is asked for.
    conn.send("PUT /continue HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    assert_eq!(raw_until(&mut conn, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    conn.send("bodyGET /hints HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(conn.response("PUT").text(), "body");
    assert_eq!(conn.response("GET").text(), "ok");
    // A large upload that the old server refuses: the client keeps sending, and gets the response.
    let mut refused = Conn::open(&shadow.target);
    refused.send(format!("POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", LARGE * PIECE));
    let response = refused.response("POST");
    assert_eq!((response.status, response.header("connection")), (413, Some("close")));
    for _ in 0..LARGE {
        if refused.try_send(&vec![b'x'; PIECE]).is_err() {
            break;
        }
    }
    let until_end = shadow.send(&Request::get("/until-end"));
    assert_eq!((until_end.version.as_str(), until_end.text()), ("HTTP/1.1", "to the end".to_owned()));
    assert_eq!(until_end.header("connection"), Some("close"));
    let mut old_client = Conn::open(&shadow.target);
    old_client.send("GET /hints HTTP/1.0\r\n\r\n");
    let response = old_client.response("GET");
    assert_eq!((response.text(), response.interim.len(), old_client.closed_by_server()), ("ok".to_owned(), 0, true));
    let mut broken = Conn::open(&shadow.target);
    broken.send("GET /broken HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(broken.head("GET").status, 200);
    assert!(
        std::iter::from_fn(|| broken.try_read_some().transpose()).any(|read| read.is_err()),
        "the truncated response looks complete"
    );
    for (path, why) in [("/nonsense", "malformed response"), ("/closes", "has closed the connection")] {
        let response = shadow.send(&Request::get(path));
        assert!(response.status == 502 && response.text().contains(why), "{path}: {}", response.text());
    }
    let mut smuggler = Conn::open(&shadow.target);
    smuggler.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert_eq!(smuggler.response("POST").status, 400);
    shadow.wait_for("GET /hints differs in ");
    let (code, report) = shadow.end();
    let traffic = &report["traffic"];
    let counts = (code, &traffic["unanswered"], &traffic["refused"]);
    assert_eq!(counts, (Some(1), &json!(2), &json!(1)), "{report:#}");
}

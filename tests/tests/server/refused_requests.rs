//! Requests that are refused before they are parsed: each has a line in the access log and is counted by reason.

use super::http3::{http3, run as ask_over_http_3};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, Site, scenario};

fn access_log(site: &Site) -> String {
    std::fs::read_to_string(site.place().top.join("access.log")).unwrap_or_default()
}

fn is_counted(site: &Site, reason: &str, times: u32) -> bool {
    let metrics = Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics")).expect(200).text();
    metrics.contains(&format!("howdah_rejected_requests_total{{reason=\"{reason}\"}} {times}\n"))
}

/// Waits for the line of a refused request, which begins in the format that tools for banning clients expect.
fn wait_for_line(site: &Site, request: &str, status: u16, reason: &str) {
    let found = eventually(PATIENCE, || {
        access_log(site).lines().any(|line| {
            line.starts_with("127.0.0.1 - - [")
                && line.contains(&format!("] \"{request}\" {status} 0 \"-\" \"-\" "))
                && line.ends_with(&format!(" refused={reason}"))
        })
    });
    assert!(found, "{request:?} {status} {reason}:\n{}", access_log(site));
}

scenario!(
    requests_refused_before_they_are_parsed_are_logged_and_counted,
    howdah_only = "the reference's log is its own",
    |s| s
        .never_https()
        .setting("log.access", "\"@TOP@/access.log\"")
        .time("http.header_timeout", "300ms")
        .expect_log("the load balancer sends the PROXY protocol"),
    |site| {
        let long = format!("GET /long HTTP/1.1\r\nHost: x\r\n{}\r\n", "X: y\r\n".repeat(200));
        for (sent, logged, status, reason, times) in [
            ("garbage\r\n\r\n", "garbage", 400, "malformed", 1),
            ("GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "GET /a b HTTP/1.1", 400, "malformed", 2),
            (&*long, "GET /long HTTP/1.1", 431, "header_too_large", 1),
            (
                "PROXY TCP4 192.0.2.1 192.0.2.2 1 80\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
                "PROXY TCP4 192.0.2.1 192.0.2.2 1 80",
                400,
                "proxy_protocol",
                1,
            ),
            ("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", "-", 400, "proxy_protocol", 2),
            ("\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n", "\\x16\\x03\\x01\\x02\\x00\\x01\\x00\\x01", 400, "tls", 1),
            ("GET /slow HTTP/1.1\r\n", "GET /slow HTTP/1.1", 408, "header_timeout", 1),
        ] {
            let mut conn = site.conn();
            conn.send(sent);
            assert_eq!(conn.response("GET").status, status, "{sent:?}");
            // It is counted when the response is being sent.
            assert!(eventually(PATIENCE, || is_counted(site, reason, times)), "{sent:?}");
            wait_for_line(site, logged, status, reason);
        }
        let _ = site.wait_for_log(&["the load balancer sends the PROXY protocol", "127.0.0.1"]);
        // A frame that only a response may contain: the connection ends.
        let mut conn = site.conn();
        conn.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x01\x05\x04\0\0\0\x01x");
        let _ = conn.read_rest();
        assert!(eventually(PATIENCE, || is_counted(site, "http2", 1)), "{}", access_log(site));
        wait_for_line(site, "-", 400, "http2");
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
        let _ = eventually(PATIENCE, || access_log(site).contains("/ready.txt"));
        let served =
            access_log(site).lines().filter(|line| line.contains("/ready.txt")).all(|line| !line.contains("refused="));
        assert!(served, "{}", access_log(site));
    },
);

/// A literal field: its name and its value are short.
fn field(name: &str, value: &str) -> Vec<u8> {
    let part = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
    [vec![0], part(name), part(value)].concat()
}

/// The frames of a request's head on a stream of HTTP/2; there is no body.
fn headers_frames(stream: u8, path: &str, block: &[u8]) -> Vec<u8> {
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", path), (":authority", "x")];
    let begin: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    let whole = [&begin, block].concat();
    let parts: Vec<&[u8]> = whole.chunks(16_000).collect();
    let frames = parts.iter().enumerate().map(|(at, part)| {
        let kind = if at == 0 { 1 } else { 9 };
        let flags = u8::from(at == 0) | if at + 1 == parts.len() { 4 } else { 0 };
        let [.., high, middle, low] = part.len().to_be_bytes();
        [&[high, middle, low, kind, flags, 0, 0, 0, stream], *part].concat()
    });
    frames.collect::<Vec<_>>().concat()
}

scenario!(
    requests_that_are_refused_for_a_stream_of_http_2_are_logged_and_counted,
    howdah_only = "the reference's log is its own",
    |s| s.never_https().setting("log.access", "\"@TOP@/access.log\""),
    |site| {
        let large: Vec<u8> = (0..750).flat_map(|_| field("x-large", &"v".repeat(100))).collect();
        let mut conn = site.conn();
        conn.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
        // A field list above the announced size, a field that HTTP/2 forbids, and one that is served.
        for (stream, path, block, reason, status) in [
            (1, "/large.txt", &large, "header_too_large", 431),
            (3, "/malformed.txt", &field("connection", "close"), "http2", 400),
            (5, "/large.txt", &large, "header_too_large", 431),
        ] {
            conn.send(headers_frames(stream, path, block));
            let times = if stream == 5 { 2 } else { 1 };
            assert!(eventually(PATIENCE, || is_counted(site, reason, times)), "{path} {}", access_log(site));
            wait_for_line(site, "-", status, reason);
        }
        conn.send(headers_frames(7, "/ready.txt", b""));
        assert!(eventually(PATIENCE, || access_log(site).contains("/ready.txt")), "{}", access_log(site));
        assert_eq!(access_log(site).lines().filter(|line| line.contains("refused=")).count(), 3);
    },
);

scenario!(
    plain_http_on_a_port_with_tls_is_logged_and_counted,
    howdah_only = "the harness configures the reference without TLS",
    |s| s.https().setting("log.access", "\"@TOP@/access.log\""),
    |site| {
        use std::io::{Read as _, Write as _};
        let mut plain = std::net::TcpStream::connect(("127.0.0.1", site.port())).unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut response = String::new();
        plain.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
        assert!(eventually(PATIENCE, || is_counted(site, "http_to_tls", 1)));
        wait_for_line(site, "-", 400, "http_to_tls");
    },
);

scenario!(
    requests_refused_over_http_3_are_logged_and_counted,
    howdah_only = "Debian's nginx has no HTTP/3",
    |s| http3(s).setting("log.access", "\"@TOP@/access.log\""),
    |site| {
        // A body without a head, and an invalid head.
        for (times, kind, payload) in [(1, "0", "616263"), (2, "1", "ffff")] {
            let _ = ask_over_http_3(site, &["raw", kind, payload]);
            assert!(eventually(PATIENCE, || is_counted(site, "http3", times)), "{kind}: {}", access_log(site));
            wait_for_line(site, "-", 400, "http3");
        }
        assert_eq!(ask_over_http_3(site, &["get", "/hello.php"])["text"], "hello");
    },
);

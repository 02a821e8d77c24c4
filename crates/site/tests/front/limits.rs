//! Refused requests: 400, 405, 408, 413, 414, 431, and the connection's timeouts.

use crate::support::{Server, eventually, settings};
use howdah_config::ByteSize;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn status(server: &Server, request: &str) -> u16 {
    server.connect().ask(request).status
}

#[test]
fn an_invalid_request_gets_400() {
    let server = Server::start();
    for request in [
        "GET /a.txt HTTP/1.1\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a.php%00.txt HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /../etc/passwd HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /%2e%2e/etc/passwd HTTP/1.1\r\nHost: h\r\n\r\n",
        "nonsense\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "GET /a.txt HTTP/1.1\r\nHost: h\r\nbad name: x\r\n\r\n",
        "POST /echo.php HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ] {
        assert_eq!(status(&server, request), 400, "{request:?}");
    }
    assert_eq!(server.stand.requests.load(Ordering::SeqCst), 0);
}

#[test]
fn trace_and_connect_are_refused_and_options_is_answered() {
    let server = Server::start();
    let response = server.connect().ask("TRACE /vars.php HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(response.status, 405);
    assert!(response.header("allow").unwrap().contains("GET"));
    assert_eq!(status(&server, "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n"), 405);
    assert_eq!(status(&server, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), 200);
    let response = server.connect().ask("OPTIONS /vars.php HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(response.var("REQUEST_METHOD"), Some("OPTIONS"));
    let response = server.connect().ask("PROPFIND /vars.php HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(response.var("REQUEST_METHOD"), Some("PROPFIND"));
    assert_eq!(response.var("repeatable"), Some("false"));
}

#[test]
fn sizes_have_their_own_statuses() {
    let server = Server::start();
    let target = |n: usize| format!("GET /a.txt?{} HTTP/1.1\r\nHost: h\r\n\r\n", "q".repeat(n - 7));
    assert_eq!((status(&server, &target(4000)), status(&server, &target(4001))), (200, 414));
    assert_eq!(status(&server, &target(70_000)), 414);
    let header = |n: usize| format!("GET /a.txt HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "v".repeat(n));
    assert_eq!((status(&server, &header(7000)), status(&server, &header(8000))), (200, 431));
    assert_eq!(status(&server, &header(400_000)), 431);
    let many = format!("GET /a.txt HTTP/1.1\r\nHost: h\r\n{}\r\n", "a: b\r\n".repeat(1000));
    assert_eq!(status(&server, &many), 431);
}

#[test]
fn a_body_that_is_too_large_is_refused_before_and_while_it_is_read() {
    let server = Server::start();
    let body = "x".repeat(100_001);
    let mut client = server.connect();
    let response = client.ask(&format!("POST /echo.php HTTP/1.1\r\nHost: h\r\nContent-Length: 100001\r\n\r\n{body}"));
    assert_eq!((response.status, response.header("connection")), (413, Some("close")));
    let mut client = server.connect();
    client.send("POST /echo.php HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(format!("186a1\r\n{body}\r\n"));
    assert_eq!(client.response().status, 413);
    client.close_write();
    assert!(client.is_closed());
    let exact = &body[1..];
    let response =
        server.connect().ask(&format!("POST /echo.php HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n{exact}"));
    assert_eq!((response.status, response.body.len()), (200, 100_000));
    assert_eq!(server.stand.requests.load(Ordering::SeqCst), 1);
}

#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    let server = Server::start();
    let mut client = server.connect();
    client.send("POST /echo.php HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n\r\n");
    // Larger than any socket buffer: the server must keep reading, or the write fails before the response is read.
    client.send("x".repeat(5_000_000));
    assert_eq!(client.response().status, 413);
}

#[test]
fn a_late_header_gets_408() {
    let mut settings = settings();
    // Long enough for the test itself to send its data, on a machine that stalls occasionally.
    settings.http.header_timeout = Duration::from_secs(2);
    let server = Server::with(settings);
    let mut second = server.connect();
    assert_eq!(second.ask("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    second.send("GET /");
    let mut slow = server.connect();
    slow.send("GET /a.txt HTTP/1.1\r\nHo");
    let mut silent = server.connect();
    let response = slow.response();
    assert_eq!((response.status, response.header("connection")), (408, Some("close")));
    assert!(slow.is_closed());
    assert_eq!(second.response().status, 408);
    assert!(second.is_closed());
    assert!(silent.is_closed(), "a client without a request gets no response");
}

#[test]
fn a_late_body_gets_408() {
    let mut settings = settings();
    let limit = Duration::from_secs(3);
    settings.http.client_timeout = limit;
    settings.http.min_rate = ByteSize(1);
    let server = Server::with(settings);
    let mut client = server.connect();
    client.send("POST /echo.php HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
    let response = client.response();
    assert_eq!((response.status, response.header("connection")), (408, Some("close")));
    // Any number of pauses shorter than the limit is allowed.
    let mut client = server.connect();
    client.send("POST /echo.php HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n");
    let start = Instant::now();
    for _ in 0..10 {
        client.send("x");
        std::thread::sleep(limit / 8);
    }
    assert!(start.elapsed() > limit);
    assert_eq!(client.response().status, 200);
}

#[test]
fn an_idle_connection_is_closed_quietly() {
    let mut settings = settings();
    let limit = Duration::from_secs(2);
    settings.http.idle_timeout = limit;
    let server = Server::with(settings);
    let mut client = server.connect();
    let start = Instant::now();
    assert_eq!(client.ask("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    assert!(client.is_closed());
    assert!(start.elapsed() > limit / 2, "{:?}", start.elapsed());
    // A running request is not idle.
    let mut client = server.connect();
    client.send("GET /stream.php HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.head().status, 200);
    std::thread::sleep(limit + limit / 4);
    server.stand.pipe.push("late", false);
    assert_eq!(client.chunk().unwrap(), b"late");
}

#[test]
fn a_client_that_reads_nothing_is_dropped() {
    let mut settings = settings();
    settings.http.client_timeout = Duration::from_millis(200);
    settings.http.max_body = Some(ByteSize(100_000_000));
    let server = Server::with(settings);
    let content = vec![b'x'; 50_000_000];
    std::fs::write(server.root.path().join("large.txt"), content).unwrap();
    let mut client = server.connect();
    client.send("GET /large.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    eventually("dropping the client", || {
        server.metrics.durations().count == 1 && server.front().open_connections() == 0
    });
}

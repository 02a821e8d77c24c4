//! HTTP/1.1 on the wire: keep-alive, pipelining, chunked bodies both ways, Expect, HEAD, Unix sockets.

use crate::support::{Client, Server, eventually, settings};
use howdah_config::ListenAddr;
use std::io::{Read, Write};
use std::sync::atomic::Ordering;

#[test]
fn a_connection_serves_many_requests() {
    let server = Server::start();
    let mut client = server.connect();
    for _ in 0..3 {
        let response = client.ask("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!((response.status, response.text()), (200, "static content"));
        let response = client.ask("POST /echo.php HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!((response.status, response.text()), (200, "hello"));
        assert_eq!(response.header("content-length"), Some("5"));
        assert_eq!(response.header("server"), Some("Howdah"));
        assert!(response.header("date").is_some());
    }
    assert_eq!(server.front().open_connections(), 1);
}

#[test]
fn connection_close_and_http_1_0_end_the_connection() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.ask("GET /a.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").status, 200);
    assert!(client.is_closed());
    let mut client = server.connect();
    assert_eq!(client.ask("GET /a.txt HTTP/1.0\r\n\r\n").text(), "static content");
    assert!(client.is_closed());
    let mut client = server.connect();
    let request = "GET /a.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
    assert_eq!((client.ask(request).status, client.ask(request).status), (200, 200));
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::start();
    let mut client = server.connect();
    let mut requests = String::new();
    for i in 0..20 {
        requests += &format!("POST /echo.php?{i} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{i:02}");
        requests += "GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n";
    }
    client.send(&requests);
    for i in 0..20 {
        assert_eq!(client.response().text(), format!("{i:02}"));
        assert_eq!(client.response().text(), "static content");
    }
}

#[test]
fn a_request_may_come_byte_by_byte() {
    let server = Server::start();
    let mut client = server.connect();
    for byte in b"POST /echo.php HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" {
        client.send([*byte]);
    }
    assert_eq!(client.response().text(), "abc");
}

#[test]
fn a_chunked_body_is_read_with_its_trailers_and_gets_a_length() {
    let server = Server::start();
    let mut client = server.connect();
    let chunked = "Host: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwiki\r\n5\r\npedia\r\n0\r\nX-Sum: 1\r\n\r\n";
    let response = client.ask(&format!("POST /echo.php HTTP/1.1\r\n{chunked}"));
    assert_eq!((response.text(), response.header("x-body")), ("wikipedia", Some("memory")));
    let response = client.ask(&format!("POST /vars.php HTTP/1.1\r\n{chunked}"));
    assert_eq!(response.var("CONTENT_LENGTH"), Some("9"));
    assert_eq!(response.var("HTTP_X_SUM"), None);
}

#[test]
fn large_bodies_go_to_a_file_and_arrive_whole() {
    let server = Server::start();
    let body: String = (0..60_000).map(|i| char::from(b'a' + (i % 26) as u8)).collect();
    let mut client = server.connect();
    client.send(format!("POST /echo.php HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    let response = client.response();
    assert_eq!(response.header("x-body"), Some("file"));
    assert!(response.text() == body);
    // Chunked: the length is known only at the end, so the switch from memory to a file happens in the middle.
    client.send("POST /echo.php HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    for part in body.as_bytes().chunks(3000) {
        client.send(format!("{:x}\r\n", part.len()));
        client.send(part);
        client.send("\r\n");
    }
    client.send("0\r\n\r\n");
    let response = client.response();
    assert_eq!(response.header("x-body"), Some("file"));
    assert!(response.text() == body);
}

#[test]
fn expect_gets_100_only_when_the_body_is_read() {
    let server = Server::start();
    let mut client = server.connect();
    client.send("POST /echo.php HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_eq!(client.head().status, 100);
    client.send("ok");
    assert_eq!(client.response().text(), "ok");
    client.send("POST /echo.php HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 100001\r\n\r\n");
    assert_eq!(client.response().status, 413);
}

#[test]
fn head_has_the_head_of_get_and_no_body() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.ask("HEAD /a.txt HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    assert_eq!(client.ask("HEAD /vars.php HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    assert_eq!(client.ask("HEAD /no.php HTTP/1.1\r\nHost: h\r\n\r\n").status, 404);
    // A body after any of these would be parsed as the next head.
    assert_eq!(client.ask("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n").text(), "static content");
}

#[test]
fn streamed_parts_go_out_at_once() {
    let server = Server::start();
    let mut client = server.connect();
    client.send("GET /stream.php HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = client.head();
    assert_eq!((head.status, head.header("transfer-encoding")), (200, Some("chunked")));
    server.stand.pipe.push("data: 1\n\n", true);
    assert_eq!(client.chunk().unwrap(), b"data: 1\n\n");
    server.stand.pipe.push("data: 2\n\n", true);
    assert_eq!(client.chunk().unwrap(), b"data: 2\n\n");
    server.stand.pipe.push("", true);
    server.stand.pipe.end();
    assert_eq!(client.chunk(), None);
    assert_eq!(client.ask("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
}

#[test]
fn http_1_0_gets_a_stream_that_ends_with_the_connection() {
    let server = Server::start();
    let mut client = server.connect();
    server.stand.pipe.push("one ", true);
    server.stand.pipe.push("two", false);
    server.stand.pipe.end();
    client.send("GET /stream.php HTTP/1.0\r\n\r\n");
    let head = client.head();
    assert_eq!((head.status, head.header("transfer-encoding")), (200, None));
    assert_eq!(client.rest(), "one two");
}

#[test]
fn at_the_limit_connections_wait_their_turn() {
    let mut settings = settings();
    settings.http.max_connections = 2;
    let server = Server::with(settings);
    // Two connections with running requests: idle ones would be closed for a third.
    let (mut one, mut two) = (server.connect(), server.connect());
    for conn in [&mut one, &mut two] {
        conn.send("GET /hang.php HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    eventually("the requests", || server.stand.requests.load(Ordering::SeqCst) == 2);
    let mut three = server.connect();
    three.send("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((server.front().open_connections(), server.metrics.durations().count), (2, 0));
    drop(one);
    assert_eq!(three.response().status, 200);
}

#[test]
fn a_client_that_leaves_is_noticed() {
    let server = Server::start();
    let mut client = server.connect();
    client.send("GET /hang.php HTTP/1.1\r\nHost: h\r\n\r\n");
    eventually("the request", || server.stand.requests.load(Ordering::SeqCst) == 1);
    drop(client);
    eventually("giving the request up", || server.stand.given_up.load(Ordering::SeqCst) == 1);
    let mut client = server.connect();
    client.send("GET /stream.php HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.head().status, 200);
    assert!(!server.stand.pipe.is_dropped());
    drop(client);
    eventually("giving the body up", || server.stand.pipe.is_dropped());
    eventually("closing", || server.front().open_connections() == 0);
}

#[test]
fn unix_sockets_serve_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("http.sock");
    let mut settings = settings();
    settings.listen = vec![ListenAddr::Unix(path.clone())];
    let server = Server::with(settings);
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET /vars.php HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("\nREMOTE_ADDR=unix:\n"), "{text}");
    drop(server);
    assert!(!path.exists());
}

#[test]
fn connections_are_spread_over_the_threads() {
    let server = Server::start();
    let mut clients: Vec<Client> = (0..10).map(|_| server.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    }
    assert_eq!(server.front().open_connections(), 10);
    assert_eq!(server.metrics.connections_accepted.get(), 10);
    drop(clients);
    eventually("closing", || server.front().open_connections() == 0);
    eventually("counting them out", || server.metrics.connections_open.get() == 0);
}

#[test]
fn a_directory_without_its_slash_is_redirected_and_keeps_the_query() {
    let server = Server::start();
    std::fs::create_dir(server.root.path().join("a b")).unwrap();
    std::fs::write(server.root.path().join("a b/index.html"), "index").unwrap();
    let mut client = server.connect();
    let response = client.ask("GET /a%20b?x=%20 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!((response.status, response.header("location")), (301, Some("/a%20b/?x=%20")));
    let response = client.ask("POST /a%20b HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((response.status, response.header("location")), (308, Some("/a%20b/")));
    assert_eq!(client.ask("GET /a%20b/ HTTP/1.1\r\nHost: h\r\n\r\n").text(), "index");
}

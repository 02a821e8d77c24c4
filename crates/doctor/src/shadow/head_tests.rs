use super::*;
use std::net::{Ipv4Addr, Ipv6Addr};

fn request(text: &str) -> RequestHead {
    let (head, length) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
    assert_eq!(length, text.len());
    head
}

fn response(text: &str, method: &str) -> ResponseHead {
    let (head, length) = ResponseHead::parse(text.as_bytes(), method).unwrap().unwrap();
    assert_eq!(length, text.len());
    head
}

fn forwarded(text: &str) -> String {
    String::from_utf8(request(text).forwarded(IpAddr::from(Ipv4Addr::LOCALHOST))).unwrap()
}

fn answered(text: &str, closes: bool) -> String {
    String::from_utf8(response(text, "GET").forwarded(closes)).unwrap()
}

#[test]
fn a_request_is_forwarded_without_its_connection_fields() {
    assert_eq!(
        forwarded(
            "PATCH /a?b=%20 HTTP/1.1\r\nhOST: Shop:81\r\nX-b: 2\r\nConnection: keep-alive, X-Hop\r\nx-hop: 1\r\n\
             Keep-Alive: timeout=5\r\nProxy-Connection: close\r\nTE: gzip\r\nExpect: 100-continue\r\nX-a: 1\r\n\
             Upgrade: websocket\r\nTransfer-Encoding: chunked\r\nx-b: 3\r\n\r\n"
        ),
        "PATCH /a?b=%20 HTTP/1.1\r\nhOST: Shop:81\r\nX-b: 2\r\nExpect: 100-continue\r\nX-a: 1\r\n\
         Transfer-Encoding: chunked\r\nx-b: 3\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n"
    );
    assert_eq!(
        forwarded("GET / HTTP/1.0\r\nX-Forwarded-For: 192.0.2.1\r\nx-forwarded-for: 192.0.2.2\r\n\r\n"),
        "GET / HTTP/1.0\r\nX-Forwarded-For: 192.0.2.1, 192.0.2.2, 127.0.0.1\r\n\r\n"
    );
    assert_eq!(
        forwarded("GET / HTTP/1.1\r\nUpgrade: websocket\r\nTE: trailers\r\nConnection: close, Upgrade\r\n\r\n"),
        "GET / HTTP/1.1\r\nX-Forwarded-For: 127.0.0.1\r\nUpgrade: websocket\r\nTE: trailers\r\n\
         Connection: Upgrade, TE, close\r\n\r\n"
    );
    // Later requests over HTTP/2 could not be seen.
    assert_eq!(
        forwarded("GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n"),
        "GET / HTTP/1.1\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n"
    );
    // Framing is needed whatever the client lists.
    assert!(
        forwarded("POST / HTTP/1.1\r\nContent-Length: 3\r\nConnection: content-length\r\n\r\n").contains(": 3\r\n")
    );
    let mapped = IpAddr::from(Ipv4Addr::new(192, 0, 2, 7).to_ipv6_mapped());
    let head = request("GET / HTTP/1.1\r\n\r\n");
    assert!(String::from_utf8(head.forwarded(mapped)).unwrap().contains("For: 192.0.2.7\r\n"));
    assert!(String::from_utf8(head.forwarded(IpAddr::from(Ipv6Addr::LOCALHOST))).unwrap().contains("For: ::1\r\n"));
}

#[test]
fn requests_that_two_servers_could_read_differently_are_refused() {
    for (text, status) in [
        ("GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nX: 1\r\n folded\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\n\r\n", 505),
        ("CONNECT shop:443 HTTP/1.1\r\n\r\n", 501),
        (&format!("GET /{} HTTP/1.1\r\n", "x".repeat(MAX_HEAD)), 431),
        (&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_FIELDS + 1)), 431),
    ] {
        let refusal = RequestHead::parse(text.as_bytes()).unwrap_err();
        assert_eq!(refusal.status, status, "{text:.60}: {}", refusal.why);
    }
    let text = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    for end in 0..text.len() {
        assert!(RequestHead::parse(&text.as_bytes()[..end]).unwrap().is_none(), "{end}");
    }
}

#[test]
fn a_response_is_forwarded_unchanged_and_ends_by_its_framing() {
    assert_eq!(
        answered(
            "HTTP/1.0 404 Nicht da\r\nServer: x\r\nSet-Cookie: a\r\nConnection: close, Upgrade\r\nUpgrade: h2c\r\n\
             set-cookie: b\r\nKeep-Alive: 5\r\nContent-Length: 2\r\nTrailer: X-Sum\r\n\r\n",
            false
        ),
        "HTTP/1.1 404 Nicht da\r\nServer: x\r\nSet-Cookie: a\r\nset-cookie: b\r\nContent-Length: 2\r\n\
         Trailer: X-Sum\r\n\r\n"
    );
    assert_eq!(
        answered("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n", false),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    assert_eq!(answered("HTTP/1.1 200 \r\n\r\n", true), "HTTP/1.1 200 \r\nConnection: close\r\n\r\n");
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
    assert_eq!(answered(early, true), early);
    let switched = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    assert_eq!(answered(switched, true), switched);
    for (text, method, framing) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", Framing::Length(5)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", "GET", Framing::Length(5)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", Framing::Length(0)),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", Framing::Length(0)),
        ("HTTP/1.1 204 No Content\r\n\r\n", "GET", Framing::Length(0)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", "GET", Framing::Chunked),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", "GET", Framing::Chunked),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", "GET", Framing::UntilClose),
        ("HTTP/1.1 200 OK\r\n\r\n", "GET", Framing::UntilClose),
    ] {
        assert_eq!(response(text, method).framing, framing, "{text}");
    }
    for (text, keeps) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: Close\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\n\r\n", false),
    ] {
        assert_eq!(response(text, "GET").keeps_connection(), keeps, "{text}");
    }
    for wrong in ["SMTP ready\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"] {
        assert!(ResponseHead::parse(wrong.as_bytes(), "GET").is_err(), "{wrong}");
    }
}

#[test]
fn a_used_connection_gets_only_requests_that_may_arrive_twice() {
    for (text, may) in [
        ("GET / HTTP/1.1\r\n\r\n", true),
        ("HEAD / HTTP/1.1\r\n\r\n", true),
        ("POST / HTTP/1.1\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\n", false),
    ] {
        assert_eq!(request(text).may_be_repeated(), may, "{text}");
    }
}

//! Tests of `parse`: valid and invalid requests, and the framing of their bodies. `crate::fuzz` compares the results
//! with hyper's.

use super::*;

fn head(lines: &str) -> Result<Option<(Parsed, usize)>, Refused> {
    parse(lines.as_bytes())
}

fn request(lines: &str) -> Parsed {
    let (parsed, length) = head(lines).unwrap().unwrap();
    assert_eq!(length, lines.len(), "{lines:?}");
    parsed
}

fn refused(lines: &str) -> Refused {
    match head(lines) {
        Err(refused) => refused,
        other => panic!("{lines:?}: {other:?}"),
    }
}

#[test]
fn a_head_is_parsed_into_what_the_client_wrote() {
    let parsed = request("POST /a%20<b>?c HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a:  2 \r\nContent-Length: 5\r\n\r\n");
    assert_eq!(parsed.head.method, Method::POST);
    assert_eq!((parsed.head.target.as_bytes(), parsed.head.version), (&b"/a%20<b>?c"[..], Version::HTTP_11));
    let both: Vec<_> = parsed.head.headers.get_all("x-a").iter().map(|value| value.as_bytes()).collect();
    assert_eq!(both, [b"1", b"2"]);
    assert_eq!((parsed.framing, parsed.keep_alive), (Framing::Length(5), true));
    assert_eq!(request("\r\n\nBREW / HTTP/1.0\n\n").head.method.as_str(), "BREW");
}

#[test]
fn an_incomplete_head_is_awaited_and_later_bytes_stay_unread() {
    let whole = "\r\nGET /x HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n";
    for length in 0..whole.len() {
        assert!(head(&whole[..length]).unwrap().is_none(), "{length}");
    }
    let (_, length) = head(&format!("{whole}GET ")).unwrap().unwrap();
    assert_eq!(length, whole.len());
    for (bytes, before, expected) in [
        ("a\r\n\r\n", 4, true),
        ("a\n\n", 2, true),
        ("a\n\r\n", 3, true),
        ("a\n\n\rb", 4, true),
        ("a\r\nb\r\n", 3, false),
    ] {
        assert_eq!(may_be_complete(bytes.as_bytes(), before), expected, "{bytes:?}");
    }
}

#[test]
fn ambiguous_requests_are_refused() {
    for line in [
        "GET /",
        "GET / HTTP/2.0",
        "GET / HTTP/0.9",
        "GET / http/1.1",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET /a b HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "G(T / HTTP/1.1",
        " GET / HTTP/1.1",
        "\rGET / HTTP/1.1",
        "GET /\0 HTTP/1.1",
        "GET /\x7f HTTP/1.1",
    ] {
        assert_eq!(refused(&format!("{line}\r\nHost: h\r\n\r\n")), Refused::Bad, "{line:?}");
    }
    for field in [
        "A : b",
        "A\t: b",
        " A: b",
        "A b: c",
        "A: b\r\n c",
        "A: b\r\n\tc",
        "A: b\0",
        "A: b\rc",
        ": b",
        "A",
        "Content-Length: x",
        "Content-Length: +1",
        "Content-Length: -1",
        "Content-Length: 1, 1",
        "Content-Length:",
        "Content-Length: 0x1",
        "Content-Length: 99999999999999999999",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 1",
        "Transfer-Encoding: chunked\r\nContent-Length: 0",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding:",
    ] {
        assert_eq!(refused(&format!("POST / HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\n")), Refused::Bad, "{field:?}");
    }
    assert_eq!(refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), Refused::Bad);
}

#[test]
fn bodies_are_framed_by_a_length_or_by_chunks() {
    let framing = |fields: &str| request(&format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).framing;
    assert_eq!(framing(""), Framing::None);
    assert_eq!(framing("Content-Length: 0\r\n"), Framing::None);
    assert_eq!(framing("Content-Length: 7\r\n"), Framing::Length(7));
    assert_eq!(framing("Content-Length: 18446744073709551615\r\n"), Framing::Length(u64::MAX));
    assert_eq!(framing("Transfer-Encoding: chunked\r\n"), Framing::Chunked);
    assert_eq!(framing("Transfer-Encoding: gzip\r\nTransfer-Encoding: CHUNKED\r\n"), Framing::Chunked);
    assert_eq!(framing("Transfer-Encoding: gzip, chunked\r\n"), Framing::Chunked);
    let twice = request("POST / HTTP/1.1\r\nContent-Length: 7\r\nContent-Length: 7\r\n\r\n");
    assert_eq!(twice.framing, Framing::Length(7));
    assert_eq!(twice.head.headers.get_all("content-length").iter().count(), 1);
}

#[test]
fn connections_persist_as_the_client_requests() {
    let goes_on = |version: &str, fields: &str| request(&format!("GET / HTTP/{version}\r\n{fields}\r\n")).keep_alive;
    assert!(goes_on("1.1", "") && !goes_on("1.0", ""));
    assert!(!goes_on("1.1", "Connection: close\r\n") && !goes_on("1.1", "Connection: te, Close\r\n"));
    assert!(goes_on("1.0", "Connection: Keep-Alive\r\n"));
    assert!(!goes_on("1.1", "Connection: close\r\nConnection: keep-alive\r\n"));
    assert!(!goes_on("1.0", "Connection: close, keep-alive\r\n"));
    let expects = |version: &str| {
        request(&format!("POST / HTTP/{version}\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n")).expects_continue
    };
    assert!(expects("1.1") && !expects("1.0"), "HTTP/1.0 has no 100 Continue");
}

#[test]
fn lines_are_counted() {
    let many = |n: usize| head(&format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(n)));
    for n in [0, USUAL_LINES, USUAL_LINES + 1, MAX_HEADER_LINES] {
        assert_eq!(many(n).unwrap().unwrap().0.head.headers.len(), n);
    }
    assert_eq!(many(MAX_HEADER_LINES + 1).unwrap_err(), Refused::TooMany);
}

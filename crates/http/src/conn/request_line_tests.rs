//! Tests of `request_line`: what hyper sees instead, and where a request is known to begin.

use super::*;
use http_body_util::{Empty, Full};

fn seen(line: &str) -> Option<String> {
    encode(line.as_bytes()).map(|encoded| String::from_utf8(encoded.line).unwrap())
}

#[test]
fn only_what_needs_it_is_encoded() {
    assert_eq!(seen("GET /a|b{c}[d]\\^~!'()*?x={|} HTTP/1.1\r"), None);
    assert_eq!(seen("GET /a<b>?q=\"`\" HTTP/1.1\r").as_deref(), Some("GET /a%3Cb%3E?q=%22%60%22 HTTP/1.1\r"));
    assert_eq!(seen("GET /caf\u{e9}#x<y HTTP/1.1").as_deref(), Some("GET /caf%C3%A9 HTTP/1.1"));
    assert_eq!(seen("GET http://h\"/p<?<#< HTTP/1.0").as_deref(), Some("GET http://h\"/p%3C?%3C HTTP/1.0"));
    for line in ["GET /a<b", "/a<b", "", " ", "GET  /a< HTTP/1.1", "OPTIONS <*> HTTP/1.1", "CONNECT h<:80 HTTP/1.1"] {
        assert_eq!(seen(line), None, "{line}");
    }
}

/// A connection's reader, and hyper's side of it.
struct Wire {
    lines: RequestLines,
    targets: Targets,
}

impl Wire {
    fn new() -> Self {
        Self { lines: RequestLines::new(), targets: Targets::default() }
    }

    fn pass(&mut self, chunk: &str) -> Option<String> {
        match self.lines.pass(chunk.as_bytes(), &self.targets) {
            Pass::AsIs => Some(chunk.to_owned()),
            Pass::Held => None,
            Pass::Instead(bytes) => Some(String::from_utf8(bytes).unwrap()),
        }
    }

    /// hyper makes out a request; returns its target and query as scripts see them.
    fn request(&self, uri: &str, body: usize) -> (String, String) {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let builder = Request::builder().uri(uri);
        let parts = if body == 0 {
            let mut request = builder.body(Empty::<Bytes>::new()).unwrap();
            self.targets.on_request(&mut request);
            request.into_parts().0
        } else {
            let mut request = builder.body(Full::new(Bytes::from(vec![b'x'; body]))).unwrap();
            self.targets.on_request(&mut request);
            request.into_parts().0
        };
        (text(target(&parts)), text(query(&parts)))
    }
}

const RAW: &str = "GET /a?<b>#f HTTP/1.1\r\nHost: h\r\n\r\n";
const ENCODED: &str = "GET /a?%3Cb%3E HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn each_request_of_a_connection_keeps_its_spelling() {
    let mut wire = Wire::new();
    for _ in 0..3 {
        assert_eq!(wire.pass(RAW).as_deref(), Some(ENCODED));
        assert_eq!(wire.request("/a?%3Cb%3E", 0), ("/a?<b>#f".to_owned(), "<b>".to_owned()));
        assert_eq!(wire.pass("GET /a?%3Cb%3E HTTP/1.1\r\n\r\n").as_deref(), Some("GET /a?%3Cb%3E HTTP/1.1\r\n\r\n"));
        assert_eq!(wire.request("/a?%3Cb%3E", 0), ("/a?%3Cb%3E".to_owned(), "%3Cb%3E".to_owned()));
    }
}

#[test]
fn a_line_in_pieces_is_held_back_until_it_is_complete() {
    let mut wire = Wire::new();
    assert_eq!(wire.pass("\r\n").as_deref(), Some("\r\n"));
    let (first, last) = RAW.split_at(10);
    for byte in first.split("").filter(|byte| !byte.is_empty()) {
        assert_eq!(wire.pass(byte), None);
    }
    assert_eq!(wire.pass(last).as_deref(), Some(ENCODED));
    let mut wire = Wire::new();
    assert_eq!(wire.pass("GET /a<"), None);
    assert_eq!(wire.lines.give_up().as_deref(), Some(&b"GET /a<"[..]));
    let long = format!("GET /{}", "a<".repeat(LONGEST));
    assert_eq!(Wire::new().pass(&long).as_deref(), Some(&long[..]));
}

#[test]
fn a_body_is_never_touched_and_its_end_is_found() {
    for head in ["POST / HTTP/1.1\r\nContent-Length: 34\r\n\r\n", "POST / HTTP/1.1\nContent-Length: 34\n\n"] {
        // Body in its own piece, with the head, and split.
        for pieces in [
            vec![head.to_owned(), RAW.to_owned()],
            vec![format!("{head}{RAW}")],
            vec![format!("{head}{}", &RAW[..5]), RAW[5..20].to_owned(), RAW[20..].to_owned()],
        ] {
            let mut wire = Wire::new();
            let mut pieces = pieces.into_iter();
            let first = pieces.next().unwrap();
            assert_eq!(wire.pass(&first).as_deref(), Some(&first[..]));
            wire.request("/", RAW.len());
            for piece in pieces {
                assert_eq!(wire.pass(&piece).as_deref(), Some(&piece[..]));
            }
            assert_eq!(wire.pass(RAW).as_deref(), Some(ENCODED), "the body has ended");
        }
    }
}

#[test]
fn where_the_place_is_not_known_nothing_is_touched() {
    // A second request in the same piece.
    let mut wire = Wire::new();
    let two = RAW.repeat(2);
    assert_eq!(wire.pass(&two), Some(format!("{ENCODED}{RAW}")));
    wire.request("/a?%3Cb%3E", 0);
    wire.request("/x", 0);
    assert_eq!(wire.pass(RAW).as_deref(), Some(RAW));
    // A part of a second one.
    let mut wire = Wire::new();
    let more = format!("{RAW}GET /");
    wire.pass(&more);
    wire.request("/a?%3Cb%3E", 0);
    assert_eq!(wire.pass(RAW).as_deref(), Some(RAW));
    // A GET that has a body, whose end is not searched for; a body that is longer than announced; a head in pieces.
    for (first, body) in [
        ("GET / HTTP/1.1\r\nContent-Length: 4\r\n\r\n", 4),
        ("POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody!", 4),
        ("POST / HTTP/1.1\r\n", 4),
    ] {
        let mut wire = Wire::new();
        wire.pass(first);
        wire.request("/", body);
        assert_eq!(wire.pass(RAW).as_deref(), Some(RAW), "{first}");
    }
}

#[test]
fn bytes_of_a_head_are_not_taken_for_a_request() {
    let mut wire = Wire::new();
    wire.pass("GET / HTTP/1.1\r\nX: y\r\n");
    assert_eq!(wire.pass(RAW).as_deref(), Some(RAW), "hyper has not made out a request yet");
    wire.request("/", 0);
    assert_eq!(wire.pass(RAW).as_deref(), Some(ENCODED), "the empty line ended the head");
}

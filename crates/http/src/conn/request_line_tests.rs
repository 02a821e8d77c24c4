//! Tests of `request_line`: what hyper sees instead, and where a request is known to begin. `request_line_fuzz` has the
//! same with hyper on the other side.

use super::*;
use http_body_util::{Empty, Full};

/// A connection's reader, and hyper's side of it.
struct Wire {
    lines: RequestLines,
    targets: Targets,
}

impl Wire {
    fn new() -> Self {
        Self { lines: RequestLines::new(), targets: Targets::default() }
    }

    fn pass(&mut self, piece: impl AsRef<[u8]>) -> String {
        let mut piece = piece.as_ref().to_vec();
        self.lines.look(&mut piece, &self.targets);
        String::from_utf8_lossy(&piece).into_owned()
    }

    /// hyper makes out a request; returns its target and query as scripts see them, and the URI of all else.
    fn request(&self, uri: &str, body: usize) -> Result<(String, String, Uri), u16> {
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
        check(&parts).map_err(|refusal| refusal.status().as_u16())?;
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        Ok((text(target(&parts)), text(query(&parts)), parts.uri))
    }
}

const RAW: &str = "GET /a?<b>#f HTTP/1.1\r\nHost: h\r\n\r\n";
const SHOWN: &str = "GET /a?@b@@f HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn only_what_hyper_refuses_is_replaced_and_only_in_the_path_and_the_query() {
    let shown = |line: &str| Wire::new().pass(format!("{line}\r\nHost: <\"h\">\r\n\r\n")).replace('\r', "");
    let same = "\nHost: <\"h\">\n\n";
    for line in [
        "GET /a|b{c}[d]\\^~!'()*?x={|} HTTP/1.1",
        "OPTIONS <*> HTTP/1.1",
        "CONNECT h<:80 HTTP/1.1",
        "GET  /a< HTTP/1.1",
        "G<T /a \"HTTP/1.1\"",
        "GET http://h\"<h> HTTP/1.1",
        "GET http://h?/<h>/ HTTP/1.1",
        "/a<b",
    ] {
        assert_eq!(shown(line), format!("{line}{same}"));
    }
    for (line, expected) in [
        ("GET /a<b>?q=\"`\" HTTP/1.1", "GET /a@b@?q=@@@ HTTP/1.1"),
        ("GET /caf\u{e9}#x<y HTTP/1.1", "GET /caf@@@x@y HTTP/1.1"),
        ("GET http://h\"/p<?<#< HTTP/1.0", "GET http://h\"/p@?@@@ HTTP/1.0"),
        ("GET //h/p< HTTP/1.0", "GET //h/p@ HTTP/1.0"),
        ("GET /a<b", "GET /a@b"),
    ] {
        assert_eq!(shown(line), format!("{expected}{same}"));
    }
}

#[test]
fn each_request_of_a_connection_keeps_its_spelling() {
    let mut wire = Wire::new();
    for _ in 0..3 {
        assert_eq!(wire.pass(RAW), SHOWN);
        let (target, query, uri) = wire.request("/a?@b@@f", 0).unwrap();
        assert_eq!((target.as_str(), query.as_str(), uri.to_string().as_str()), ("/a?<b>#f", "<b>", "/a?%3Cb%3E"));
        let encoded = "GET /a?%3Cb%3E HTTP/1.1\r\n\r\n";
        assert_eq!(wire.pass(encoded), encoded);
        assert_eq!(wire.request("/a?%3Cb%3E", 0).unwrap().0, "/a?%3Cb%3E");
    }
    wire.pass(b"GET http://h:1/caf\xe9#? HTTP/1.1\r\n\r\n");
    let (target, query, uri) = wire.request("http://h:1/caf@@?", 0).unwrap();
    assert_eq!((target.as_str(), query.as_str(), uri.to_string().as_str()), ("/caf\\xe9#?", "", "http://h:1/caf%E9"));
}

#[test]
fn a_line_in_pieces_is_understood_as_in_one() {
    let mut wire = Wire::new();
    assert_eq!(wire.pass("\r\n"), "\r\n");
    let text: String = RAW.bytes().map(|byte| wire.pass([byte])).collect();
    assert_eq!(text, SHOWN);
    assert_eq!(wire.request("/a?@b@@f", 0).unwrap().0, "/a?<b>#f");
    assert_eq!(wire.pass(RAW), SHOWN);
}

#[test]
fn a_request_with_another_target_than_the_one_kept_is_refused() {
    for seen in ["/a?@b@@g", "/a?@b@", "/", "/a?xb@@f", "http://h"] {
        let mut wire = Wire::new();
        assert_eq!(wire.pass(RAW), SHOWN);
        assert_eq!(wire.request(seen, 0).unwrap_err(), 400, "{seen}");
        // The next one has nothing to do with that.
        assert_eq!(wire.request(seen, 0).unwrap().0, if seen == "http://h" { "/" } else { seen });
    }
}

#[test]
fn a_target_that_becomes_too_long_is_refused() {
    let mut wire = Wire::new();
    let raw = format!("/{}", "<".repeat(30_000));
    wire.pass(format!("GET {raw} HTTP/1.1\r\n\r\n"));
    assert_eq!(wire.request(&raw.replace('<', "@"), 0).unwrap_err(), 414);
    // One that has no end is not kept for ever.
    let mut wire = Wire::new();
    wire.pass("GET /");
    for _ in 0..20 {
        wire.pass("<".repeat(10_000));
    }
    assert!(wire.targets.kept.lock().unwrap().as_ref().unwrap().len() < LONGEST + 10_001);
    assert!(matches!(wire.lines.0, Place::Lost));
    assert_eq!(wire.request("/@", 0).unwrap_err(), 414);
}

#[test]
fn a_body_is_never_touched_and_its_end_is_found() {
    for head in ["POST / HTTP/1.1\r\nContent-Length: 34\r\n\r\n", "POST / HTTP/1.1\nContent-Length: 34\n\n"] {
        // Body in its own piece, with the head, and split.
        for pieces in [
            vec![head.to_owned(), RAW.to_owned()],
            vec![format!("{head}{RAW}")],
            vec![format!("{head}{}", &RAW[..5]), RAW[5..20].to_owned(), RAW[20..].to_owned()],
            vec![head[..3].to_owned(), head[3..head.len() - 1].to_owned(), format!("\n{RAW}")],
        ] {
            let mut wire = Wire::new();
            let (mut read, mut asked) = (0, false);
            for piece in pieces {
                assert_eq!(wire.pass(&piece), piece);
                read += piece.len();
                if read >= head.len() && !asked {
                    asked = true;
                    wire.request("/", RAW.len()).unwrap();
                }
            }
            assert_eq!(wire.pass(RAW), SHOWN, "the body has ended");
        }
    }
}

#[test]
fn where_the_place_is_not_known_nothing_is_touched() {
    // A second request in the same piece.
    let mut wire = Wire::new();
    assert_eq!(wire.pass(RAW.repeat(2)), format!("{SHOWN}{RAW}"));
    wire.request("/a?@b@@f", 0).unwrap();
    wire.request("/x", 0).unwrap();
    assert_eq!(wire.pass(RAW), RAW);
    // A part of a second one.
    let mut wire = Wire::new();
    wire.pass(format!("{RAW}GET /"));
    wire.request("/a?@b@@f", 0).unwrap();
    assert_eq!(wire.pass(RAW), RAW);
    // A GET that has a body, whose end is not searched for; a body that is longer than announced; one of unknown length.
    for (first, body) in
        [("GET / HTTP/1.1\r\nContent-Length: 4\r\n\r\n", 4), ("POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody!", 4)]
    {
        let mut wire = Wire::new();
        wire.pass(first);
        wire.request("/", body).unwrap();
        assert_eq!(wire.pass(RAW), RAW, "{first}");
    }
    let mut wire = Wire::new();
    wire.pass("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    wire.targets.requests.store(1, Relaxed);
    wire.targets.body.store(UNKNOWN, Relaxed);
    assert_eq!(wire.pass(RAW), RAW);
}

#[test]
fn bytes_of_a_head_are_not_taken_for_a_request() {
    let mut wire = Wire::new();
    wire.pass("GET / HTTP/1.1\r\nX: y\r\n");
    assert_eq!(wire.pass(RAW), RAW, "hyper has not made out a request yet");
    wire.request("/", 0).unwrap();
    assert_eq!(wire.pass(RAW), SHOWN, "the empty line ended the head");
    // hyper has made one out although no head seemed to be complete: whoever is wrong, nothing is touched.
    let mut wire = Wire::new();
    wire.pass("GET / HTTP/1.1\r\nX: y\r\n");
    wire.request("/", 0).unwrap();
    assert_eq!(wire.pass(RAW), RAW);
    assert_eq!(wire.pass(RAW), RAW);
}

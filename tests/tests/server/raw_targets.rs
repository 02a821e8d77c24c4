//! Request targets with bytes that are forbidden in URIs and that nginx accepts: scripts see them as sent.

use howdah_tests::{Conn, Site, php, scenario};

/// Responds with the target that it received, in hexadecimal digits, because a text cannot contain every byte.
const TELL: &str = php!("raw_targets/tell.php");

const FORBIDDEN: [&[u8]; 12] = [
    b"/tell.php?a=<b>&\"c\"=`d`",
    b"/tell.php?{a}=|b|&\\c^=1",
    b"/tell.php?x=caf\xc3\xa9",
    b"/tell.php?x=caf\xe9\xff\x80",
    b"/tell.php?x=1#<y>?z",
    b"/tell.php#x?y",
    b"/tell.php?x=<%3C%zz>",
    b"/tell.php/<info>/{x}|\"`",
    b"/tell.php/\xff\xfe?x",
    b"/no<such>/\"file\"?x=<",
    b"/caf\xc3\xa9/\xe9",
    b"/a<b>.php?x=<1>",
];

fn request(target: &[u8], more: &str) -> Vec<u8> {
    [b"GET ", target, b" HTTP/1.1\r\nHost: localhost\r\n", more.as_bytes(), b"\r\n"].concat()
}

fn words(conn: &mut Conn) -> Vec<String> {
    let seen = conn.response("GET").expect(200).json();
    let unhex = |text: &str| {
        let bytes: Vec<u8> =
            (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect();
        bytes.escape_ascii().to_string()
    };
    seen.as_array().unwrap().iter().map(|word| unhex(word.as_str().unwrap())).collect()
}

/// Checks the variables of scripts: first the target, byte for byte, then its query.
fn judge(site: &Site, conn: &mut Conn, target: &[u8]) {
    let seen = words(conn);
    assert_eq!(seen[0], target.escape_ascii().to_string());
    let end = target.iter().position(|&b| b == b'#').unwrap_or(target.len());
    let query = target[..end].iter().position(|&b| b == b'?').map_or(&b""[..], |at| &target[at + 1..end]);
    // The reference's front controller gets its query from `try_files`, as in Debian's configuration.
    assert_eq!(seen[1], query.escape_ascii().to_string(), "{}", site.is_reference());
}

scenario!(
    any_byte_of_a_target_reaches_the_script_as_it_was_sent,
    |s| s
        .http1("other versions refuse these bytes in a target")
        .php("tell.php", TELL)
        .php("index.php", TELL)
        .php("a<b>.php", TELL),
    |site| {
        for target in FORBIDDEN {
            let mut conn = site.conn();
            conn.send(request(target, "Connection: close\r\n"));
            judge(site, &mut conn, target);
        }
        let mut conn = site.conn();
        conn.send(request(b"/tell.php/<i>?<a>=\"b\"", ""));
        let seen = words(&mut conn);
        assert_eq!(seen[2..], ["/tell.php", "/<i>", "<a>", "\\\"b\\\""]);
    },
);

scenario!(
    raw_bytes_are_taken_in_every_request_of_a_connection,
    |s| s
        .http1("other versions refuse these bytes in a target")
        .php("tell.php", TELL)
        .php("index.php", TELL)
        .php("a<b>.php", TELL)
        .php("body.php", "echo file_get_contents('php://input');"),
    |site| {
        let mut conn = site.conn();
        // A body that looks like a request must stay unchanged.
        let body = request(b"/x?<y>", "");
        for target in FORBIDDEN {
            conn.send(request(target, ""));
            judge(site, &mut conn, target);
            let head =
                format!("POST /body.php?<x> HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
            for apart in [true, false] {
                if apart {
                    conn.send(&head);
                    conn.send(&body);
                } else {
                    conn.send([head.as_bytes(), &body].concat());
                }
                assert_eq!(conn.response("POST").expect(200).body, body);
            }
        }
        // Byte by byte.
        for byte in request(FORBIDDEN[0], "") {
            conn.send([byte]);
        }
        judge(site, &mut conn, FORBIDDEN[0]);
    },
);

scenario!(
    invalid_bytes_in_a_target_are_refused,
    |s| s.http1("other versions refuse these bytes in a target").php("tell.php", TELL),
    |site| {
        for target in [&b"/tell.php?a\x01b"[..], b"/tell.php?a\x7fb", b"/tell.php?a\0b", b"/tell.php?a b"] {
            let mut conn = site.conn();
            let _ = conn.try_send(&request(target, "Connection: close\r\n"));
            assert_eq!(conn.try_response("GET").map(|answer| answer.status), Some(400), "{}", target.escape_ascii());
        }
    }
);

scenario!(
    the_access_log_has_a_raw_target_as_it_was_sent,
    howdah_only = "the reference keeps no access log",
    |s| s
        .http1("other versions refuse these bytes in a target")
        .php("tell.php", TELL)
        .setting("log.access", "\"../access.log\""),
    |site| {
        let mut conn = site.conn();
        conn.send(request(b"/tell.php?<a>=\xe9\"", "Connection: close\r\n"));
        let _ = words(&mut conn);
        let log = site.place().top.join("access.log");
        let mut text = String::new();
        let logged = howdah_tests::process::eventually(howdah_tests::process::PATIENCE, || {
            text = std::fs::read_to_string(&log).unwrap_or_default();
            text.contains("tell.php") && text.ends_with('\n')
        });
        assert!(logged && text.contains("\"GET /tell.php?<a>=\\xE9\\x22 HTTP/1.1\""), "{text}");
    },
);

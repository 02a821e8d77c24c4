//! Request bodies in scripts: raw, forms, multipart uploads, and PHP's limits on them.

use howdah_tests::{Part, Request, multipart, php, script_scenario};
use std::fs;

const INPUT: &str = php!("input/input.php");

/// Bytes that no transport may change, of any length.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_u32;
    let mut bytes = Vec::with_capacity(length);
    while bytes.len() < length {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.extend(state.to_be_bytes());
    }
    bytes.truncate(length);
    bytes
}

script_scenario!(
    raw_bodies_of_every_size_arrive_whole,
    |s| s.php("in.php", INPUT).php("echo.php", "echo file_get_contents('php://input');"),
    |site| {
        let mut conn = site.conn();
        for size in [1, 2, 100, 4095, 4096, 4097, 65535, 65536, 65537, 262_143, 262_144, 262_145, 1 << 20, 5_000_001] {
            let body = noise(size);
            let response = conn.exchange(&Request::post("/echo.php", "application/octet-stream", &body)).expect(200);
            assert!(response.body == body, "size {size}: {} bytes came back", response.body.len());
        }
        for method in ["PUT", "PATCH", "DELETE", "POST"] {
            let text =
                conn.exchange(&Request::new(method, "/in.php").header("Content-Type", "a/b").body("hello")).text();
            assert_eq!(text, format!("{method} 5 5d41402abc4b2a76b9719d911017c592 5"));
        }
    },
);

script_scenario!(
    chunked_bodies_arrive_whole,
    |s| s.php("echo.php", "echo file_get_contents('php://input');"),
    |site| {
        let body = noise(700_000);
        let chunks: Vec<&[u8]> = body.chunks(9_999).collect();
        let request = Request::new("POST", "/echo.php").header("Content-Type", "a/b").chunks(&chunks);
        let response = site.send(&request).expect(200);
        assert!(response.body == body, "{} bytes came back", response.body.len());
        assert_eq!(site.send(&Request::new("POST", "/echo.php").chunks(&[])).expect(200).text(), "");
    },
);

script_scenario!(
    input_can_be_read_twice_and_in_pieces,
    |s| { s.php("in.php", php!("input/input_can_be_read_twice_and_in_pieces.php")) },
    |site| {
        let body = "0123456789".repeat(50_000);
        assert_eq!(site.send(&Request::post("/in.php", "text/plain", body)).text(), "500000 0123456789 500000");
    },
);

script_scenario!(
    a_body_that_the_script_ignores_does_not_disturb_the_connection,
    |s| s.workers(1).php("ignore.php", "echo 'ignored';").php("echo.php", "echo file_get_contents('php://input');"),
    |site| {
        let mut conn = site.conn();
        for size in [10, 100_000, 3_000_000] {
            assert_eq!(conn.exchange(&Request::post("/ignore.php", "a/b", noise(size))).expect(200).text(), "ignored");
            assert_eq!(conn.exchange(&Request::post("/echo.php", "a/b", "next")).expect(200).text(), "next");
        }
    },
);

script_scenario!(
    forms_fill_post,
    |s| s.php("f.php", "echo json_encode([$_POST, file_get_contents('php://input')]);"),
    |site| {
        let body = "a=1&b[]=x&b[]=y&c[d][e]=z&sp=a+b%21";
        let seen = site.send(&Request::form("/f.php", body)).expect(200).json();
        assert_eq!(seen[0].to_string(), r#"{"a":"1","b":["x","y"],"c":{"d":{"e":"z"}},"sp":"a b!"}"#);
        assert_eq!(seen[1], body);
    },
);

const UPLOAD: &str = php!("input/upload.php");

script_scenario!(uploads_can_be_moved, |s| s.php("up.php", UPLOAD), |site| {
    let big = noise(1_500_000);
    let request = multipart(
        "/up.php",
        &[
            Part { name: "title", file: None, content: b"two files" },
            Part { name: "one", file: Some(("a.txt", "text/plain")), content: b"small" },
            Part { name: "many[]", file: Some(("b.bin", "application/x")), content: &big },
            Part { name: "many[]", file: Some(("c.txt", "text/plain")), content: b"" },
            Part { name: "none", file: Some(("", "application/octet-stream")), content: b"" },
        ],
    );
    let seen = site.send(&request).expect(200).json();
    assert_eq!(seen[0].to_string(), r#"{"title":"two files"}"#);
    assert_eq!(seen[1][0].to_string(), r#"["one","a.txt",0,"eb5c1399a871211c7e7ed732d15e3a8b",true,true,true]"#);
    assert_eq!(seen[1][1][1], "b.bin");
    assert_eq!(seen[1][2][2], 0, "an empty file is not an error");
    assert_eq!(seen[1][3][2], 4, "UPLOAD_ERR_NO_FILE");
    assert_eq!(seen[2], "", "php://input is empty after multipart");
    assert!(fs::read(site.place().top.join("marks/many0")).unwrap() == big);
});

script_scenario!(
    uploads_that_nobody_moves_are_removed,
    |s| s.php("up.php", "echo $_FILES['f']['tmp_name'];"),
    |site| {
        let request = multipart("/up.php", &[Part { name: "f", file: Some(("a", "b/c")), content: b"x" }]);
        let path = site.send(&request).expect(200).text();
        assert!(
            site.is_reference() || path.starts_with(&site.place().tmp.display().to_string()),
            "uploads go to TMPDIR, not {path}"
        );
        assert!(howdah_tests::process::eventually(howdah_tests::process::PATIENCE, || !std::path::Path::new(&path)
            .exists()));
    },
);

script_scenario!(
    upload_limits_are_phps,
    |s| s
        .ini("upload_max_filesize", "1000")
        .ini("post_max_size", "5000")
        .ini("max_file_uploads", "2")
        .ini("display_errors", "0")
        .php("up.php", "echo json_encode([$_POST, array_column($_FILES, 'error', 'name')]);")
        .expect_log("POST Content-Length of")
        .expect_log("Maximum number of allowable file uploads"),
    |site| {
        let file = |name: &'static str, content: &'static [u8]| Part { name, file: Some((name, "b/c")), content };
        let text =
            site.send(&multipart("/up.php", &[file("fits", &[1; 999]), file("big", &[1; 1001])])).expect(200).text();
        assert_eq!(text, r#"[[],{"fits":0,"big":1}]"#, "UPLOAD_ERR_INI_SIZE");
        let too_long = Request::form("/up.php", &format!("a=1&b={}", "x".repeat(6000)));
        assert_eq!(site.send(&too_long).expect(200).text(), "[[],[]]", "post_max_size empties $_POST");
        let text =
            site.send(&multipart("/up.php", &[file("a", b"1"), file("b", b"1"), file("c", b"1")])).expect(200).text();
        assert_eq!(text, r#"[[],{"a":0,"b":0}]"#);
    },
);

script_scenario!(
    bodies_over_the_servers_limit_get_413,
    |s| s.setting("http.max_body", "10000").php("in.php", INPUT),
    |site| {
        assert_eq!(site.send(&Request::post("/in.php", "a/b", noise(10_000))).status, 200);
        // The server may respond and close before it has read everything, so only the head is sent.
        let mut conn = site.conn();
        conn.send("POST /in.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10001\r\n\r\n");
        assert_eq!(conn.response("POST").status, 413);
        let mut conn = site.conn();
        conn.send("POST /in.php HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunk = format!("{:x}\r\n{}\r\n", 6000, "x".repeat(6000));
        conn.send(&chunk);
        conn.send(&chunk);
        assert_eq!(conn.response("POST").status, 413);
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
    },
);

script_scenario!(
    a_truncated_upload_never_reaches_php,
    |s| s.php("m.php", "require 'gate.php'; mark('ran'); echo 'ran';"),
    |site| {
        let mut conn = site.conn();
        conn.send("POST /m.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nonly this");
        conn.half_close();
        if let Some(response) = conn.try_response("POST") {
            assert_eq!(response.status, 400);
        }
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
        assert_eq!(site.marks("ran"), 0);
    },
);

script_scenario!(
    bad_chunks_get_400,
    |s| s.http1("chunks").php("m.php", "require 'gate.php'; mark('ran'); echo 'ran';"),
    |site| {
        for body in ["zz\r\nhello\r\n0\r\n\r\n", "5\r\nhello world\r\n0\r\n\r\n", "-1\r\n\r\n"] {
            let mut conn = site.conn();
            conn.send(format!("POST /m.php HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{body}"));
            if let Some(response) = conn.try_response("POST") {
                assert_eq!(response.status, 400, "{body:?}");
            }
        }
        assert_eq!(site.marks("ran"), 0);
    }
);

//! HTTP/1.1 on the wire: connections, framing, limits and timeouts.

use howdah_tests::{Conn, Request, Site, Version, php, scenario};

/// Sends bytes and returns the status of the response, or `None` if the server just closes.
fn status_of(site: &Site, bytes: impl AsRef<[u8]>) -> Option<u16> {
    let mut conn = site.conn();
    // The server may close while the rest is being written.
    let _ = conn.try_send(bytes.as_ref());
    conn.try_response("GET").map(|r| r.status)
}

scenario!(
    connections_are_kept,
    |s| s.http1("`Connection`").php("a.php", "echo $_SERVER['REMOTE_PORT'];").file("f.txt", "static"),
    |site| {
        let mut conn = site.conn();
        let port = conn.local_port().to_string();
        for _ in 0..5 {
            assert_eq!(conn.exchange(&Request::get("/a.php")).expect(200).text(), port);
            assert_eq!(conn.exchange(&Request::get("/f.txt")).expect(200).text(), "static");
            assert_eq!(conn.exchange(&Request::get("/none.txt")).status, 404);
        }
        let last = conn.exchange(&Request::get("/a.php").close());
        assert_eq!(last.header("connection").map(str::to_lowercase).as_deref(), Some("close"));
        assert!(conn.closed_by_server());
    }
);

scenario!(
    an_http_1_0_response_that_ends_with_the_connection_announces_that,
    |s| s.http1("HTTP/1.0").php("a.php", "echo 'a'; flush(); usleep(1000); echo 'b';"),
    |site| {
        let mut conn = site.conn();
        conn.send("GET /a.php HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n");
        let response = conn.response("GET").expect(200);
        if response.header("content-length").is_none() {
            assert_eq!(response.header("connection").map(str::to_lowercase).as_deref(), Some("close"));
            assert!(conn.closed_by_server());
        }
        assert_eq!(response.text(), "ab");
    },
);

scenario!(
    http_1_0_closes_unless_asked,
    |s| s.http1("HTTP/1.0").php("a.php", "echo str_repeat('x', 100000);"),
    |site| {
        let mut conn = site.conn();
        conn.send("GET /a.php HTTP/1.0\r\nHost: localhost\r\n\r\n");
        let response = conn.response("GET").expect(200);
        assert_eq!(response.header("transfer-encoding"), None, "HTTP/1.0 has no chunks");
        assert_eq!(response.body.len(), 100_000);
        assert!(conn.closed_by_server());
    }
);

scenario!(
    pipelined_requests_are_answered_in_order,
    |s| s
        .workers(4)
        .php("n.php", "usleep((10 - $_GET['n']) * 1000); echo $_GET['n'];")
        .php("p.php", "echo file_get_contents('php://input');")
        .file("f.txt", "static"),
    |site| {
        let mut conn = site.conn();
        let mut bytes = Vec::new();
        for n in 0..10 {
            bytes.extend(Request::get(&format!("/n.php?n={n}")).bytes());
            bytes.extend(Request::post("/p.php", "a/b", format!("body {n}")).bytes());
            bytes.extend(Request::get("/f.txt").bytes());
        }
        conn.send(bytes);
        for n in 0..10 {
            assert_eq!(conn.response("GET").expect(200).text(), n.to_string());
            assert_eq!(conn.response("POST").expect(200).text(), format!("body {n}"));
            assert_eq!(conn.response("GET").expect(200).text(), "static");
        }
    },
);

scenario!(
    a_request_in_single_bytes_is_understood,
    |s| s.php("p.php", "echo $_GET['q'], file_get_contents('php://input');"),
    |site| {
        let mut conn = site.conn();
        for byte in Request::post("/p.php?q=1", "a/b", "body").bytes() {
            conn.send([byte]);
        }
        assert_eq!(conn.response("POST").expect(200).text(), "1body");
    },
);

scenario!(
    unknown_length_is_chunked_and_the_connection_stays,
    |s| s
        .ini("output_buffering", "0")
        .php("c.php", php!("protocol/unknown_length_is_chunked_and_the_connection_stays.php")),
    |site| {
        let mut conn = site.conn();
        for n in 0..3 {
            let gate = site.gate(&format!("g{n}"));
            conn.send(Request::get(&format!("/c.php?n={n}")).bytes());
            let head = conn.head("GET");
            assert_eq!(head.header("transfer-encoding"), Some("chunked"));
            gate.release();
            assert_eq!(conn.read_rest(), b"ab");
        }
    },
);

scenario!(
    an_expected_100_continue_precedes_the_body,
    |s| s
        .php("p.php", "echo 'got ', file_get_contents('php://input'), isset($_SERVER['HTTP_EXPECT']);")
        .setting("http.max_body", "1000"),
    |site| {
        let mut conn = site.conn();
        conn.send("POST /p.php HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
        // The body is sent only after the interim response; without one the read below would fail.
        let mut interim = Vec::new();
        while !interim.ends_with(b"\r\n\r\n") {
            interim.push(conn.raw_byte().expect("an interim response"));
        }
        assert_eq!(String::from_utf8_lossy(&interim), "HTTP/1.1 100 Continue\r\n\r\n");
        conn.send("body");
        assert_eq!(conn.response("POST").expect(200).text(), "got body1");
        let mut conn = site.conn();
        conn.send("POST /p.php HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4000\r\n\r\n");
        let refused = conn.response("POST");
        assert_eq!((refused.status, refused.interim.len()), (413, 0));
    },
);

scenario!(
    malformed_requests_get_400,
    |s| s.http1("malformed bytes").php("a.php", "require 'gate.php'; mark('ran'); echo 'x';"),
    |site| {
        for bytes in [
            "GET\r\n\r\n",
            "GET /a.php\0 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a.php HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n",
            "GET /a.php HTTP/1.1\r\nHost: a\r\nContent-Length: abc\r\n\r\n",
            "GET /a.php HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
            "GET /a.php HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
            "GET /a.php HTTP/1.1\r\n\r\n",
            "GET /a.php%00b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET a.php HTTP/1.1\r\nHost: a\r\n\r\n",
            "\u{1}\u{2}\u{3}\r\n\r\n",
            "GET /a.php HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        ] {
            if let Some(status) = status_of(site, bytes) {
                assert_eq!(status, 400, "{bytes:?}");
            }
        }
        assert_eq!(site.marks("ran"), 0);
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
    }
);

scenario!(
    request_smuggling_is_refused,
    howdah_only = "nginx 1.22 accepts some of these and closes the connection",
    |s| s
        .http1("framing")
        .php("a.php", "require 'gate.php'; mark('ran'); echo 'x';")
        .php("evil.php", "require 'gate.php'; mark('smuggled');"),
    |site| {
        let inner = "GET /evil.php HTTP/1.1\r\nHost: a\r\n\r\n";
        let host = "POST /a.php HTTP/1.1\r\nHost: a\r\n";
        for bytes in [
            format!("{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}"),
            format!("{host}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{inner}"),
            format!("{host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{inner}"),
            format!("{host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{inner}"),
            format!("{host}Content-Length: 0, 0\r\n\r\n{inner}"),
            format!("{host}Content-Length: +0\r\n\r\n{inner}"),
        ] {
            let mut conn = site.conn();
            let _ = conn.try_send(bytes.as_bytes());
            conn.half_close();
            let first = conn.try_response("POST").map(|r| r.status);
            assert!(first.is_none_or(|s| s == 400 || s == 501 || s == 200), "{bytes:?}: {first:?}");
            if first == Some(200) {
                assert!(conn.try_head("GET").is_none(), "a second response on an ambiguous connection: {bytes:?}");
            }
        }
        assert_eq!(site.marks("smuggled"), 0);
    },
);

scenario!(long_targets_get_414, |s| s.php("a.php", "echo strlen($_GET['x']);"), |site| {
    assert_eq!(site.get_ok(&format!("/a.php?x={}", "y".repeat(3000))), "3000");
    assert_eq!(status_of(site, Request::get(&format!("/a.php?x={}", "y".repeat(17_000))).bytes()), Some(414));
},);

scenario!(
    big_headers_get_431,
    howdah_only = "nginx answers 400",
    |s| s.php("a.php", "echo strlen($_SERVER['HTTP_X']);"),
    |site| {
        let request = Request::get("/a.php").header("X", &"y".repeat(60_000));
        assert_eq!(site.send(&request).expect(200).text(), "60000");
        let long = Request::get("/a.php").header("X", &"y".repeat(100_000));
        let many = (0..6000).fold(Request::get("/a.php"), |r, i| r.header(&format!("X-{i}"), "some value"));
        for request in [long, many] {
            let status = status_of(site, request.bytes());
            // The HTTP/3 client respects the server's announced limit, once it has received it.
            let unsent = status.is_none() && Version::asked_for() == Some(Version::Three);
            assert!(status == Some(431) || unsent, "{status:?}");
        }
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
    },
);

scenario!(
    slow_heads_get_408,
    howdah_only = "nginx closes without an answer",
    |s| s
        .http1("a head that comes in parts")
        .time("http.header_timeout", "300ms")
        .setting("http.idle_timeout", "\"30s\""),
    |site| {
        let mut conn = site.conn();
        conn.send("GET / HTTP/1.1\r\nHost: a\r\n");
        assert_eq!(conn.try_response("GET").map(|r| r.status), Some(408));
        assert!(conn.closed_by_server());
    },
);

scenario!(
    slow_bodies_get_408,
    howdah_only = "the reference's timeout is a minute",
    |s| s.setting("http.client_timeout", "\"300ms\"").php("p.php", "require 'gate.php'; mark('ran');"),
    |site| {
        let mut conn = site.conn();
        conn.send("POST /p.php HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
        assert_eq!(conn.try_response("POST").map(|r| r.status), Some(408));
        assert_eq!(site.marks("ran"), 0);
    },
);

scenario!(
    idle_connections_are_closed_without_an_answer,
    howdah_only = "the reference's timeout is a minute",
    |s| s.setting("http.idle_timeout", "\"1s\"").file("f.txt", "x"),
    |site| {
        let mut fresh = site.conn();
        assert!(fresh.closed_by_server(), "a connection without a request");
        // If the client itself is as slow as the limit, it finds its connection closed: then it tries another one.
        let (mut kept, answer) = std::iter::repeat_with(|| {
            let mut conn = site.conn();
            conn.try_send(&Request::get("/f.txt").bytes()).ok()?;
            let answer = conn.try_response("GET")?;
            Some((conn, answer))
        })
        .take(20)
        .flatten()
        .next()
        .expect("an answer");
        assert_eq!(answer.expect(200).text(), "x");
        assert!(kept.closed_by_server());
    },
);

scenario!(
    trailers_are_read_and_ignored,
    |s| s
        .http1("trailers of chunks")
        .php("p.php", "echo file_get_contents('php://input'), isset($_SERVER['HTTP_X_TRAILER']) ? 'trailer' : '';"),
    |site| {
        let mut conn = site.conn();
        conn.send(
            "POST /p.php HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X-Trailer\r\n\r\n\
             4;ext=1\r\nbody\r\n0\r\nX-Trailer: 1\r\n\r\n",
        );
        assert_eq!(conn.response("POST").expect(200).text(), "body");
        assert_eq!(conn.exchange(&Request::post("/p.php", "a/b", "next")).expect(200).text(), "next");
    },
);

scenario!(methods_are_case_sensitive_and_any_word, |s| s.php("m.php", "echo $_SERVER['REQUEST_METHOD'];"), |site| {
    for method in ["PROPFIND", "MKCALENDAR", "PURGE", "M-SEARCH"] {
        let response = site.send(&Request::new(method, "/m.php"));
        assert!(
            response.status == 200 && response.text() == method || site.is_reference(),
            "{method}: {}",
            response.status
        );
    }
    assert_ne!(site.send(&Request::new("TRACE", "/m.php")).status, 200, "TRACE");
    // The translating client does not support targets without a path.
    if Version::asked_for().is_none() {
        let connect = status_of(site, "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\n\r\n");
        assert_ne!(connect, Some(200), "CONNECT");
    }
});

scenario!(
    http_2_works_with_prior_knowledge,
    howdah_only = "nginx speaks HTTP/2 only over TLS by default",
    |s| {
        s.workers(3)
            .never_https()
            .php("p.php", php!("protocol/http_2_works_with_prior_knowledge.php"))
            .php("big.php", "echo str_repeat('x', 3000000);")
            .file("f.bin", vec![7u8; 2_000_000])
    },
    |site| {
        let base = format!("http://127.0.0.1:{}", site.port());
        let curl = |arguments: &[&str]| {
            let output = std::process::Command::new("curl")
                .args(["-sS", "--max-time", "120", "--http2-prior-knowledge"])
                .args(arguments)
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        let host = format!("127.0.0.1:{}", site.port());
        assert_eq!(String::from_utf8_lossy(&curl(&[&format!("{base}/p.php")])), format!("HTTP/2.0 {host} http 0"));
        let upload = site.place().top.join("upload.bin");
        std::fs::write(&upload, vec![1u8; 1_000_000]).unwrap();
        let sent = curl(&["--data-binary", &format!("@{}", upload.display()), &format!("{base}/p.php")]);
        assert_eq!(String::from_utf8_lossy(&sent), format!("HTTP/2.0 {host} http 1000000"));
        assert_eq!(curl(&[&format!("{base}/big.php")]).len(), 3_000_000);
        assert_eq!(curl(&[&format!("{base}/f.bin")]), vec![7u8; 2_000_000]);
        let head = String::from_utf8_lossy(&curl(&["-I", &format!("{base}/p.php")])).into_owned();
        assert!(head.starts_with("HTTP/2 200"), "{head}");
    },
);

scenario!(
    http_2_streams_run_side_by_side,
    howdah_only = "nginx speaks HTTP/2 only over TLS by default",
    |s| s
        .workers(2)
        .php("hold.php", "require 'gate.php'; gate('g'); echo 'held';")
        .php("n.php", "echo str_repeat($_GET['n'] . ' ', 3000);"),
    |site| {
        let gate = site.gate("g");
        let paths: Vec<String> =
            std::iter::once("/hold.php".to_owned()).chain((1..40).map(|n| format!("/n.php?n={n}"))).collect();
        let mut left = paths.len();
        let answers = howdah_tests::h2::get_all(site.target(), &paths, |i| {
            left -= 1;
            assert!(i != 0 || left == 0, "the first stream waits until all others have ended");
            if left == 1 {
                gate.release();
            }
        });
        assert_eq!(answers[0].body, b"held");
        for (n, answer) in answers.iter().enumerate().skip(1) {
            assert!(answer.ok && answer.body == format!("{n} ").repeat(3000).into_bytes(), "stream {n}");
        }
    },
);

scenario!(silent_connections_are_harmless, |s| s.php("a.php", "echo 'ok';"), |site| {
    let idle: Vec<Conn> = (0..200).map(|_| site.conn()).collect();
    assert_eq!(site.get_ok("/a.php"), "ok");
    drop(idle);
    assert_eq!(site.get_ok("/a.php"), "ok");
});

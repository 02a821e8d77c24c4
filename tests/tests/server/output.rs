//! Responses of scripts: status, headers, cookies, and bodies that arrive when the script flushes them.

use howdah_tests::{Request, php, script_scenario};

script_scenario!(
    status_can_be_set_in_every_way,
    |s| s.php("s.php", php!("output/status_can_be_set_in_every_way.php")),
    |site| {
        let status = |how: &str| site.get(&format!("/s.php?how={how}")).status;
        for (how, expected) in [("code", 404), ("line", 418), ("http10", 503), ("status", 451), ("third", 202)] {
            assert_eq!(status(how), expected, "{how}");
        }
        for (how, expected) in [("location", 302), ("created", 201), ("seeother", 303), ("none", 200)] {
            assert_eq!(status(how), expected, "{how}");
        }
        let moved = site.get("/s.php?how=location");
        assert_eq!(moved.header("location"), Some("/elsewhere"));
        assert_eq!(moved.text(), "body");
    },
);

script_scenario!(
    a_status_lines_reason_is_kept,
    |s| s
        .http1("no other version has reason phrases")
        .php("s.php", "header('HTTP/1.1 599 '.$_GET['reason']); echo 'x';"),
    |site| {
        for reason in ["VeryOwnReason", &"A".repeat(300)] {
            let response = site.get(&format!("/s.php?reason={reason}"));
            assert_eq!((response.status, response.reason.as_str()), (599, reason));
        }
    },
);

script_scenario!(malformed_status_lines_do_no_harm, |s| s.php("s.php", "header($_GET['line']); echo 'ok';"), |site| {
    for line in ["HTTP/1.1", "HTTP/", "HTTP/1.1%20", "HTTP/1.1%20200"] {
        assert_eq!(site.get(&format!("/s.php?line={line}")).expect(200).text(), "ok", "{line}");
    }
    assert_eq!(site.get("/s.php?line=HTTP/1.1%20404%20").expect(404).text(), "ok");
    // PHP-FPM forwards a status of 0, which nginx does not accept from a response.
    let status = if site.is_reference() { 502 } else { 200 };
    assert_eq!(site.get("/s.php?line=HTTP/1.1%20abc").status, status);
    assert_eq!(site.get_ok("/ready.txt"), "ready\n");
});

script_scenario!(
    headers_and_cookies_keep_order_and_repetition,
    |s| { s.php("h.php", php!("output/headers_and_cookies_keep_order_and_repetition.php")) },
    |site| {
        let response = site.get("/h.php").expect(200);
        assert_eq!(response.all("x-one"), ["2"]);
        assert_eq!(response.all("x-two"), ["a", "b"]);
        assert_eq!(response.header("x-gone"), None);
        assert_eq!(response.header("x-lower"), Some("MiXed"));
        assert_eq!(response.header("content-type"), Some("text/plain; charset=utf-8"));
        let cookies = response.all("set-cookie");
        assert_eq!(cookies[0], "first=a%20b");
        assert!(cookies[1].starts_with("second=v; expires=Wed, 18 May 2033 03:33:20 GMT; Max-Age="), "{cookies:?}");
        assert!(cookies[1].ends_with("; path=/p; secure; HttpOnly; SameSite=Lax"), "{cookies:?}");
        assert_eq!(cookies.len(), 2);
    },
);

script_scenario!(
    the_default_type_and_powered_by_are_phps,
    |s| {
        s.ini("expose_php", "1")
            .php("d.php", "echo 'x';")
            .php("n.php", php!("output/the_default_type_and_powered_by_are_phps.php"))
    },
    |site| {
        let response = site.get("/d.php").expect(200);
        assert_eq!(response.header("content-type"), Some("text/html; charset=UTF-8"));
        assert!(response.header("x-powered-by").is_some_and(|v| v.starts_with("PHP/8.")), "{:?}", response.headers);
        assert_eq!(site.get("/n.php").header("x-powered-by"), None);
        assert_eq!(site.get("/n.php").header("content-type"), Some("text/x-own"));
    },
);

script_scenario!(
    header_injection_is_impossible,
    |s| s
        .ini("display_errors", "0")
        .php("i.php", "header(\"X-A: b\\r\\nX-Injected: 1\"); header(\"X-N: a\\0b\"); echo 'x';")
        .expect_log("Header may not contain"),
    |site| {
        let response = site.get("/i.php");
        assert_eq!(response.header("x-injected"), None);
        assert_eq!(response.header("x-n"), None);
    },
);

script_scenario!(
    empty_answers_are_framed,
    |s| s.php("e.php", "").php("204.php", "http_response_code(204);").php("304.php", "http_response_code(304);"),
    |site| {
        let mut conn = site.conn();
        assert_eq!(conn.exchange(&Request::get("/e.php")).expect(200).body, b"");
        assert_eq!(conn.exchange(&Request::get("/204.php")).status, 204);
        assert_eq!(conn.exchange(&Request::get("/304.php")).status, 304);
        assert_eq!(conn.exchange(&Request::get("/e.php")).expect(200).body, b"");
    },
);

script_scenario!(
    head_has_no_body_but_the_same_head,
    |s| s
        .php("h.php", "header('X-Method: ' . $_SERVER['REQUEST_METHOD']); header('Content-Length: 5'); echo 'hello';")
        .php("b.php", "echo str_repeat('x', 300000);"),
    |site| {
        let mut conn = site.conn();
        let head = conn.exchange(&Request::new("HEAD", "/h.php")).expect(200);
        assert_eq!(head.header("x-method"), Some("HEAD"));
        assert_eq!(conn.exchange(&Request::new("HEAD", "/b.php")).expect(200).body, b"");
        assert_eq!(conn.exchange(&Request::get("/h.php")).expect(200).text(), "hello");
    },
);

script_scenario!(
    big_bodies_arrive_whole,
    |s| s
        .php("b.php", "for ($i = 0; $i < (int) $_GET['n']; $i++) { echo str_repeat(chr(65 + $i % 26), 1000); }")
        .php("one.php", "echo str_repeat('0123456789', 2000000);"),
    |site| {
        let mut conn = site.conn();
        for n in [1, 15, 63, 64, 65, 66, 1000, 5000] {
            let body = conn.exchange(&Request::get(&format!("/b.php?n={n}"))).expect(200).body;
            assert_eq!(body.len(), n * 1000);
            assert!(
                body.chunks(1000).enumerate().all(|(i, c)| c.iter().all(|b| usize::from(*b) == 65 + i % 26)),
                "n={n}"
            );
        }
        assert_eq!(conn.exchange(&Request::get("/one.php")).expect(200).body.len(), 20_000_000);
    },
);

script_scenario!(
    a_content_length_set_by_the_script_is_honoured,
    |s| s.php("l.php", "header('Content-Length: 6'); echo 'sixsix';"),
    |site| {
        let response = site.get("/l.php").expect(200);
        assert_eq!((response.header("content-length"), response.text().as_str()), (Some("6"), "sixsix"));
    },
);

script_scenario!(
    a_download_keeps_its_content_length_while_it_streams,
    |s| {
        s.ini("output_buffering", "0")
            .php("l.php", php!("output/a_download_keeps_its_content_length_while_it_streams.php"))
    },
    |site| {
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/l.php").bytes());
        let head = conn.head("GET");
        assert_eq!(head.header("content-length"), Some("3000000"));
        gate.release();
        assert_eq!(conn.read_rest().len(), 3_000_000);
        assert_eq!(conn.exchange(&Request::get("/ready.txt")).expect(200).text(), "ready\n");
    },
);

script_scenario!(
    a_wrong_content_length_never_shifts_the_next_answer,
    howdah_only = "nginx passes the wrong length on and the client then waits or gives up",
    |s| s
        .php("long.php", "header('Content-Length: 3'); echo 'sixsix';")
        .php("short.php", "header('Content-Length: 9'); echo 'six';"),
    |site| {
        for path in ["/long.php", "/short.php"] {
            let mut conn = site.conn();
            conn.send(Request::get(path).bytes());
            let head = conn.head("GET");
            assert_eq!(head.status, 200);
            let mut body = Vec::new();
            while let Ok(Some(piece)) = conn.try_read_some() {
                body.extend(piece);
            }
            assert!(b"sixsix".starts_with(&body[..]), "{path}: {:?}", String::from_utf8_lossy(&body));
            assert_eq!(site.get_ok("/ready.txt"), "ready\n");
        }
    },
);

// `X-Accel-Buffering` makes nginx, which buffers by default, behave as Howdah always does.
script_scenario!(
    flushed_output_arrives_while_the_script_still_runs,
    |s| {
        s.ini("output_buffering", "0")
            .php("f.php", php!("output/flushed_output_arrives_while_the_script_still_runs.php"))
    },
    |site| {
        let (one, two) = (site.gate("one"), site.gate("two"));
        let mut conn = site.conn();
        conn.send(Request::get("/f.php").bytes());
        conn.head("GET");
        assert_eq!(conn.read_until("first"), "first");
        one.release();
        assert_eq!(conn.read_until("second"), "second");
        two.release();
        assert_eq!(conn.read_rest(), b"third");
    },
);

script_scenario!(
    server_sent_events_arrive_one_by_one,
    |s| s.php(
        "sse.php",
        "require 'gate.php'; header('Content-Type: text/event-stream'); header('X-Accel-Buffering: no');
        while (ob_get_level()) { ob_end_flush(); }
        for ($i = 0; $i < 5; $i++) { echo \"data: $i\\n\\n\"; flush(); gate(\"next$i\"); }"
    ),
    |site| {
        let gates: Vec<_> = (0..5).map(|i| site.gate(&format!("next{i}"))).collect();
        let mut conn = site.conn();
        conn.send(Request::get("/sse.php").header("Accept", "text/event-stream").bytes());
        let head = conn.head("GET");
        assert!(head.header("content-type").is_some_and(|v| v.starts_with("text/event-stream")), "{head:?}");
        for (i, gate) in gates.iter().enumerate() {
            assert_eq!(conn.read_until("\n\n"), format!("data: {i}\n\n"));
            gate.release();
        }
        assert_eq!(conn.read_rest(), b"");
    },
);

script_scenario!(
    implicit_flush_needs_no_flush,
    |s| s
        .ini("implicit_flush", "1")
        .ini("output_buffering", "0")
        .php("f.php", "require 'gate.php'; header('X-Accel-Buffering: no'); echo 'now'; gate('g'); echo 'end';"),
    |site| {
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/f.php").bytes());
        conn.head("GET");
        assert_eq!(conn.read_until("now"), "now");
        gate.release();
        assert_eq!(conn.read_rest(), b"end");
    },
);

script_scenario!(
    output_buffering_works,
    |s| {
        s.php("ob.php", php!("output/output_buffering_works.php"))
            .php("level.php", "echo ob_get_level(), ini_get('output_buffering');")
    },
    |site| {
        let response = site.get("/ob.php").expect(200);
        assert_eq!((response.text().as_str(), response.header("x-late")), ("KEPT open at the end", Some("yes")));
    },
);

script_scenario!(
    finish_request_answers_before_the_script_ends,
    |s| s.php(
        "f.php",
        "require 'gate.php'; echo 'done'; $a = fastcgi_finish_request(); gate('after'); echo 'never seen';
        mark($a && connection_status() === CONNECTION_NORMAL ? 'good' : 'bad');"
    ),
    |site| {
        let gate = site.gate("after");
        let response = site.get("/f.php").expect(200);
        assert_eq!(response.text(), "done");
        assert_eq!(site.marks("good") + site.marks("bad"), 0, "the script still waits");
        gate.release();
        site.wait_for_mark("good", 1);
    },
);

script_scenario!(
    finish_request_releases_the_connection_for_the_next_request,
    |s| {
        s.php("f.php", php!("output/finish_request_releases_the_connection_for_the_next_request.php"))
            .php("two.php", "echo 'two';")
    },
    |site| {
        let gate = site.gate("after");
        let mut conn = site.conn();
        assert_eq!(conn.exchange(&Request::get("/f.php")).expect(200).text(), "one");
        assert_eq!(conn.exchange(&Request::get("/two.php")).expect(200).text(), "two");
        gate.release();
        site.wait_for_mark("end", 1);
    },
);

script_scenario!(
    header_functions_report_the_actual_headers,
    |s| { s.php("h.php", php!("output/header_functions_report_the_actual_headers.php")) },
    |site| {
        let seen = site.send(&Request::get("/h.php").header("X-Sent", "s")).expect(200).json();
        assert_eq!(seen[0], "s");
        assert_eq!(seen[1], "s");
        assert_eq!(seen[2], false);
        assert!(seen[3].as_array().is_some_and(|l| l.iter().any(|h| h == "X-B: 2")), "{seen}");
        assert_eq!(seen[4], "1");
        assert_eq!(seen[5], 200);
    },
);

script_scenario!(
    headers_sent_names_file_and_line,
    |s| s
        .ini("display_errors", "0")
        .ini("output_buffering", "0")
        .expect_log("headers already sent")
        .php("h.php", php!("output/headers_sent_names_file_and_line.php")),
    |site| {
        let response = site.get("/h.php").expect(200);
        assert_eq!(response.text(), r#"x[true,"h.php",2]"#);
        assert_eq!(response.header("x-late"), None);
    },
);

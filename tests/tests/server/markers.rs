//! A hundred concurrent clients, each with its own marker in everything that a request can carry: no response, header,
//! cookie, session or upload may show another's. The same scripts in every mode.

use howdah_tests::{Part, Request, Response, Setup, Site, multipart, php, script_scenario};

/// One means by which a request carries its marker and a response returns it.
struct Feature {
    script: &'static str,
    code: &'static str,
    request: fn(&str) -> Request,
    check: fn(&str, &Response),
}

fn get(script: &str, mark: &str) -> Request {
    Request::get(&format!("/{script}?m={mark}"))
}

fn is_text(response: &Response, expected: &str) {
    let decoded = response.decoded();
    let text = String::from_utf8_lossy(&decoded);
    assert!(text == expected, "{expected:.100}: {} {text:.300}", response.status);
}

const REQUESTS: &[Feature] = &[
    Feature {
        script: "query.php",
        code: php!("markers/requests_query.php"),
        request: |mark| get("query.php", mark),
        check: |mark, response| is_text(response, &format!("{mark} m={mark} {mark} {mark}")),
    },
    Feature {
        script: "form.php",
        code: "echo json_encode([$_POST, file_get_contents('php://input')]);",
        request: |mark| Request::form("/form.php", &format!("m={mark}&l[]={mark}")),
        check: |mark, response| {
            is_text(response, &format!(r#"[{{"m":"{mark}","l":["{mark}"]}},"m={mark}&l[]={mark}"]"#));
        },
    },
    Feature {
        script: "upload.php",
        code: php!("markers/requests_upload.php"),
        request: |mark| {
            multipart(
                "/upload.php",
                &[
                    Part { name: "m", file: None, content: mark.as_bytes() },
                    Part { name: "f", file: Some((mark, "text/plain")), content: mark.repeat(9000).as_bytes() },
                ],
            )
        },
        check: |mark, response| is_text(response, &format!("{mark} {mark} whole")),
    },
    Feature {
        script: "input.php",
        code: php!("markers/requests_input.php"),
        request: |mark| {
            Request::new("PUT", "/input.php").header("Content-Type", "a/b").body(format!("{mark:>8}").repeat(500))
        },
        check: |mark, response| assert!(response.text().starts_with(&format!("{mark} 3992 ")), "{}", response.text()),
    },
    Feature {
        script: "headers.php",
        code: php!("markers/requests_headers.php"),
        request: |mark| Request::get("/headers.php").header("X-Mark", mark).header("Cookie", &format!("m={mark}")),
        check: |mark, response| {
            assert_eq!(usize::from(response.status), 200 + mark.len());
            assert_eq!(
                (response.header("x-mark"), response.all("x-more")),
                (Some(mark), vec![format!("a{mark}").as_str()])
            );
            assert_eq!(response.header("set-cookie"), Some(format!("mark={mark}").as_str()));
        },
    },
    Feature {
        script: "auth.php",
        code: "echo $_SERVER['PHP_AUTH_USER'] ?? 'nobody', ' ', $_SERVER['PHP_AUTH_PW'] ?? '', ' ', $_GET['m'];",
        request: |mark| match mark.as_bytes()[0] % 2 {
            0 => get("auth.php", mark).header("Authorization", "Basic dTpw"),
            _ => get("auth.php", mark),
        },
        check: |mark, response| {
            let who = if mark.as_bytes()[0] % 2 == 0 { "u p" } else { "nobody " };
            is_text(response, &format!("{who} {mark}"));
        },
    },
    Feature {
        script: "session.php",
        code: php!("markers/requests_session.php"),
        request: |mark| {
            get("session.php", mark).header("Cookie", &format!("PHPSESSID=session{}", mark.replace('.', "-")))
        },
        check: |mark, response| is_text(response, &format!("{mark} {}", 7 + mark.len())),
    },
];

const ANSWERS: &[Feature] = &[
    Feature {
        script: "buffer.php",
        code: php!("markers/answers_buffer.php"),
        request: |mark| get("buffer.php", mark),
        check: |mark, response| is_text(response, mark),
    },
    Feature {
        script: "flush.php",
        code: php!("markers/answers_flush.php"),
        request: |mark| get("flush.php", mark),
        check: |mark, response| is_text(response, &format!("{mark} {mark}")),
    },
    Feature {
        script: "events.php",
        code: php!("markers/answers_events.php"),
        request: |mark| get("events.php", mark).header("Accept", "text/event-stream"),
        check: |mark, response| is_text(response, &format!("data: {mark} 0\n\ndata: {mark} 1\n\ndata: {mark} 2\n\n")),
    },
    Feature {
        script: "finish.php",
        code: php!("markers/answers_finish.php"),
        request: |mark| get("finish.php", mark),
        check: |mark, response| {
            is_text(response, mark);
            assert_eq!((response.header("x-mark"), response.header("x-late")), (Some(mark), None));
        },
    },
    Feature {
        script: "throw.php",
        code: "echo 'before '; throw new Exception('thrown for ' . $_GET['m']);",
        request: |mark| get("throw.php", mark),
        check: |mark, response| {
            let text = response.text();
            assert!(text.starts_with("before ") && text.contains(&format!("thrown for {mark} ")), "{text}");
        },
    },
    Feature {
        script: "head.php",
        code: "header('X-Mark: ' . $_GET['m']); echo str_repeat($_GET['m'], 50);",
        request: |mark| Request::new("HEAD", &format!("/head.php?m={mark}")),
        check: |mark, response| assert_eq!((response.header("x-mark"), response.body.len()), (Some(mark), 0)),
    },
    Feature {
        script: "large.php",
        code: php!("markers/answers_large.php"),
        request: |mark| get("large.php", mark).header("Accept-Encoding", ["gzip", "br", "zstd"][mark.len() % 3]),
        check: |mark, response| is_text(response, &format!("{mark} ").repeat(20_000)),
    },
    Feature {
        script: "redirect.php",
        code: "header('Location: /next/' . $_GET['m']);",
        request: |mark| get("redirect.php", mark),
        check: |mark, response| {
            assert_eq!((response.status, response.header("location")), (302, Some(format!("/next/{mark}").as_str())));
        },
    },
];

fn features() -> impl Iterator<Item = &'static Feature> {
    REQUESTS.iter().chain(ANSWERS)
}

fn scripts(setup: Setup) -> Setup {
    let setup = setup.workers(4).ini("display_errors", "1").ini("html_errors", "0").expect_log("thrown for");
    features().fold(setup, |setup, feature| setup.php(feature.script, feature.code))
}

/// Each client goes through all features, each one starting at another, so that all combinations occur.
fn a_hundred_clients(site: &Site) {
    let all: Vec<&Feature> = features().collect();
    std::thread::scope(|scope| {
        for client in 0..100 {
            let all = &all;
            scope.spawn(move || {
                let mut conn = site.conn();
                for turn in 0..all.len() {
                    let feature = all[(client + turn) % all.len()];
                    let mark = format!("{client}.{turn}");
                    (feature.check)(&mark, &conn.exchange(&(feature.request)(&mark)));
                }
            });
        }
    });
}

script_scenario!(a_hundred_clients_see_only_their_own, scripts, |site| {
    a_hundred_clients(site);
    site.wait_for_mark("finished", 100);
});

//! `headers_send()`: interim responses reach the client before the final one, and never break it.

use howdah_tests::{Conn, Request, php, script_scenario};
use std::process::Command;

const HINTS: &str = php!("early_hints/hints.php");

/// Bytes of the connection up to `end`, or up to its close.
fn raw(conn: &mut Conn, end: Option<&str>) -> String {
    let mut bytes = Vec::new();
    while let Some(byte) = conn.raw_byte() {
        bytes.push(byte);
        if end.is_some_and(|end| bytes.ends_with(end.as_bytes())) {
            break;
        }
    }
    String::from_utf8(bytes).unwrap()
}

script_scenario!(
    hints_arrive_while_the_script_still_runs,
    howdah_only = "PHP-FPM sends no interim responses",
    |s| s.workers(1).php("h.php", HINTS),
    |site| {
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/h.php?gate=1").bytes());
        let hints = raw(&mut conn, Some("\r\n\r\n"));
        assert!(hints.starts_with("HTTP/1.1 103 Early Hints\r\n"), "{hints}");
        let lower = hints.to_lowercase();
        assert!(lower.contains("\r\nlink: </style.css>; rel=preload; as=style\r\n"), "{hints}");
        gate.release();
        let response = conn.response("GET").expect(404);
        assert_eq!((response.text().as_str(), response.header("x-final")), ("found nothing 1", Some("yes")));
        assert_eq!(response.header("link"), None);
        assert_eq!(
            conn.exchange(&Request::get("/ready.txt")).expect(200).text(),
            "ready\n",
            "the connection stays open"
        );
    },
);

script_scenario!(
    hints_come_before_an_answer_that_follows_at_once,
    howdah_only = "PHP-FPM sends no interim responses",
    |s| s.workers(2).php("h.php", HINTS),
    |site| {
        let mut conn = site.conn();
        for _ in 0..50 {
            conn.send(Request::get("/h.php").bytes());
            let hints = raw(&mut conn, Some("\r\n\r\n"));
            assert!(hints.starts_with("HTTP/1.1 103 "), "{hints}");
            assert_eq!(conn.response("GET").expect(404).text(), "found nothing 1");
        }
        // Pipelined requests: each response is preceded by its own hints.
        conn.send(
            [
                Request::get("/h.php").bytes(),
                Request::get("/h.php").bytes(),
                Request::get("/ready.txt").close().bytes(),
            ]
            .concat(),
        );
        let all = raw(&mut conn, None);
        let order: Vec<&str> = all.match_indices("HTTP/1.1 ").map(|(at, _)| &all[at + 9..at + 12]).collect();
        assert_eq!(order, ["103", "404", "103", "404", "200"], "{all}");
    },
);

script_scenario!(
    old_clients_get_only_the_final_response,
    howdah_only = "PHP-FPM sends no interim responses",
    |s| s.http1("HTTP/1.0").workers(1).php("h.php", HINTS),
    |site| {
        let mut conn = site.conn();
        conn.send("GET /h.php HTTP/1.0\r\nHost: x\r\n\r\n");
        let all = raw(&mut conn, None);
        assert!(!all.contains("103") && all.contains(" 404 ") && all.ends_with("found nothing 1"), "{all}");
    },
);

script_scenario!(
    other_statuses_send_the_answers_head,
    howdah_only = "PHP-FPM sends no interim responses",
    |s| { s.workers(1).php("h.php", php!("early_hints/other_statuses_send_the_answers_head.php")) },
    |site| {
        let response = site.get("/h.php").expect(202);
        assert_eq!((response.text().as_str(), response.header("x-sent")), ("sent refused", Some("1")));
    },
);

script_scenario!(
    hints_arrive_over_http_2_while_the_script_still_runs,
    howdah_only = "PHP-FPM sends no interim responses",
    |s| s.workers(1).php("h.php", HINTS),
    |site| {
        let gate = site.gate("g");
        let mut hinted = 0;
        let paths = ["/h.php?gate=1".to_owned(), "/ready.txt".to_owned()];
        let answers = howdah_tests::h2::get_all_with_hints(
            site.target(),
            &paths,
            |i| {
                hinted += 1;
                assert_eq!(i, 0);
                gate.release();
            },
            |_| {},
        );
        assert_eq!((hinted, answers[0].body.as_slice()), (1, &b"found nothing 1"[..]));
        assert_eq!(answers[1].body, b"ready\n");
    },
);

script_scenario!(
    hints_over_http_2_carry_the_headers_set_so_far,
    howdah_only = "PHP-FPM sends no interim responses",
    // curl's option for cleartext HTTP/2.
    |s| s.workers(1).php("h.php", HINTS).never_https(),
    |site| {
        let output = Command::new("curl")
            .args(["-sSi", "--max-time", "120", "--http2-prior-knowledge"])
            .arg(format!("http://127.0.0.1:{}/h.php", site.port()))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap().replace("\r\n", "\n");
        let (hints, answer) = text.split_once("\n\n").unwrap();
        assert_eq!(hints.replace(" \n", "\n"), "HTTP/2 103\nlink: </style.css>; rel=preload; as=style");
        assert!(answer.starts_with("HTTP/2 404") && answer.ends_with("\n\nfound nothing 1"), "{answer}");
        assert!(answer.contains("\nx-final: yes\n") && !answer.contains("\nlink:"), "{answer}");
    },
);

//! Failing servers, and several servers: the client's view, and the server that gets the next request.

use super::proxy::behind;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, Site, Upstream, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Runs with everything below `/p/` proxied to these servers, with additional settings.
fn several(servers: &[&Upstream], settings: &str, body: impl FnOnce(&mut Site)) {
    several_within(&[], servers, settings, body);
}

/// As `several`, with these durations.
fn several_within(times: &[(&str, &str)], servers: &[&Upstream], settings: &str, body: impl FnOnce(&mut Site)) {
    let urls: Vec<String> = servers.iter().map(|server| format!("\"{}\"", server.url())).collect();
    let proxy = format!("{{ to = [{}]{settings} }}", urls.join(", "));
    let set =
        |s: Setup| s.workers(1).setting("proxy.app", &proxy).setting("rule", "[{ path = \"/p/*\", proxy = \"app\" }]");
    let set = |s: Setup| times.iter().fold(set(s), |s, (name, time)| s.time(name, time));
    run(Mode::Classic, set, |site| {
        body(site);
        servers.iter().for_each(|server| server.cut());
    });
}

#[test]
fn an_unreachable_server_is_502_and_named_in_the_log() {
    let upstream = Upstream::absent();
    behind(&upstream, |site| {
        assert_eq!(site.get("/p/a").status, 502);
        assert_eq!(site.send(&Request::post("/p/a", "a/b", "body")).status, 502);
        let log = site.wait_for_log(&["502: http://127.0.0.1", "cannot connect", "target=/p/a"]);
        assert!(log.contains(&upstream.url()), "{log}");
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
    });
}

#[test]
fn a_recovered_server_gets_requests_again() {
    let mut upstream = Upstream::absent();
    let route = upstream.route();
    run(
        Mode::Classic,
        |s| s.workers(1).setting("rule", &route),
        |site| {
            for _ in 0..5 {
                assert_eq!(site.get("/p/").status, 502);
            }
            let serve = |peer: &mut howdah_tests::upstream::Peer| {
                while peer.head().is_some() {
                    peer.send(OK);
                }
            };
            upstream.listen(serve);
            assert_eq!(site.get_ok("/p/"), "ok");
            upstream.end();
            assert_eq!(site.get("/p/").status, 502);
            upstream.listen(serve);
            assert_eq!(site.get_ok("/p/"), "ok");
        },
    );
}

#[test]
fn a_response_that_breaks_off_does_not_look_complete() {
    let upstream = Upstream::start(|peer| {
        if let Some(head) = peer.head() {
            let coding = if head.contains("/p/chunked") { "transfer-encoding: chunked" } else { "content-length: 10" };
            let body = if head.contains("/p/chunked") { "3\r\nabc\r\n5\r\nde" } else { "abc" };
            peer.send(format!("HTTP/1.1 200 OK\r\n{coding}\r\n\r\n{body}"));
        }
    });
    behind(&upstream, |site| {
        for path in ["/p/chunked", "/p/length"] {
            let mut conn = site.conn();
            conn.send(Request::get(path).bytes());
            let _ = conn.head("GET").expect(200);
            let mut body = Vec::new();
            let broken = loop {
                match conn.try_read_some() {
                    Ok(Some(part)) => body.extend(part),
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            assert!(broken && body.starts_with(b"abc"), "{path}: {:?}", String::from_utf8_lossy(&body));
        }
        let _ = site.wait_for_log(&["response cut off"]);
    });
}

#[test]
fn an_invalid_response_is_502() {
    let answers = [
        "",
        "HTTP/1.1 200",
        "SMTP ready\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\r\n folded: b\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx y: z\r\n\r\n",
    ];
    let upstream = Upstream::start(move |peer| {
        if let Some(head) = peer.head() {
            let number: usize = head.split(['/', ' ']).nth(3).unwrap().parse().unwrap();
            peer.send(answers[number]);
        }
    });
    behind(&upstream, |site| {
        for (number, answer) in answers.iter().enumerate() {
            assert_eq!(site.get(&format!("/p/{number}")).status, 502, "{answer:?}");
        }
    });
    let endless = Upstream::start(|peer| {
        if peer.head().is_some() {
            peer.send("HTTP/1.1 200 OK\r\n");
            while peer.send(format!("x: {}\r\n", "y".repeat(1000))) {}
        }
    });
    behind(&endless, |site| assert_eq!(site.get("/p/").status, 502));
}

#[test]
fn a_server_that_does_not_respond_in_time_is_504_and_asked_once() {
    let upstream = Upstream::start(|peer| while peer.head().is_some() {});
    several(&[&upstream], ", response_timeout = \"200ms\"", |site| {
        assert_eq!(site.get("/p/").status, 504);
        assert_eq!(upstream.requests(), 1);
        let _ = site.wait_for_log(&["504: http://127.0.0.1", "`response_timeout`"]);
        upstream.wait_until_alone();
    });
}

#[test]
fn a_slow_client_does_not_count_towards_the_servers_timeout() {
    let upstream = Upstream::start(|peer| {
        while peer.head().is_some() {
            peer.bytes(4);
            peer.send(OK);
        }
    });
    several(&[&upstream], ", response_timeout = \"300ms\"", |site| {
        let mut conn = site.conn();
        conn.send("POST /p/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab");
        assert!(eventually(PATIENCE, || upstream.requests() == 1));
        std::thread::sleep(std::time::Duration::from_millis(800));
        conn.send("cd");
        assert_eq!(conn.response("POST").expect(200).text(), "ok");
    });
}

#[test]
fn an_early_response_arrives_although_the_body_does_not() {
    let upstream = Upstream::start(|peer| {
        while peer.head().is_some() {
            peer.send("HTTP/1.1 413 Too Much\r\ncontent-length: 4\r\n\r\nless");
            peer.wait_for_end();
        }
    });
    behind(&upstream, |site| {
        let mut conn = site.conn();
        conn.send("POST /p/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nbegin");
        assert_eq!(conn.response("POST").expect(413).text(), "less");
        assert!(conn.closed_by_server());
        upstream.wait_until_alone();
    });
}

#[test]
fn a_body_that_is_too_large_or_breaks_off_is_the_clients_fault() {
    let upstream = Upstream::start(|peer| {
        while peer.head().is_some() {
            peer.wait_for_end();
        }
    });
    let route = upstream.route();
    run(
        Mode::Classic,
        |s| s.workers(1).setting("rule", &route).setting("http.max_body", "1000"),
        |site| {
            let chunk = [b'x'; 700];
            assert_eq!(site.send(&Request::new("POST", "/p/").chunks(&[&chunk, &chunk])).status, 413);
            upstream.wait_until_alone();
            let mut conn = site.conn();
            conn.send("POST /p/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nno chunk\r\n");
            assert_eq!(conn.response("POST").status, 400);
            upstream.wait_until_alone();
        },
    );
}

#[test]
fn each_server_gets_its_share() {
    let (one, two) = (Upstream::saying(OK), Upstream::saying(OK));
    several(&[&one, &two], "", |site| {
        let mut conn = site.conn();
        for _ in 0..20 {
            let _ = conn.exchange(&Request::get("/p/")).expect(200);
        }
        assert_eq!((one.requests(), two.requests()), (10, 10));
        assert_eq!((one.connections(), two.connections()), (1, 1));
    });
}

#[test]
fn failed_requests_go_to_another_server_and_the_failing_one_is_out_for_a_while() {
    let (gone, works) = (Upstream::absent(), Upstream::saying(OK));
    several(&[&gone, &works], "", |site| {
        let mut conn = site.conn();
        for _ in 0..10 {
            // No part of it was sent, so even a request with a body may go to the other server.
            assert_eq!(conn.exchange(&Request::post("/p/", "a/b", "")).expect(200).text(), "ok");
        }
        assert_eq!(works.requests(), 10);
        let _ = site.wait_for_log(&["is out for 10s after 3 failures"]);
    });
}

#[test]
fn a_request_that_a_server_has_seen_is_repeated_only_if_that_does_no_harm() {
    // Accepts the request and disconnects.
    let breaks = || {
        Upstream::start(|peer| {
            peer.head();
        })
    };
    let (one, two) = (breaks(), breaks());
    several(&[&one, &two], "", |site| {
        assert_eq!(site.send(&Request::post("/p/", "a/b", "")).status, 502);
        assert_eq!(one.requests() + two.requests(), 1);
        assert_eq!(site.get("/p/").status, 502);
        assert_eq!(one.requests() + two.requests(), 3);
        assert_eq!(site.send(&Request::new("PUT", "/p/").body("x")).status, 502);
        assert_eq!(one.requests() + two.requests(), 4);
    });
}

#[test]
fn a_server_that_is_out_is_probed_by_one_request() {
    let (mut gone, works) = (Upstream::absent(), Upstream::saying(OK));
    let urls = [gone.url(), works.url()].map(|url| format!("\"{url}\"")).join(", ");
    let proxy = format!("{{ to = [{urls}] }}");
    let set = |s: Setup| {
        s.workers(1)
            .time("proxy.fail_timeout", "100ms")
            .setting("proxy.app", &proxy)
            .setting("rule", "[{ path = \"/p/*\", proxy = \"app\" }]")
    };
    run(Mode::Classic, set, |site| {
        for _ in 0..8 {
            assert_eq!(site.get_ok("/p/"), "ok");
        }
        let _ = site.wait_for_log(&["after 3 failures"]);
        gone.listen(|peer| {
            while peer.head().is_some() {
                peer.send(OK);
            }
        });
        assert!(eventually(PATIENCE, || site.get_ok("/p/") == "ok" && gone.requests() > 2));
        let _ = site.wait_for_log(&["is back"]);
        gone.cut();
        works.cut();
    });
}

#[test]
fn an_unhealthy_server_gets_no_requests() {
    let well = Arc::new(AtomicBool::new(true));
    let says = well.clone();
    let (checked, other) = (
        Upstream::start(move |peer| {
            while let Some(head) = peer.head() {
                let status = if head.contains("/health") && !says.load(SeqCst) { 503 } else { 200 };
                peer.send(format!("HTTP/1.1 {status} X\r\ncontent-length: 3\r\n\r\none"));
            }
        }),
        Upstream::saying("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntwo"),
    );
    several_within(&[("proxy.health_interval", "50ms")], &[&checked, &other], ", health = \"/health\"", |site| {
        let sees = |text: &str| (0..4).any(|_| site.get_ok("/p/") == text);
        assert!(sees("one") && sees("two"));
        well.store(false, SeqCst);
        let _ = site.wait_for_log(&["is unhealthy: /health has status 503"]);
        assert!(!sees("one"));
        well.store(true, SeqCst);
        let _ = site.wait_for_log(&["is healthy again"]);
        assert!(sees("one"));
    });
}

#[test]
fn no_more_requests_than_allowed_are_under_way_and_further_ones_wait_or_get_503() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = open.clone();
    let upstream = Upstream::start(move |peer| {
        while peer.head().is_some() {
            assert!(eventually(PATIENCE, || gate.load(SeqCst)));
            peer.send(OK);
        }
    });
    several_within(&[("proxy.connect_timeout", "300ms")], &[&upstream], ", max_connections = 1", |site| {
        let mut first = site.conn();
        first.send(Request::get("/p/").bytes());
        assert!(eventually(PATIENCE, || upstream.requests() == 1));
        let refused = site.get("/p/");
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        assert_eq!(upstream.requests(), 1);
        open.store(true, SeqCst);
        assert_eq!(first.response("GET").expect(200).text(), "ok");
        assert_eq!(site.get_ok("/p/"), "ok");
    });
}

#[test]
fn with_buffer_a_server_is_asked_once_the_body_is_there() {
    let upstream = Upstream::start(|peer| {
        while let Some(head) = peer.head() {
            let length: usize = howdah_tests::upstream::field(&head, "content-length").unwrap().parse().unwrap();
            let body = peer.bytes(length);
            let sum = body.iter().map(|&byte| u64::from(byte)).sum::<u64>();
            let text = format!("{length} {sum}");
            peer.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len()));
        }
    });
    several(&[&upstream], ", buffer = true", |site| {
        let mut conn = site.conn();
        // A small body, and one too large to be kept in memory.
        for size in [5, 3_000_000] {
            conn.send("POST /p/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
            conn.send(format!("{size:x}\r\n{}\r\n", "a".repeat(size)));
            // The client has not finished yet, and another request is served meanwhile.
            let before = upstream.requests();
            assert_eq!(site.get_ok("/ready.txt"), "ready\n");
            assert_eq!(upstream.requests(), before);
            conn.send("0\r\n\r\n");
            assert_eq!(conn.response("POST").expect(200).text(), format!("{size} {}", 97 * size));
        }
    });
}

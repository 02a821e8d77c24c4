//! Requests that are proxied to another server: data that the server and the client receive, forwarded as it arrives.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::upstream::field;
use howdah_tests::{Conn, Mode, Request, Setup, Site, Target, Upstream, run};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\nx-app: yes\r\n\r\nhello";

/// Runs with everything below `/p/` proxied to a server.
pub(super) fn behind(upstream: &Upstream, body: impl FnOnce(&mut Site)) {
    let route = upstream.route();
    let set = |s: Setup| s.workers(1).setting("rule", &route).file("here.txt", "mine");
    run(Mode::Classic, set, |site| {
        body(site);
        upstream.cut();
    });
}

#[test]
fn a_request_is_forwarded_and_its_response_returned() {
    let upstream = Upstream::saying(HELLO);
    behind(&upstream, |site| {
        let request = Request::get("/p/a%20b/../c?d=%2f&e").header("X-Mine", "1").header("Cookie", "a=b");
        let response = site.send(&request).expect(200);
        assert_eq!((response.text().as_str(), response.header("x-app")), ("hello", Some("yes")));
        let head = upstream.last_head();
        assert!(head.starts_with("GET /p/a%20b/../c?d=%2f&e HTTP/1.1\r\n"), "{head}");
        assert_eq!((field(&head, "x-mine"), field(&head, "cookie")), (Some("1"), Some("a=b")));
        assert_eq!(field(&head, "host"), Some("localhost"));
        assert_eq!(field(&head, "via"), Some("1.1 howdah"));
        // Paths not below it are served here.
        assert_eq!(site.get_ok("/here.txt"), "mine");
        assert_eq!(upstream.requests(), 1);
        let status = String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
        let line =
            format!("proxy {0}, {0}: up; 1 requests, 0 under way, 1 connections opened, 0 failures", upstream.url());
        assert!(status.contains(&line), "{status}");
    });
}

#[test]
fn a_rule_forwards_the_rewritten_path() {
    let upstream = Upstream::saying(HELLO);
    let rules =
        format!("[{{ path = \"~^/app/(.*)$\", rewrite = \"/inner/$1?from=rule\", proxy = \"{}\" }}]", upstream.url());
    run(
        Mode::Classic,
        |s| s.workers(1).setting("rule", &rules).file("here.txt", "mine"),
        |site| {
            assert_eq!(site.send(&Request::get("/app/a%20b?x=1")).expect(200).text(), "hello");
            let head = upstream.last_head();
            assert!(head.starts_with("GET /inner/a%20b?from=rule"), "{head}");
            assert_eq!(site.get_ok("/here.txt"), "mine");
            assert_eq!(upstream.requests(), 1);
            upstream.cut();
        },
    );
}

#[test]
fn connections_are_kept_for_the_next_request_and_closed_ones_are_not_used() {
    // Each connection accepts two requests and then ends without notice, as servers do with idle connections.
    let upstream = Upstream::start(|peer| {
        for _ in 0..2 {
            if peer.head().is_some() {
                peer.send(HELLO);
            }
        }
    });
    behind(&upstream, |site| {
        let mut conn = site.conn();
        for _ in 0..6 {
            assert_eq!(conn.exchange(&Request::get("/p/")).expect(200).text(), "hello");
        }
        assert_eq!((upstream.connections(), upstream.requests()), (3, 6));
        // A POST must not be retried, and need not be once the server has noticed the closed connection.
        for _ in 0..3 {
            upstream.wait_until_left();
            for _ in 0..2 {
                assert_eq!(conn.exchange(&Request::post("/p/", "text/plain", "")).expect(200).text(), "hello");
            }
        }
        assert_eq!(upstream.requests(), 12);
    });
}

#[test]
fn bodies_are_forwarded_both_ways_as_they_arrive() {
    // Echoes each chunk when it has arrived; the client sends the next one only then.
    let upstream = Upstream::start(|peer| {
        while let Some(head) = peer.head() {
            assert_eq!(field(&head, "transfer-encoding"), Some("chunked"));
            let mut all = String::new();
            loop {
                let size = peer.until("\r\n");
                let size = usize::from_str_radix(size.trim(), 16).unwrap();
                let chunk = peer.bytes(size + 2);
                if size == 0 {
                    break;
                }
                all.push_str(&String::from_utf8_lossy(&chunk[..size]));
            }
            peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
            for byte in all.bytes() {
                peer.send(format!("1\r\n{}\r\n", char::from(byte)));
            }
            peer.send("0\r\nx-trailer: dropped\r\n\r\n");
        }
    });
    behind(&upstream, |site| {
        let mut conn = site.conn();
        for method in ["POST", "GET", "PATCH"] {
            let response = conn.exchange(&Request::new(method, "/p/").chunks(&[b"abc", b"de", b"f"])).expect(200);
            assert_eq!(response.text(), "abcdef", "{method}");
            assert_eq!(response.header("content-length"), None);
        }
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn a_body_keeps_its_known_length_and_an_unknown_one_is_not_announced() {
    let upstream = Upstream::start(|peer| {
        while let Some(head) = peer.head() {
            let length = field(&head, "content-length").map_or(0, |length| length.parse().unwrap());
            let body = peer.bytes(length);
            peer.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()));
            peer.send(body);
        }
    });
    behind(&upstream, |site| {
        let mut conn = site.conn();
        assert_eq!(conn.exchange(&Request::post("/p/", "text/plain", "some")).expect(200).text(), "some");
        assert_eq!(field(&upstream.last_head(), "content-length"), Some("4"));
        assert_eq!(conn.exchange(&Request::post("/p/", "text/plain", "")).expect(200).text(), "");
        assert_eq!(field(&upstream.last_head(), "content-length"), Some("0"));
        assert_eq!(conn.exchange(&Request::get("/p/")).expect(200).text(), "");
        let head = upstream.last_head();
        assert_eq!((field(&head, "content-length"), field(&head, "transfer-encoding")), (None, None));
    });
}

#[test]
fn responses_without_a_body_and_to_head_end_with_their_head() {
    let upstream = Upstream::start(|peer| {
        while let Some(head) = peer.head() {
            let status = head.split(['/', ' ']).nth(3).unwrap().to_owned();
            let length = if status == "204" { "" } else { "content-length: 1234\r\n" };
            peer.send(format!("HTTP/1.1 {status} Some Words\r\n{length}x: y\r\n\r\n"));
        }
    });
    behind(&upstream, |site| {
        let mut conn = site.conn();
        let response = conn.exchange(&Request::new("HEAD", "/p/200"));
        assert_eq!((response.status, response.header("content-length")), (200, Some("1234")));
        let response = conn.exchange(&Request::get("/p/204"));
        assert_eq!((response.status, response.reason.as_str()), (204, "Some Words"));
        assert_eq!(conn.exchange(&Request::get("/p/304")).status, 304);
        assert_eq!(conn.exchange(&Request::new("HEAD", "/p/404")).status, 404);
        assert_eq!((upstream.connections(), upstream.requests()), (1, 4));
    });
}

#[test]
fn large_bodies_pass_through_in_little_memory_whichever_side_is_slow() {
    const LENGTH: usize = 64 << 20;
    let sending = Arc::new(AtomicUsize::new(0));
    let sent = sending.clone();
    let upstream = Upstream::start(move |peer| {
        while let Some(head) = peer.head() {
            if head.starts_with("PUT") {
                let mut left = LENGTH;
                while left > 0 {
                    left -= peer.bytes(left.min(1 << 20)).len();
                }
                peer.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone");
            } else {
                peer.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n"));
                let piece = vec![b'x'; 1 << 20];
                for _ in 0..LENGTH / piece.len() {
                    if !peer.send(&piece) {
                        return;
                    }
                    sent.fetch_add(1, SeqCst);
                }
            }
        }
    });
    let route = upstream.route();
    let set = |s: Setup| s.workers(1).measures_memory().setting("rule", &route).setting("http.max_body", "\"1G\"");
    run(Mode::Classic, set, |site| {
        let peak = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", site.howdah().pid())).unwrap();
            let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_owned();
            line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
        };
        let before = peak();
        let mut conn = site.conn();
        conn.send(format!("PUT /p/ HTTP/1.1\r\nHost: x\r\nContent-Length: {LENGTH}\r\n\r\n"));
        let piece = vec![b'y'; 1 << 20];
        for _ in 0..LENGTH / piece.len() {
            conn.send(&piece);
        }
        assert_eq!(conn.response("PUT").expect(200).text(), "done");
        // A client that starts reading when the server has sent as much as fits.
        let mut slow = site.conn();
        slow.send(Request::get("/p/").bytes());
        let mut got = 0;
        assert!(eventually(PATIENCE, || sending.load(SeqCst) > 0));
        let response = slow.head("GET");
        assert_eq!(response.header("content-length"), Some(LENGTH.to_string().as_str()));
        while let Some(part) = slow.read_some() {
            got += part.len();
        }
        assert_eq!(got, LENGTH);
        assert!(peak() - before < 16 << 20, "{} bytes more", peak() - before);
        upstream.cut();
    });
}

/// A server that sends each text that the test passes it; `next` waits for the next request, `end` closes.
fn told() -> (Upstream, Sender<&'static str>) {
    let (sender, receiver): (_, Receiver<&'static str>) = channel();
    let receiver = Mutex::new(receiver);
    let upstream = Upstream::start(move |peer| {
        while peer.head().is_some() {
            while let Ok(text) = receiver.lock().unwrap().recv() {
                match text {
                    "next" => break,
                    "end" => return,
                    text => peer.send(text),
                };
            }
        }
    });
    (upstream, sender)
}

#[test]
fn an_event_stream_is_not_delayed() {
    let (upstream, say) = told();
    behind(&upstream, |site| {
        for coding in ["", "gzip"] {
            let mut conn = site.conn();
            conn.send(Request::get("/p/").header("Accept-Encoding", coding).bytes());
            say.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
                .unwrap();
            let head = conn.head("GET");
            assert_eq!(head.header("content-type"), Some("text/event-stream"));
            // Each arrives before the server sends the next one.
            for _ in 0..3 {
                say.send("a\r\ndata: 12\n\n\r\n").unwrap();
                assert!(!conn.read_some().unwrap().is_empty());
            }
            say.send("0\r\n\r\n").unwrap();
            say.send("next").unwrap();
            conn.read_rest();
        }
        assert_eq!(upstream.connections(), 1);
        drop(say);
    });
}

#[test]
fn informational_responses_come_before_the_response() {
    let (upstream, say) = told();
    behind(&upstream, |site| {
        let mut conn = site.conn();
        conn.send(Request::get("/p/").bytes());
        say.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n").unwrap();
        let hints = conn.next_head();
        assert_eq!((hints.status, hints.header("link")), (103, Some("</a.css>")));
        say.send(HELLO).unwrap();
        assert_eq!(conn.response("GET").expect(200).text(), "hello");
        drop(say);
    });
}

#[test]
fn hop_by_hop_fields_stay_on_their_connection() {
    let upstream = Upstream::start(|peer| {
        while peer.head().is_some() {
            peer.send(
                "HTTP/1.1 200 OK\r\nconnection: keep-alive, x-secret\r\nkeep-alive: timeout=5\r\nx-secret: 1\r\n\
                 upgrade: h2c\r\ntransfer-encoding: chunked\r\ncontent-length: 99\r\nx-open: 1\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            );
        }
    });
    behind(&upstream, |site| {
        let request = Request::get("/p/")
            .header("Connection", "keep-alive, X-Forwarded-For, X-Hop, Via")
            .header("X-Forwarded-For", "6.6.6.6")
            .header("X-Hop", "1")
            .header("Keep-Alive", "1")
            .header("TE", "trailers, gzip")
            .header("Trailer", "x")
            .header("Upgrade", "h2c")
            .header("Proxy-Authorization", "Basic x")
            .header("Proxy-Connection", "keep-alive");
        let response = site.send(&request).expect(200);
        assert_eq!((response.text().as_str(), response.header("x-open")), ("ok", Some("1")));
        for name in ["x-secret", "keep-alive", "upgrade", "content-length"] {
            assert_eq!(response.header(name), None, "{name}");
        }
        let head = upstream.last_head();
        assert_eq!(field(&head, "x-forwarded-for"), Some("127.0.0.1"));
        assert_eq!(field(&head, "via"), Some("1.1 howdah"));
        for name in ["x-hop", "keep-alive", "te", "trailer", "upgrade", "connection", "proxy-authorization"] {
            assert_eq!(field(&head, name), None, "{name}");
        }
        // A forbidden upgrade is ignored: HTTP/2 in cleartext would bypass all decisions made here.
        let request = "GET /p/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n";
        let mut conn = site.conn();
        conn.send(request);
        let _ = conn.response("GET").expect(200);
        let head = upstream.last_head();
        assert_eq!((field(&head, "upgrade"), field(&head, "http2-settings")), (None, None));
    });
}

#[test]
fn a_client_cannot_hide_a_second_request_in_its_first() {
    let upstream = Upstream::saying(HELLO);
    behind(&upstream, |site| {
        for bad in [
            "POST /p/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /p/evil HTTP/1.1\r\n\r\n",
            "POST /p/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            "POST /p/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
            "POST /p/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
            "POST /p/ HTTP/1.1\r\nHost: x\r\nX: a\r\n Content-Length: 4\r\n\r\nabcd",
            "GET /p/ HTTP/1.1\r\nHost: x\r\nX : a\r\n\r\n",
            "GET /p/ HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
            "GET /p/\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
        ] {
            let mut conn = site.conn();
            conn.send(bad);
            let response = conn.response("GET");
            assert!((400..=501).contains(&response.status), "{bad:?}: {response:?}");
        }
        assert_eq!(upstream.requests(), 0);
    });
}

#[test]
fn a_trusted_proxy_is_believed_and_its_own_address_added() {
    let upstream = Upstream::saying(HELLO);
    let route = upstream.route();
    let set = |s: Setup| {
        s.workers(1)
            .setting("rule", &route)
            .setting("http.trusted_proxies", "[\"127.0.0.1\"]")
            .setting("http.trusted_headers", "[\"X-Forwarded-For\", \"X-Forwarded-Proto\", \"X-Forwarded-Host\"]")
    };
    run(Mode::Classic, set, |site| {
        let request = Request::get("/p/")
            .header("X-Forwarded-For", "6.6.6.6, 9.9.9.9")
            .header("X-Forwarded-Proto", "https")
            .header("X-Forwarded-Host", "shop.example")
            .header("X-Real-IP", "1.2.3.4")
            .header("Forwarded", "for=1.2.3.4");
        let _ = site.send(&request).expect(200);
        let head = upstream.last_head();
        let fields = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip", "forwarded"];
        let seen = fields.map(|name| field(&head, name));
        let expected =
            [Some("6.6.6.6, 9.9.9.9, 127.0.0.1"), Some("https"), Some("shop.example"), Some("9.9.9.9"), None];
        assert_eq!(seen, expected);
        upstream.cut();
    });
}

#[test]
fn settings_choose_the_fields_about_the_client() {
    let upstream = Upstream::saying(HELLO);
    let proxy = format!("{{ to = \"{}\", host = \"upstream\", forwarded = \"forwarded\" }}", upstream.url());
    let set =
        |s: Setup| s.workers(1).setting("proxy.app", &proxy).setting("rule", "[{ path = \"/p/*\", proxy = \"app\" }]");
    run(Mode::Classic, set, |site| {
        let _ = site
            .send(&Request::get("/p/").header("X-Forwarded-For", "6.6.6.6").header("X-Real-IP", "6.6.6.6"))
            .expect(200);
        let head = upstream.last_head();
        assert_eq!(field(&head, "host"), Some(format!("127.0.0.1:{}", upstream.port()).as_str()));
        assert_eq!(field(&head, "forwarded"), Some("for=127.0.0.1;proto=http;host=\"localhost\""));
        assert_eq!((field(&head, "x-forwarded-for"), field(&head, "x-real-ip")), (None, None));
        upstream.cut();
    });
}

#[test]
fn a_request_ends_upstream_when_its_client_leaves() {
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    let upstream = Upstream::start(move |peer| {
        if let Some(head) = peer.head() {
            if head.starts_with("GET /p/stream") {
                peer.send("HTTP/1.1 200 OK\r\n\r\nbegin");
            }
            count.fetch_add(1, SeqCst);
            peer.wait_for_end();
        }
    });
    behind(&upstream, |site| {
        for (number, path) in ["/p/wait", "/p/stream"].iter().enumerate() {
            let mut conn = site.conn();
            conn.send(Request::get(path).bytes());
            assert!(eventually(PATIENCE, || begun.load(SeqCst) == number + 1));
            if *path == "/p/stream" {
                let _ = conn.head("GET");
                assert_eq!(conn.read_until("begin"), "begin");
            }
            conn.reset();
            upstream.wait_until_alone();
        }
    });
}

#[test]
fn old_clients_and_http_2_are_served_too() {
    let upstream = Upstream::start(|peer| {
        while peer.head().is_some() {
            peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
        }
    });
    behind(&upstream, |site| {
        let mut conn = site.conn();
        conn.send("GET /p/ HTTP/1.0\r\nHost: x\r\n\r\n");
        let response = conn.response("GET").expect(200);
        assert_eq!((response.text().as_str(), response.header("transfer-encoding")), ("abcdef", None));
        let paths = ["/p/1".to_owned(), "/p/2".to_owned()];
        for answer in howdah_tests::h2::get_all(site.target(), &paths, |_| {}) {
            assert_eq!((answer.ok, answer.body.as_slice()), (true, &b"abcdef"[..]));
        }
        assert_eq!(field(&upstream.last_head(), "via"), Some("2 howdah"));
        assert!(upstream.last_head().contains(" HTTP/1.1\r\n"));
    });
}

#[test]
fn http_1_0_servers_are_understood() {
    let upstream = Upstream::start(|peer| {
        if peer.head().is_some() {
            peer.send("HTTP/1.0 200 Fine\r\ncontent-type: text/plain\r\n\r\nup to the end");
        }
    });
    behind(&upstream, |site| {
        let mut conn = site.conn();
        for _ in 0..3 {
            assert_eq!(conn.exchange(&Request::get("/p/")).expect(200).text(), "up to the end");
        }
        assert_eq!(upstream.connections(), 3);
    });
}

#[test]
fn a_request_in_a_loop_of_proxies_ends() {
    let upstream = Upstream::absent();
    let route = format!("[{{ path = \"/p/*\", proxy = \"http://127.0.0.1:{}\" }}]", upstream.port());
    let mut upstream = upstream;
    run(
        Mode::Classic,
        |s| s.workers(1).setting("rule", &route),
        |site| {
            // Requests there are proxied back to this server.
            let back = site.target().clone();
            upstream.listen(move |peer| {
                while let Some(head) = peer.head() {
                    let Target::Tcp(_) = &back else { return };
                    let mut conn = Conn::open(&back);
                    conn.send(format!("{head}\r\n\r\n"));
                    let response = conn.response("GET");
                    peer.send(format!("HTTP/1.1 {} X\r\ncontent-length: 0\r\n\r\n", response.status));
                }
            });
            assert_eq!(site.get("/p/").status, 508);
            assert_eq!(upstream.requests(), 8);
            upstream.cut();
        },
    );
}

#[test]
fn a_unix_socket_can_be_the_upstream() {
    let set = |s: Setup| {
        s.workers(1)
            .unix_listener()
            .time("proxy.keep_alive_timeout", "1s")
            .setting("proxy.app", "{ to = \"unix:@TOP@/run/http.sock\" }")
            .setting("rule", "[{ path = \"/q/*\", proxy = \"app\" }]")
    };
    // The target is the server's own socket, so the request loops until that is detected.
    run(Mode::Classic, set, |site| {
        assert_eq!(site.get("/q/f.txt").status, 508);
        let status = String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
        assert!(status.contains("/run/http.sock: up; 8 requests, 0 under way"), "{status}");
    });
}

#[test]
fn each_site_has_its_own_proxy_routes() {
    let shop = Upstream::saying("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nshop");
    let blog = Upstream::saying("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nblog");
    let both = Upstream::saying("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nboth");
    let route = |proxy: &str| format!("path = \"/p/*\"\nproxy = \"{proxy}\"\n");
    let of_shop = format!("hosts = \"shop.example\"\nroot = \"../../root\"\n[[rule]]\n{}", route(&shop.url()));
    let rest = format!(
        "[[site]]\nhosts = \"blog.example\"\nroot = \"../../root\"\n[[site.rule]]\n{}\
         [[site.rule]]\npath = \"/q/*\"\nproxy = \"both\"\n\
         [[site]]\nhosts = \"localhost\"\nroot = \"../../root\"\n",
        route(&blog.url())
    );
    let set = |s: Setup| {
        s.workers(1)
            .file("../run/conf.d/10-shop.toml", &of_shop)
            .file("../run/conf.d/20-rest.toml", &rest)
            .setting("proxy.both", &format!("{{ to = \"{}\" }}", both.url()))
            .setting("rule", "[{ path = \"/p/*\", proxy = \"both\" }]")
    };
    run(Mode::Classic, set, |site| {
        let get = |host: &str, path: &str| {
            let mut conn = site.conn();
            conn.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
            let response = conn.response("GET");
            (response.status, response.text())
        };
        // The paths are the same in both sites, including in the caches.
        for _ in 0..2 {
            for (host, path, text) in [
                ("shop.example", "/p/x", "shop"),
                ("blog.example", "/p/x", "blog"),
                ("blog.example", "/q/x", "both"),
                // It has no rules, so those of the top level apply.
                ("localhost", "/p/x", "both"),
            ] {
                assert_eq!(get(host, path), (200, text.to_owned()), "{host}{path}");
            }
        }
        assert_eq!(get("shop.example", "/q/x").0, 404);
        for upstream in [&shop, &blog, &both] {
            upstream.cut();
        }
    });
}

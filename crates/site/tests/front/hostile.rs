//! A hostile script, or a bug in the server: the harm must be limited to that request.

use crate::http2::{body, connect, request, run};
use crate::support::{Client, Server, eventually, settings};
use bytes::Bytes;
use h2::Reason;
use howdah_config::ByteSize;
use howdah_pool::InterimSink;
use http::{Request, StatusCode};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn ask(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

/// Sends an informational response with a word that must not be found anywhere else.
fn send_interim(to: &Arc<dyn InterimSink>) {
    to.interim(103, &[(Bytes::from_static(b"X-Injected"), Bytes::from_static(b"yes"))]);
}

fn head_with_its_interim_ones(client: &mut Client) -> (usize, u16) {
    let mut interim = 0;
    loop {
        let head = client.head();
        if head.status >= 200 {
            return (interim, head.status);
        }
        interim += 1;
    }
}

#[test]
fn an_informational_response_precedes_its_response_and_never_interrupts_it() {
    let server = Server::start();
    let mut client = server.connect();
    client.send(ask("/stream.php"));
    let late = server.interim_of(1);
    server.stand.pipe.push("first", true);
    assert_eq!(head_with_its_interim_ones(&mut client), (0, 200));
    assert_eq!(client.chunk().unwrap(), b"first");
    for _ in 0..10 {
        send_interim(&late);
        server.stand.pipe.push("more", true);
        assert_eq!(client.chunk().unwrap(), b"more");
    }
    server.stand.pipe.end();
    assert_eq!(client.chunk(), None);
    // Between two responses, and while the next request runs.
    send_interim(&late);
    client.send(ask("/a.txt"));
    assert_eq!(client.response().text(), "static content");
    client.send(ask("/hang.php"));
    let own = server.interim_of(2);
    for _ in 0..10 {
        send_interim(&late);
    }
    own.interim(102, &[]);
    assert_eq!(client.head().status, 102, "the first that comes is the request's own");
}

#[test]
fn many_informational_responses_in_a_row_come_before_the_response_up_to_a_number() {
    let server = Server::start();
    let mut client = server.connect();
    for number in 1..=3 {
        client.send(ask("/wait.php"));
        let sender = server.interim_of(number);
        for _ in 0..1000 {
            send_interim(&sender);
        }
        server.stand.pipe.push("x", true);
        assert_eq!(head_with_its_interim_ones(&mut client), (32, 200));
        assert_eq!(client.chunk().unwrap(), b"x");
        server.stand.pipe.end();
        assert_eq!(client.chunk(), None);
        server.stand.pipe.begin_again();
    }
}

#[test]
fn pipelined_requests_get_no_informational_responses_of_earlier_ones() {
    let server = Server::start();
    let mut client = server.connect();
    client.send([ask("/vars.php"), ask("/hang.php")].concat());
    let first = server.interim_of(1);
    let _second = server.interim_of(2);
    let response = client.response();
    assert_eq!(response.status, 200);
    // `first` may belong to either request by now; only a request's own informational responses are accepted.
    drop(first);
    let own = server.interim_of(2);
    own.interim(103, &[]);
    assert_eq!(client.head().status, 103);
}

#[test]
fn informational_responses_for_a_client_that_reads_nothing_are_bounded() {
    let server = Server::start();
    let mut client = server.connect();
    client.send(ask("/hang.php"));
    let sender = server.interim_of(1);
    let value = Bytes::from(vec![b'v'; 8000]);
    for _ in 0..10_000 {
        sender.interim(103, &[(Bytes::from_static(b"X"), value.clone())]);
    }
    client.close_write();
    drop(sender);
    let mut server = server;
    server.shutdown(std::time::Duration::ZERO);
    let all = client.rest();
    assert!(all.matches("HTTP/1.1 103 ").count() >= 1, "some pass");
    assert!(all.len() <= 64 << 10, "{} bytes", all.len());
}

#[test]
fn over_http_2_too_informational_responses_are_bounded_and_stop_at_the_final_one() {
    let server = Server::start();
    run(async {
        let (mut sender, _connection) = connect(&server).await;
        let (mut streaming, _) = sender.send_request(request("GET", "/wait.php"), true).unwrap();
        let interim = server.interim_of(1);
        for _ in 0..10_000 {
            interim.interim(103, &[(Bytes::from_static(b"x-n"), Bytes::from_static(b"v"))]);
        }
        server.stand.pipe.push("first", true);
        let mut informed = 0;
        let response = std::future::poll_fn(|cx| {
            while let std::task::Poll::Ready(Some(_)) = streaming.poll_informational(cx) {
                informed += 1;
            }
            std::pin::Pin::new(&mut streaming).poll(cx)
        })
        .await
        .unwrap();
        assert!((1..=32).contains(&informed), "{informed}");
        for _ in 0..10 {
            send_interim(&interim);
        }
        server.stand.pipe.end();
        assert_eq!(body(response.into_body()).await, b"first");
        send_interim(&interim);
        let (next, _) = sender.send_request(request("GET", "/a.txt"), true).unwrap();
        assert_eq!(body(next.await.unwrap().into_body()).await, b"static content");
    });
}

#[test]
fn informational_responses_with_too_many_names_are_harmless() {
    let server = Server::start();
    for n in [1001, 24_577, 30_000] {
        let many: Vec<_> = (0..n).map(|i| (format!("X-{i}").into(), Bytes::new())).collect();
        let same = vec![(Bytes::from_static(b"X"), Bytes::new()); n];
        let before = server.stand.requests.load(Ordering::SeqCst);
        let mut client = server.connect();
        client.send(ask("/hang.php"));
        let sender = server.interim_of(before + 1);
        sender.interim(103, &many);
        sender.interim(103, &same);
        sender.interim(102, &[]);
        assert_eq!(client.head().status, 102);
        run(async {
            let (mut client, _connection) = connect(&server).await;
            let (mut hanging, _) = client.send_request(request("GET", "/hang.php"), true).unwrap();
            let sender = server.interim_of(before + 2);
            sender.interim(103, &many);
            sender.interim(103, &same);
            sender.interim(102, &[]);
            let first = std::future::poll_fn(|cx| hanging.poll_informational(cx)).await.unwrap().unwrap();
            assert_eq!(first.status(), 102);
        });
    }
    assert_eq!(server.metrics.request_panics.get(), 0);
}

/// Settings with which a test can send a long head.
fn with_long_bodies() -> Server {
    let mut settings = settings();
    settings.http.max_body = Some(ByteSize(10 << 20));
    settings.http.body_memory = ByteSize(10 << 20);
    Server::with(settings)
}

#[test]
fn a_response_with_too_many_or_too_long_header_lines_is_a_500_and_others_are_not_touched() {
    let server = with_long_bodies();
    let names = |n: usize| (0..n).map(|i| format!("X-{i}=v\n")).collect::<String>();
    let cookies = |n: usize| "Set-Cookie=a\n".repeat(n);
    for (lines, expected) in [
        (names(999), 200),
        (cookies(999), 200),
        (names(1001), 500),
        (names(24_577), 500),
        (names(30_000), 500),
        (cookies(170_000), 500),
        (format!("X={}\n", "v".repeat(200 << 10)), 200),
        (format!("X={}\n", "v".repeat(300 << 10)), 500),
        (format!("{}=v\n", "X".repeat(300 << 10)), 500),
        (format!("X={}\n", "v".repeat(1000)).repeat(300), 500),
    ] {
        let spelled = format!("200\n{lines}");
        let mut client = server.connect();
        client.send(format!("POST /raw.php HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", spelled.len()));
        client.send(&spelled);
        client.send(ask("/a.txt"));
        let label = &spelled[..spelled.len().min(30)];
        assert_eq!(client.response().status, expected, "{label}");
        if expected == 200 {
            assert_eq!(client.response().text(), "static content", "the connection goes on");
        }
        if expected == 500 || lines.starts_with("X-0") {
            run(async {
                let (mut sender, _connection) = connect(&server).await;
                let (response, mut upload) = sender.send_request(request("POST", "/raw.php"), false).unwrap();
                let (other, _) = sender.send_request(request("GET", "/a.txt"), true).unwrap();
                upload.reserve_capacity(spelled.len());
                send_all(&mut upload, Bytes::from(spelled.clone())).await;
                // A client's own limit on a field list may apply first if everything is sent.
                if expected == 500 {
                    assert_eq!(response.await.unwrap().status(), 500, "{label}");
                }
                assert_eq!(body(other.await.unwrap().into_body()).await, b"static content");
            });
        }
    }
    assert_eq!(server.metrics.request_panics.get(), 0);
}

async fn send_all(stream: &mut h2::SendStream<Bytes>, mut data: Bytes) {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        while stream.capacity() == 0 {
            std::future::poll_fn(|cx| stream.poll_capacity(cx)).await.unwrap().unwrap();
        }
        let part = data.split_to(stream.capacity().min(data.len()));
        stream.send_data(part, data.is_empty()).unwrap();
    }
}

#[test]
fn a_panic_ends_only_its_request_on_the_connection() {
    let server = Server::start();
    let mut client = server.connect();
    client.send([ask("/a.txt"), ask("/panic.php"), ask("/a.txt")].concat());
    assert_eq!(client.response().text(), "static content");
    assert_eq!(client.response().status, 500);
    assert_eq!(client.response().text(), "static content", "a request that was sent ahead is answered");
    assert_eq!(server.metrics.request_panics.get(), 1);
    client.send(ask("/torn.php"));
    let rest = client.rest();
    assert!(!rest.ends_with("0\r\n\r\n"), "a response that ended early does not look complete: {rest}");
    assert_eq!(server.metrics.request_panics.get(), 2);
    run(async {
        let (mut sender, _connection) = connect(&server).await;
        let (hanging, _) = sender.send_request(request("GET", "/stream.php"), true).unwrap();
        let (panicking, _) = sender.send_request(request("GET", "/panic.php"), true).unwrap();
        assert_eq!(panicking.await.unwrap().status(), StatusCode::INTERNAL_SERVER_ERROR);
        let (torn, _) = sender.send_request(request("GET", "/torn.php"), true).unwrap();
        let error = match torn.await {
            Ok(response) => response.into_body().data().await.unwrap().unwrap_err(),
            // A reset may overtake the head.
            Err(error) => error,
        };
        assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
        server.stand.pipe.push("untouched", true);
        server.stand.pipe.end();
        assert_eq!(body(hanging.await.unwrap().into_body()).await, b"untouched");
    });
    assert_eq!(server.metrics.request_panics.get(), 4);
    eventually("the end of all connections' requests", || server.get("/a.txt").status == 200);
}

#[test]
fn over_http_2_a_body_that_is_not_as_long_as_announced_is_cut_with_an_error() {
    for (announced, parts, ends) in [
        ("5", &["0123456789"][..], None),
        ("5", &["012", "345", "6"], None),
        ("20", &["0123456789"], None),
        ("20", &[], None),
        ("0", &["0"], None),
        ("10", &["0123456789"], Some("0123456789")),
        ("10", &["01234", "56789"], Some("0123456789")),
        ("0", &[], Some("")),
    ] {
        let server = Server::start();
        run(async {
            let (mut sender, _connection) = connect(&server).await;
            let (response, _) = sender.send_request(request("GET", &format!("/lie.php?{announced}")), true).unwrap();
            for part in parts {
                server.stand.pipe.push(part, true);
            }
            server.stand.pipe.end();
            let mut sent = Vec::new();
            // A reset may overtake the head.
            let mut outcome = Ok(());
            match response.await {
                Err(error) => outcome = Err(error),
                Ok(response) => {
                    let mut stream = response.into_body();
                    while let Some(data) = stream.data().await {
                        match data {
                            Ok(data) => sent.extend_from_slice(&data),
                            // Otherwise it would be logged repeatedly.
                            Err(error) => {
                                outcome = Err(error);
                                break;
                            }
                        }
                    }
                }
            }
            let label = format!("{announced} {parts:?}");
            match ends {
                Some(whole) => {
                    outcome.expect(&label);
                    assert_eq!(sent, whole.as_bytes(), "{label}");
                }
                None => {
                    assert_eq!(outcome.unwrap_err().reason(), Some(Reason::INTERNAL_ERROR), "{label}");
                    assert!(sent.len() as u64 <= announced.parse().unwrap(), "{label}: {sent:?}");
                }
            }
        });
    }
}

#[test]
fn over_http_2_a_response_to_head_may_announce_a_length() {
    let server = Server::start();
    run(async {
        let (mut sender, _connection) = connect(&server).await;
        let (response, _) = sender.send_request(request("HEAD", "/lie.php?20"), true).unwrap();
        let response = response.await.unwrap();
        assert_eq!(response.headers()["content-length"], "20");
        assert!(body(response.into_body()).await.is_empty());
    });
}

#[test]
fn transfer_codings_other_than_chunked_are_refused_and_the_body_is_not_parsed() {
    let server = Server::start();
    for coding in [
        "gzip, chunked",
        "identity, chunked",
        "chunked, chunked",
        "xchunked, chunked",
        "gzip\r\nTransfer-Encoding: chunked",
    ] {
        let mut client = server.connect();
        client.send(format!(
            "POST /echo.php HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: {coding}\r\n\r\n2\r\nhi\r\n0\r\n\r\n{}",
            ask("/a.txt")
        ));
        let response = client.response();
        assert_eq!(response.status, 501, "{coding}");
        assert_eq!(response.header("connection"), Some("close"), "{coding}");
        client.close_write();
        assert!(client.is_closed(), "{coding}");
    }
    assert_eq!(server.stand.requests.load(Ordering::SeqCst), 0);
}

#[test]
fn an_invalid_host_is_refused_wherever_a_request_names_it() {
    let server = Server::start();
    for head in [
        "GET http://evil:80x/vars.php HTTP/1.1\r\nHost: h\r\n",
        "GET http://u@h/vars.php HTTP/1.1\r\nHost: h\r\n",
        "GET http://h:99999/vars.php HTTP/1.1\r\nHost: h\r\n",
        "GET http://h/vars.php HTTP/1.1\r\nHost: evil:80x\r\n",
        "GET http://evil:80x/vars.php HTTP/1.0\r\n",
    ] {
        let mut client = server.connect();
        assert_eq!(client.ask(&format!("{head}\r\n")).status, 400, "{head}");
    }
    let plain = server.connect().ask("GET http://a.example/vars.php HTTP/1.1\r\nHost: b.example\r\n\r\n");
    assert_eq!((plain.var("HTTP_HOST"), plain.var("SERVER_NAME")), (Some("a.example"), Some("a.example")));
    run(async {
        for (authority, host, expected) in [
            ("h", None, 200),
            ("h", Some("h"), 200),
            ("h", Some("H:80"), 200),
            ("h", Some("other"), 400),
            ("h", Some("h:81"), 400),
            ("h", Some("evil:80x"), 400),
            ("h:80x", None, 400),
            ("u@h", None, 400),
        ] {
            let Ok(uri) = format!("http://{authority}/vars.php").parse::<http::Uri>() else { continue };
            let mut built = Request::builder().uri(uri);
            if let Some(host) = host {
                built = built.header("host", host);
            }
            let (mut sender, _connection) = connect(&server).await;
            let (response, _) = sender.send_request(built.body(()).unwrap(), true).unwrap();
            // h2 itself resets a stream with an invalid authority.
            let status = response.await.map_or(400, |response| response.status().as_u16());
            assert_eq!(status, expected, "{authority} {host:?}");
        }
    });
}

#[test]
fn over_http_2_a_list_of_small_references_to_long_header_lines_is_refused() {
    let server = Server::start();
    run(async {
        let (mut sender, _connection) = connect(&server).await;
        let mut large = request("GET", "/vars.php");
        // Sent once, then referenced by one byte each.
        for _ in 0..20 {
            large.headers_mut().append("x-long", "v".repeat(3000).parse().unwrap());
        }
        let (response, _) = sender.send_request(large, true).unwrap();
        let status = response.await.map_or(431, |response| response.status().as_u16());
        assert_eq!(status, 431);
        let mut many = request("GET", "/vars.php");
        for _ in 0..2000 {
            many.headers_mut().append("x", "".parse().unwrap());
        }
        let (response, _) = sender.send_request(many, true).unwrap();
        assert_eq!(response.await.map_or(431, |response| response.status().as_u16()), 431);
        let (other, _) = sender.send_request(request("GET", "/a.txt"), true).unwrap();
        assert_eq!(body(other.await.unwrap().into_body()).await, b"static content");
    });
    assert_eq!(server.stand.requests.load(Ordering::SeqCst), 0);
}

#[test]
fn a_file_that_was_deleted_or_changed_is_not_sent_any_more() {
    let server = Server::start();
    std::fs::write(server.root.path().join("index.php"), "<?php // SOURCE").unwrap();
    let path = server.root.path().join("f.txt");
    let mut client = server.connect();
    for round in 0..20 {
        let content = format!("round {round:>4}");
        std::fs::write(&path, &content).unwrap();
        assert_eq!(client.ask(&ask("/f.txt")).text(), content);
        run(async {
            let (mut sender, _connection) = connect(&server).await;
            let (response, _) = sender.send_request(request("GET", "/f.txt"), true).unwrap();
            assert_eq!(body(response.await.unwrap().into_body()).await, content.as_bytes());
        });
        if round % 2 == 0 {
            std::fs::remove_file(&path).unwrap();
            let gone = client.ask(&ask("/f.txt"));
            assert_eq!(gone.var("SCRIPT_NAME"), Some("/index.php"), "what responses now that it is gone");
        }
    }
}

//! The applications in `examples/`, started as in their READMEs.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::servers::Server;
use howdah_tests::websocket::{CLOSE, TEXT, WebSocket};
use howdah_tests::{Conn, Mode, Request, Setup, Site, run};
use std::collections::BTreeSet;

/// The example's script, if it has its own for this mode. Its front page also gets the path with which the harness
/// checks for PHP.
fn example(setup: Setup, script: &str, front: &str) -> Setup {
    assert!(script.contains(front), "the example has no front page");
    let script = script.replacen(front, &front.replace('/', "/gate.php"), 1);
    setup.workers(1).script("worker.php").file("worker.php", script)
}

#[test]
fn worker_example_keeps_its_notes() {
    let script = include_str!("../../examples/worker/worker.php");
    let notes = |site: &Site| site.get("/notes").expect(200).json();
    let file = tempfile::NamedTempFile::new().expect("file");
    let path = file.path().display().to_string();
    run(
        Mode::Worker,
        |s| example(s.env("NOTES_FILE", &path), script, "'GET /' =>"),
        |site| {
            assert_eq!(notes(site), serde_json::json!([]));
            assert_eq!(site.send(&Request::form("/notes", "text=one")).expect(201).text(), "1\n");
            assert_eq!(site.send(&Request::form("/notes", "text=two")).expect(201).header("location"), Some("/notes"));
            assert_eq!(notes(site), serde_json::json!([{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]));
            assert_eq!(site.send(&Request::form("/notes", "text=")).status, 422);
            assert_eq!(site.get("/else").status, 404);
        },
    );
}

#[test]
fn chat_example_tells_all_of_a_room() {
    let script = include_str!("../../examples/chat/index.php");
    run(
        Mode::Classic,
        |s| {
            s.http1("WebSockets are opened as HTTP/1.1 does")
                .file("index.php", script)
                .workers(1)
                .setting("rule", "[{ path = \"/ws\", websocket = \"/index.php\" }]")
        },
        |site| {
            assert!(site.get_ok("/").contains("new WebSocket("));
            let [mut ann, mut ben] = ["/ws", "/ws?room=lobby"].map(|target| WebSocket::open(site, target));
            let mut elsewhere = WebSocket::open(site, "/ws?room=other");
            assert!(WebSocket::ask(site, "/ws?room=a%20b", &[]).is_err_and(|response| response.status == 400));
            ann.send(TEXT, r#"{"text": "too early"}"#);
            ann.send(TEXT, r#"{"name": "Ann"}"#);
            ann.send(TEXT, r#"{"text": "Hello"}"#);
            let said = |socket: &mut WebSocket| -> (String, String) {
                let line: serde_json::Value = serde_json::from_str(&socket.next(TEXT)).unwrap();
                (line["name"].as_str().unwrap().to_owned(), line["text"].as_str().unwrap().to_owned())
            };
            for text in ["has joined", "Hello"] {
                for socket in [&mut ann, &mut ben] {
                    assert_eq!(said(socket), ("Ann".to_owned(), text.to_owned()));
                }
            }
            ann.send(CLOSE, "");
            assert_eq!(said(&mut ben).1, "has left");
            elsewhere.send(TEXT, r#"{"name": "Eve"}"#);
            assert_eq!(said(&mut elsewhere).0, "Eve");
        },
    );
}

#[test]
fn async_example_asks_its_questions_at_once() {
    let server = Server::mariadb();
    let dsn = format!("mysql:host=127.0.0.1;port={}", server.port);
    let script = include_str!("../../examples/async/worker.php");
    run(
        Mode::Async,
        |s| example(s.env("DB_DSN", &dsn).env("DB_USER", "tester"), script, "'/' =>"),
        |site| {
            // Sequential requests would all use the same connection.
            let at_once = eventually(PATIENCE, || {
                let page = site.get("/gate.php").expect(200).json();
                assert!(page["version"]["version"].as_str().is_some_and(|version| !version.is_empty()), "{page}");
                let connection = |name: &str| page[name]["connection"].as_u64().expect("a number");
                let used: BTreeSet<_> = ["version", "tables", "slow"].into_iter().map(connection).collect();
                used.len() == 3
            });
            assert!(at_once, "the questions share a connection");
            let numbers = site.get("/pool").expect(200).json();
            assert_eq!((&numbers["limit"], &numbers["in_use"]), (&8.into(), &0.into()), "{numbers}");
            assert_eq!(site.get("/else").status, 404);
        },
    );
}

#[test]
fn live_prices_example_tells_every_page_a_new_price() {
    let script = include_str!("../../examples/live-prices/index.php");
    run(
        Mode::Classic,
        |s| s.file("index.php", script).workers(1).setting("mercure.anonymous", "true"),
        |site| {
            assert!(site.get_ok("/").contains("new EventSource("));
            let mut page = Conn::open(site.target());
            page.send(Request::get("/.well-known/mercure?topic=prices/{name}").bytes());
            assert_eq!(page.head("GET").status, 200);
            assert_eq!(site.send(&Request::form("/index.php", "name=gold&price=1")).status, 422);
            assert_eq!(site.send(&Request::form("/index.php", "name=pears&price=2.5")).status, 200);
            let mut seen = String::new();
            while !seen.contains("\n\n") {
                seen.push_str(std::str::from_utf8(&page.read_some().unwrap()).unwrap());
            }
            assert!(seen.contains("event: price\n"), "{seen}");
            assert!(seen.contains("data: {\"name\":\"pears\",\"price\":2.5}\n"), "{seen}");
        },
    );
}

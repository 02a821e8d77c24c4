//! The applications in `examples/`, started as in their READMEs.

use crate::server::in_browser::{Browser, has_browser, reporting, seen};
use crate::server::pusher::clients::installed;
use howdah_skip::skip;
use howdah_tests::howdah::php_program;
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

/// The shop's files, for a server of one worker.
fn shared_cart(setup: Setup) -> Setup {
    setup
        .workers(1)
        .script("index.php")
        .file("../shop.php", include_str!("../../examples/shared-cart/shop.php"))
        .file("index.php", include_str!("../../examples/shared-cart/public/index.php"))
}

fn cart(site: &Site) -> String {
    site.get_ok("/index.php")
}

#[test]
fn shared_cart_example_shows_a_visitor_the_cart_of_another_in_worker_mode_only() {
    for (mode, shown) in [(Mode::Worker, "Your cart: tea\n"), (Mode::Snapshot, "Your cart: empty\n")] {
        run(mode, shared_cart, |site| {
            assert_eq!(cart(site), "Your cart: empty\n");
            assert_eq!(site.send(&Request::form("/index.php", "item=tea")).status, 303);
            assert_eq!(cart(site), shown, "{mode:?}");
        });
    }
}

#[test]
fn shared_cart_example_is_demoted_to_classic_mode() {
    let setup = |s: Setup| {
        shared_cart(s)
            .more_processes(2)
            .setting("compare_one_in", "1")
            .setting("pool.plain.mode", "\"classic\"")
            .setting("pool.plain.workers", "1")
    };
    run(Mode::Worker, setup, |site| {
        assert_eq!(site.send(&Request::form("/index.php", "item=tea")).status, 303);
        assert_eq!(cart(site), "Your cart: tea\n");
        assert!(eventually(PATIENCE, || cart(site) == "Your cart: empty\n"), "{}", site.howdah().pool());
        let line = site.wait_for_log(&["demoted", "in the pool plain"]);
        assert!(line.contains("Your cart: tea") && line.contains("Your cart: empty"), "{line}");
    });
}

#[test]
fn shared_cart_example_is_explained_by_the_doctor() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/shared-cart");
    let mut doctor = std::process::Command::new(howdah_tests::howdah::program());
    doctor.args(["doctor", "--writes", "--list", "pages.txt", "--modes", "worker,snapshot", "--json", "-"]);
    let doctor = doctor.current_dir(example).env("HOWDAH_ALLOW_ROOT", "true").env("HOWDAH_PHP", php_program());
    let report = doctor.output().expect("the doctor");
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap_or_else(|_| panic!("{report:?}"));
    let modes = report["modes"].as_array().expect("modes");
    let leaks = |name: &str| -> Vec<String> {
        let mode = modes.iter().find(|mode| mode["mode"] == name).unwrap_or_else(|| panic!("no {name}: {report}"));
        assert!(mode["fails"].is_null(), "{mode}");
        let findings = mode["findings"].as_array().expect("findings").iter();
        findings.filter(|finding| finding["severity"] == "leak").map(|leak| leak["name"].to_string()).collect()
    };
    assert!(leaks("worker").iter().any(|name| name.contains("CurrentCart->items")), "{report}");
    assert!(leaks("snapshot").is_empty(), "{report}");
}

#[test]
fn chat_example_sends_messages_to_all_in_a_room() {
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

/// Appended to the page of the example: reports the members and the lines, and sends a line.
const VISITOR: &str = r#"
<script>
    let reports = Promise.resolve()
    const report = (text) => reports = reports.then(() => fetch('/seen.php?text=' + encodeURIComponent(text)))
    const told = new Set()
    setInterval(() => {
        const members = document.querySelector('#members').textContent.split(', ').filter(Boolean)
        const lines = [...document.querySelectorAll('#lines li')].map((line) => line.textContent.replace(/\d+/, 'N'))
        for (const text of [`${members.length} here`, ...lines].filter((text) => text !== '0 here' && !told.has(text))) {
            told.add(text)
            report(text)
            if (text === '2 here') {
                form.text.value = 'hello'
                form.requestSubmit()
            }
        }
    }, 20)
</script>"#;

/// A visitor of the room without a browser: signed by the example, with another session.
fn second_visitor(site: &Site) -> (WebSocket, String) {
    let mut socket = WebSocket::open(site, "/app/example-key?protocol=7&client=test&version=1");
    let next = |socket: &mut WebSocket| serde_json::from_str::<serde_json::Value>(&socket.next(TEXT)).unwrap();
    let data: serde_json::Value = serde_json::from_str(next(&mut socket)["data"].as_str().unwrap()).unwrap();
    let id = data["socket_id"].as_str().unwrap().to_owned();
    let form = format!("channel_name=presence-room&socket_id={id}");
    let mut auth: serde_json::Value = site.send(&Request::form("/index.php", &form)).expect(200).json();
    auth["channel"] = "presence-room".into();
    socket.send(TEXT, serde_json::json!({ "event": "pusher:subscribe", "data": auth }).to_string());
    assert_eq!(next(&mut socket)["event"], "pusher_internal:subscription_succeeded");
    (socket, id)
}

#[test]
fn laravel_echo_example_shows_members_and_messages() {
    if !has_browser() {
        skip!("chromium", "the test needs a browser");
    }
    let page = [include_str!("../../examples/laravel-echo/index.php"), VISITOR].concat();
    let app: toml::Table = include_str!("../../examples/laravel-echo/howdah.toml").parse().unwrap();
    let app = format!("{}", app["pusher"]["app"]);
    let setup = |s: Setup| {
        let Some(clients) = installed() else {
            return s.lacks("pusher-clients", "run scripts/pusher-clients.sh, which needs npm and a network");
        };
        let scripts = ["node_modules/pusher-js/dist/web/pusher.min.js", "node_modules/laravel-echo/dist/echo.iife.js"];
        let with_page = reporting(s).file("index.php", &page).setting("pusher.app", &app);
        scripts.iter().fold(with_page, |s, path| {
            assert!(page.contains(path), "{path}");
            s.file(path, std::fs::read_to_string(clients.join(path)).unwrap())
        })
    };
    run(Mode::Classic, setup, |site| {
        let _browser = Browser::show(site, "/index.php");
        seen(site, &["1 here"]);
        let (mut visitor, id) = second_visitor(site);
        // The page has seen the visitor, and says hello; its own line is there at once.
        seen(site, &["1 here", "2 here", "guest-N: hello"]);
        let said: serde_json::Value = serde_json::from_str(&visitor.next(TEXT)).unwrap();
        assert_eq!((&said["event"], &said["channel"]), (&"said".into(), &"presence-room".into()), "{said}");
        assert!(said["data"].as_str().unwrap().contains("\"text\":\"hello\""), "{said}");
        let form = format!("text=welcome&socket={id}");
        assert_eq!(site.send(&Request::form("/index.php", &form)).status, 200);
        seen(site, &["1 here", "2 here", "guest-N: hello", "guest-N: welcome"]);
        drop(visitor);
        assert!(eventually(PATIENCE, || site.howdah().status()["hubs"][0]["connections"] == 1));
    });
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

/// With Debian's Symfony instead of the one that Composer would install.
#[test]
fn live_prices_example_sends_a_new_price_to_every_page() {
    const FRAMEWORK: &str = "/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php";
    if !std::path::Path::new(FRAMEWORK).exists() {
        skip!("php-symfony-framework-bundle", "it is not installed");
    }
    let autoload = format!(
        "<?php set_include_path('/usr/share/php'); require_once '{FRAMEWORK}'; require_once __DIR__ . '/../src/Kernel.php';"
    );
    let file =
        |path: &str| std::fs::read(format!("{}/../examples/live-prices/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    run(
        Mode::Classic,
        |s| {
            s.file("index.php", file("public/index.php"))
                .file("../src/Kernel.php", file("src/Kernel.php"))
                .file("../src/page.html", file("src/page.html"))
                .file("../vendor/autoload.php", autoload)
                .workers(1)
                .setting("front_controller", "\"index.php\"")
                .setting("mercure.anonymous", "true")
        },
        |site| {
            assert!(site.get_ok("/").contains("new EventSource("));
            let mut page = Conn::open(site.target());
            page.send(Request::get("/.well-known/mercure?topic=prices/{name}").bytes());
            assert_eq!(page.head("GET").status, 200);
            assert_eq!(site.send(&Request::form("/prices", "name=gold&price=1")).status, 422);
            assert_eq!(site.send(&Request::form("/prices", "name=pears&price=2.5")).status, 204);
            let mut seen = String::new();
            while !seen.contains("\n\n") {
                seen.push_str(std::str::from_utf8(&page.read_some().unwrap()).unwrap());
            }
            assert!(seen.contains("event: price\n"), "{seen}");
            assert!(seen.contains("data: {\"name\":\"pears\",\"price\":2.5}\n"), "{seen}");
        },
    );
}

//! Monitoring of WebSocket connections and of the hub: spans, route metrics, failures in the access log,
//! and the metrics of connections, messages, subscribers and updates.

use super::mercure::{Subscriber, hub, published, publisher};
use howdah_tests::collector::Span;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::websocket::{CLOSE, TEXT, WebSocket};
use howdah_tests::{Collector, Conn, Mode, Request, Setup, Site, run};

/// Sends its trace for each message; fails, or is slow, on request.
const SCRIPT: &str = r#"
$event = Howdah\WebSocket::event();
if ($event?->type === 'message') {
    if ($event->data === 'fail') {
        http_response_code(500);
    } else {
        usleep($event->data === 'slow' ? 1_200_000 : 0);
        Howdah\WebSocket::send($event->connection, $_SERVER['HTTP_TRACEPARENT'] ?? 'none');
    }
}"#;
const RULE: &str = "[{ path = \"/ws\", websocket = \"/chat.php\" }]";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn chat(setup: Setup) -> Setup {
    setup.http1("the upgrade of a connection is HTTP/1.1's").workers(1).php("chat.php", SCRIPT).setting("rule", RULE)
}

fn metrics(site: &Site) -> String {
    Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics").close()).expect(200).text()
}

/// Waits until the page of metrics has this line.
fn has_line(site: &Site, line: &str) {
    let found = eventually(PATIENCE, || metrics(site).lines().any(|own| own == line));
    assert!(found, "no {line}: {}", metrics(site));
}

#[test]
fn events_have_spans_that_refer_to_the_request_of_their_connection() {
    let collector = Collector::start();
    let section = collector.section("");
    let set = |s: Setup| {
        let s = chat(s).own_env("OTEL_BSP_SCHEDULE_DELAY", "10").setting("telemetry", &section);
        s.setting("http.trusted_proxies", "[\"127.0.0.1\"]")
    };
    run(Mode::Classic, set, |site| {
        let mut socket = WebSocket::ask(site, "/ws?room=1", &[("traceparent", PARENT)]).unwrap();
        socket.send(TEXT, "one");
        let seen = socket.next(TEXT);
        socket.send(TEXT, "fail");
        assert_eq!(socket.closed(), 1011);
        let named =
            |name: &str| -> Vec<Span> { collector.spans().into_iter().filter(|span| span.name == name).collect() };
        assert!(eventually(PATIENCE, || !named("close /ws").is_empty()), "{:#?}", collector.spans());
        let names = ["GET /ws", "open /ws", "message /ws", "message /ws", "close /ws"];
        assert!(eventually(PATIENCE, || names.iter().all(|name| !named(name).is_empty())), "{:#?}", collector.spans());
        let (shake, open) = (named("GET /ws").remove(0), named("open /ws").remove(0));
        assert_eq!(shake.trace, PARENT.split('-').nth(1).unwrap(), "the handshake continues the proxy's trace");
        assert_eq!((&open.trace, &open.parent, open.links.len()), (&shake.trace, &shake.id, 0));
        let value = |span: &Span, key: &str| span.attributes.get(key).cloned().unwrap_or_default();
        let id = value(&open, "howdah.websocket.connection");
        assert_eq!(id.len(), 32);
        let events = [named("message /ws"), named("close /ws")].concat();
        assert_eq!(events.len(), 3, "{events:#?}");
        for (span, (event, status, failed)) in
            events.iter().zip([("message", "200", 0), ("message", "500", 2), ("close", "200", 0)])
        {
            // A connection may have any number of events: each has a separate trace, with a link.
            assert!(span.trace != shake.trace && span.parent.is_empty(), "{span:#?}");
            assert_eq!((&span.links, span.kind, span.status), (&vec![shake.trace.clone()], 2, failed));
            for (key, expected) in [
                ("howdah.websocket.event", event),
                ("howdah.websocket.connection", &*id),
                ("http.response.status_code", status),
                ("http.route", "/ws"),
                ("url.path", "/ws"),
            ] {
                assert_eq!(value(span, key), expected, "{key}: {span:#?}");
            }
        }
        // The script's own spans continue below the event's.
        let php = collector.below(&events[0]).remove("php").unwrap();
        assert_eq!(seen, format!("00-{}-{}-01", events[0].trace, php.id));
    });
}

#[test]
fn a_failing_or_slow_handler_is_in_the_access_log_and_the_routes_metrics() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let path = log.path().to_str().unwrap().to_owned();
    let set = |s: Setup| chat(s).arg("--access-log").arg(&path);
    run(Mode::Classic, set, |site| {
        let mut socket = WebSocket::open(site, "/ws");
        for text in ["one", "slow"] {
            socket.send(TEXT, text);
            assert_eq!(socket.next(TEXT), "none");
        }
        socket.send(TEXT, "fail");
        assert_eq!(socket.closed(), 1011);
        // The handshake; open, three messages and close.
        for (class, count) in [("1xx", 1), ("2xx", 4), ("5xx", 1)] {
            let labels = format!("site=\"default\",route=\"/ws\",front=\"php\",status=\"{class}\"");
            has_line(site, &format!("howdah_site_requests_total{{{labels}}} {count}"));
        }
        let lines = || std::fs::read_to_string(&path).unwrap();
        assert!(eventually(PATIENCE, || lines().contains("MESSAGE /ws")), "{}", lines());
        let of_events: Vec<String> = lines().lines().filter(|line| !line.contains("GET ")).map(str::to_owned).collect();
        assert_eq!(of_events.len(), 1, "{of_events:?}");
        assert!(of_events[0].contains("\"MESSAGE /ws HTTP/1.1\" 500"), "{of_events:?}");
    });
}

#[test]
fn connections_messages_subscribers_and_updates_are_counted() {
    run(
        Mode::Classic,
        |s| hub(chat(s)),
        |site| {
            for line in
                ["howdah_connections_upgraded 0", "howdah_mercure_subscribers 0", "howdah_mercure_updates_total 0"]
            {
                has_line(site, line);
            }
            let mut sockets = [WebSocket::open(site, "/ws"), WebSocket::open(site, "/ws")];
            let mut subscriber = Subscriber::anonymous(site, "topic=a");
            sockets[0].send(TEXT, "one");
            assert_eq!(sockets[0].next(TEXT), "none");
            sockets[1].send(TEXT, "two");
            assert_eq!(sockets[1].next(TEXT), "none");
            published(site, &publisher(), "topic=a&data=x&id=1");
            assert_eq!(subscriber.event(), "id: 1\ndata: x\n\n");
            for line in [
                "howdah_connections_upgraded 2",
                "howdah_websocket_messages_total{direction=\"received\"} 2",
                "howdah_websocket_messages_total{direction=\"sent\"} 2",
                "howdah_mercure_subscribers 1",
                "howdah_mercure_updates_total 1",
            ] {
                has_line(site, line);
            }
            for socket in &mut sockets {
                socket.send(CLOSE, "");
                let _ = socket.closed();
            }
            drop(subscriber);
            for line in ["howdah_connections_upgraded 0", "howdah_mercure_subscribers 0"] {
                has_line(site, line);
            }
        },
    );
}

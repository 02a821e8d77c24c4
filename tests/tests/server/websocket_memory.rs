//! The memory of idle connections: a WebSocket, a subscriber of the Mercure hub.

use super::http3::{Client, http3};
use super::mercure::{Subscriber, hub};
use super::proxy_connect::{ConnectClient, client};
use howdah_tests::websocket::{TEXT, WebSocket};
use howdah_tests::{Mode, Setup, Site, run, time_limit};

/// Numbers of clients that connect before the measurement, and of those that are measured.
const FIRST: usize = 100;
const MEASURED: usize = 600;
/// Bounds in bytes for each client, with some slack: 8 KB and 10 KB are the goals.
const WEBSOCKET: u64 = 9 << 10;
const SUBSCRIBER: u64 = 10 << 10;
/// For each stream of a connection that has many. Measured: 8.1 KiB and 9.5 KiB.
const HTTP2_STREAM: u64 = 9 << 10;
const HTTP3_STREAM: u64 = 21 << 9;
/// Streams of each connection: a server allows 100 or more.
const STREAMS: &str = "100";

const JOINS: &str = "$event = \\Howdah\\WebSocket::event();
    if ($event?->type === 'open') { $event->subscribe('room'); $event->send('welcome'); }
    if ($event?->type === 'message') { \\Howdah\\WebSocket::publish('room', $event->data); }";

fn plain(setup: Setup) -> Setup {
    setup.http1("the memory of a connection differs by version").never_https().measures_memory().workers(2)
}

/// Private memory of the server that is in use, in bytes.
fn memory(site: &Site) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", site.howdah().pid())).unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Private_Dirty:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Opens clients; fails if each takes more than `most`.
fn bounded<C>(site: &Site, most: u64, open: impl Fn() -> C) -> Vec<C> {
    let mut clients = Vec::new();
    bounded_all(site, most, |count| clients.extend((0..count).map(|_| open())));
    clients
}

/// Opens as many clients as are asked for; fails if each takes more than `most`.
fn bounded_all(site: &Site, most: u64, mut open: impl FnMut(usize)) {
    time_limit(120, "hundreds of clients connect one after the other");
    open(FIRST);
    let before = memory(site);
    open(MEASURED);
    let each = memory(site).saturating_sub(before) / MEASURED as u64;
    assert!(each <= most, "{each} bytes for each of {MEASURED} clients, more than {most}");
    assert!(each >= 1 << 10, "{each} bytes for each client were not measured");
}

fn held(setup: Setup) -> Setup {
    let setup = setup.measures_memory().workers(2).php("ws.php", JOINS);
    setup.setting("rule", "[{ path = \"/ws.php\", websocket = \"/ws.php\" }]")
}

#[test]
fn an_idle_websocket_takes_little_memory() {
    run(
        Mode::Classic,
        |s| held(plain(s)),
        |site| {
            let mut all = bounded(site, WEBSOCKET, || {
                let mut socket = WebSocket::open(site, "/ws.php");
                assert_eq!(socket.next(TEXT), "welcome");
                socket
            });
            all[0].send(TEXT, "to all");
            assert!(all.iter_mut().all(|socket| socket.next(TEXT) == "to all"));
        },
    );
}

#[test]
fn an_idle_subscriber_of_the_hub_takes_little_memory() {
    run(
        Mode::Classic,
        |s| hub(plain(s)),
        |site| {
            bounded(site, SUBSCRIBER, || Subscriber::anonymous(site, "topic=room"));
        },
    );
}

#[test]
fn an_idle_websocket_over_http_2_takes_little_memory() {
    run(
        Mode::Classic,
        |s| held(client(s)),
        |site| {
            let mut client = ConnectClient::start(site, &["hold", "/ws.php", STREAMS]);
            bounded_all(site, HTTP2_STREAM, |count| {
                client.tell(&count.to_string());
                assert_eq!(client.line(), "held");
            });
            client.end();
        },
    );
}

#[test]
fn an_idle_websocket_over_http_3_takes_little_memory() {
    run(
        Mode::Classic,
        |s| held(http3(s)),
        |site| {
            let mut client = Client::talking(site, &["hold", "/ws.php", STREAMS]);
            bounded_all(site, HTTP3_STREAM, |count| {
                client.tell(&count.to_string());
                assert_eq!(client.line(), "held");
            });
            client.end();
        },
    );
}

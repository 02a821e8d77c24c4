//! The generator against a test server with known responses.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::super::{Mark, MixReport, Phases, run};
use super::*;
use crate::cases::mix::{Clients, Mix, Work};

/// Requests and connections that the server received.
#[derive(Default)]
struct Seen {
    connections: AtomicU64,
    requests: AtomicU64,
    peers: Mutex<BTreeSet<IpAddr>>,
    most_at_once: AtomicU64,
    now: AtomicU64,
}

/// Sends, on any number of connections, the response that `response` returns for the path and the number of the request;
/// an empty one closes the connection.
fn server(response: impl Fn(&str, u64) -> String + Send + Sync + 'static) -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, response) = (Arc::new(Seen::default()), Arc::new(response));
    let shared = seen.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            shared.connections.fetch_add(1, Ordering::Relaxed);
            shared.peers.lock().unwrap().insert(stream.peer_addr().unwrap().ip());
            let (seen, response) = (shared.clone(), response.clone());
            thread::spawn(move || serve(stream, &seen, response.as_ref()));
        }
    });
    (address, seen)
}

fn serve(mut stream: TcpStream, seen: &Seen, response: &dyn Fn(&str, u64) -> String) {
    let mut request = [0; 1024];
    while let Ok(count) = stream.read(&mut request) {
        if count == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&request[..count]).into_owned();
        let number = seen.requests.fetch_add(1, Ordering::Relaxed);
        let at_once = seen.now.fetch_add(1, Ordering::Relaxed) + 1;
        seen.most_at_once.fetch_max(at_once, Ordering::Relaxed);
        let reply = response(text.split(' ').nth(1).unwrap_or(""), number);
        seen.now.fetch_sub(1, Ordering::Relaxed);
        if reply.is_empty() || stream.write_all(reply.as_bytes()).is_err() || text.contains("Connection: close") {
            return;
        }
    }
}

fn reply(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn asks(kind: &str, path: &str, connections: u32) -> Clients {
    Clients::closed(kind, connections, Work::Path { path: path.into(), body: Some("ok".into()) })
}

fn phases(measure_ms: u64) -> Phases {
    Phases {
        settle: Duration::from_millis(50),
        measure: Duration::from_millis(measure_ms),
        tail: Duration::from_millis(1500),
    }
}

fn load(address: SocketAddr, clients: Vec<Clients>, measure_ms: u64) -> MixReport {
    let prepared = Prepared::new(&Mix::of(clients), address, 1.0).unwrap();
    run(&prepared, phases(measure_ms), &mut |_| {}, &Interrupt::default()).unwrap()
}

fn ms(latency: &crate::record::Latency, percentile: f64) -> f64 {
    latency.at(percentile).unwrap() / 1000.0
}

#[test]
fn each_kind_has_its_own_counts_and_percentiles() {
    let (address, _) = server(|path, _| {
        if path == "/slow" {
            thread::sleep(Duration::from_millis(40));
        }
        reply("200 OK", "ok")
    });
    let report = load(address, vec![asks("fast", "/", 2), asks("slow", "/slow", 3)], 500);
    let [fast, slow] = report.kinds.as_slice() else { panic!("{report:?}") };
    assert_eq!((fast.name.as_str(), slow.name.as_str()), ("fast", "slow"));
    assert!(fast.good > slow.good && slow.good > 0 && slow.good <= 3 * 13, "{report:?}");
    assert!(ms(&slow.latency, 50.0) >= 39.9, "{slow:?}");
    assert!(ms(&fast.latency, 50.0) < ms(&slow.latency, 50.0), "{fast:?}");
    assert_eq!(report.responses, fast.good + slow.good);
    let (least, most) = slow.per_connection.unwrap();
    assert!(least > 0 && least <= most && 3 * least <= slow.good && slow.good <= 3 * most);
    assert!(report.generator_cpu > 0.0 && report.bytes >= 40 * report.responses);
}

#[test]
fn a_stall_shows_in_every_request_that_was_due_meanwhile() {
    // One connection, 200 requests per second, one stall of 300 ms in the middle: 60 of 200 become due meanwhile. A
    // closed loop, or one that counts from sending, would show it in one request only.
    let stalled = AtomicU64::new(0);
    let (address, _) = server(move |_, number| {
        if number > 60 && stalled.fetch_add(1, Ordering::Relaxed) == 0 {
            thread::sleep(Duration::from_millis(300));
        }
        reply("200 OK", "ok")
    });
    let open = asks("x", "/", 1).rhythm(Rhythm::Poisson { per_second: 200.0 });
    let report = load(address, vec![open], 1000);
    assert!(ms(&report.kinds[0].latency, 90.0) > 75.0, "{report:?}");
    assert!(ms(&report.kinds[0].latency, 100.0) >= 299.0, "{report:?}");
    assert_eq!(report.kinds[0].unanswered, 0);
}

#[test]
fn an_open_loop_offers_its_rate_whether_or_not_the_server_keeps_up() {
    // 20 ms each on 2 connections: at most 100 per second, and 400 are due.
    let (address, _) = server(|_, _| {
        thread::sleep(Duration::from_millis(20));
        reply("200 OK", "ok")
    });
    let open = asks("x", "/", 2).rhythm(Rhythm::Poisson { per_second: 400.0 });
    let report = load(address, vec![open], 1000);
    let kind = &report.kinds[0];
    assert!((320..=480).contains(&kind.due), "{kind:?}");
    assert!(kind.good <= 100, "{kind:?}");
    // 1.5 s after the end, some 150 more have been answered, and the rest is still counted.
    assert!(kind.unanswered > 0, "{kind:?}");
    assert!(ms(&kind.latency, 100.0) >= 1500.0, "{kind:?}");
}

#[test]
fn a_client_that_waits_through_all_of_the_measured_time_is_counted() {
    // Sent before the measured period begins, answered after its end: none is due in it.
    let (address, _) = server(|path, _| {
        if path == "/starved" {
            thread::sleep(Duration::from_millis(800));
        }
        reply("200 OK", "ok")
    });
    let report = load(address, vec![asks("starved", "/starved", 2), asks("x", "/", 1)], 200);
    let starved = &report.kinds[0];
    assert_eq!((starved.due, starved.good, starved.unanswered), (2, 0, 0), "{starved:?}");
    assert!(ms(&starved.latency, 50.0) >= 790.0, "{starved:?}");
}

#[test]
fn refusals_are_counted_separately_and_the_client_retries() {
    let (address, seen) =
        server(|_, number| if number % 4 == 3 { reply("503 Busy", "no") } else { reply("200 OK", "ok") });
    let report = load(address, vec![asks("x", "/", 2)], 300);
    let kind = &report.kinds[0];
    assert!(kind.refused > 0 && kind.good > 2 * kind.refused, "{kind:?}");
    assert!(kind.latency.at(50.0).is_some() && kind.refused_latency.at(50.0).is_some());
    assert_eq!(kind.errors.total(), 0);
    assert_eq!(seen.connections.load(Ordering::Relaxed), 2, "the connections were kept");
}

#[test]
fn a_wrong_body_or_status_is_a_failure() {
    let (address, _) = server(|path, _| match path {
        "/body" => reply("200 OK", "OK"),
        "/status" => reply("500 Oops", "ok"),
        _ => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok".into(),
    });
    let clients = vec![asks("body", "/body", 1), asks("status", "/status", 1)];
    let report = load(address, clients, 200);
    assert!(report.kinds.iter().all(|kind| kind.good == 0), "{report:?}");
    assert!(report.kinds[0].wrong > 0 && report.kinds[1].errors.status > 0, "{report:?}");
}

#[test]
fn truncated_replies_are_errors_and_the_client_reconnects() {
    let (address, seen) = server(|_, number| if number % 2 == 0 { String::new() } else { reply("200 OK", "ok") });
    let report = load(address, vec![asks("x", "/", 1)], 300);
    let kind = &report.kinds[0];
    assert!(kind.good > 0 && kind.errors.read > 0, "{kind:?}");
    assert!(seen.connections.load(Ordering::Relaxed) > kind.errors.read, "{kind:?}");
}

#[test]
fn without_keep_alive_each_request_has_its_connection() {
    let (address, seen) = server(|_, _| reply("200 OK\r\nConnection: close", "ok"));
    let report = load(address, vec![asks("x", "/", 2).closing()], 300);
    assert!(report.kinds[0].good > 10 && report.kinds[0].errors.total() == 0, "{report:?}");
    let (connections, requests) = (seen.connections.load(Ordering::Relaxed), seen.requests.load(Ordering::Relaxed));
    assert!(connections >= requests && connections <= requests + 2, "{connections} connections, {requests} requests");
    assert!(report.opened >= report.kinds[0].good - 2, "{report:?}");
}

/// Keeps at most `most` connections open; others get a 503 before their request and are closed.
fn small_server(most: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(Seen::default());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let seen = seen.clone();
            if seen.connections.fetch_add(1, Ordering::Relaxed) < most {
                thread::spawn(move || serve(stream, &seen, &|_, _| reply("200 OK", "ok")));
            } else {
                thread::spawn(move || {
                    let _ = stream.write_all(reply("503 Full\r\nConnection: close", "no").as_bytes());
                    let _ = stream.shutdown(std::net::Shutdown::Write);
                    // Closing with unread data would discard the response on its way to the client.
                    let _ = stream.read_to_end(&mut Vec::new());
                });
            }
        }
    });
    address
}

#[test]
fn a_server_may_refuse_before_it_was_asked() {
    let report = load(small_server(2), vec![asks("x", "/", 6)], 300);
    let kind = &report.kinds[0];
    assert!(kind.good > 0 && kind.refused > 0, "{kind:?}");
    assert_eq!((kind.errors.timeout, kind.unanswered), (0, 0), "{kind:?}");
}

#[test]
fn clients_come_from_their_addresses() {
    let (address, seen) = server(|_, _| reply("200 OK", "ok"));
    let clients = vec![
        asks("modest", "/", 3).from(Source::Each(Ipv4Addr::new(127, 0, 1, 1))),
        asks("greedy", "/", 4).from(Source::One(Ipv4Addr::new(127, 0, 0, 2))),
    ];
    load(address, clients, 100);
    let peers: Vec<String> = seen.peers.lock().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(peers, ["127.0.0.2", "127.0.1.1", "127.0.1.2", "127.0.1.3"]);
}

#[test]
fn a_wave_comes_at_once() {
    let (address, seen) = server(|_, _| {
        thread::sleep(Duration::from_millis(100));
        reply("200 OK", "ok")
    });
    let wave = asks("x", "/", 40).rhythm(Rhythm::Waves { size: 20, every_ms: 250 });
    let report = load(address, vec![wave], 1000);
    assert_eq!(report.kinds[0].due, 80);
    assert!(seen.most_at_once.load(Ordering::Relaxed) >= 10, "{}", seen.most_at_once.load(Ordering::Relaxed));
}

#[test]
fn the_marks_frame_the_measured_time() {
    let (address, _) = server(|_, _| reply("200 OK", "ok"));
    let prepared = Prepared::new(&Mix::of([asks("x", "/", 1)]), address, 1.0).unwrap();
    let mut marks = Vec::new();
    let mut mark = |mark| marks.push((mark, Instant::now()));
    run(&prepared, phases(200), &mut mark, &Interrupt::default()).unwrap();
    let [(Mark::Begin, begin), (Mark::End, end)] = marks.as_slice() else { panic!("{marks:?}") };
    assert!(*end - *begin >= Duration::from_millis(100), "{marks:?}");
}

#[test]
fn no_listener_is_an_error_and_an_interrupt_ends_the_run() {
    let address = crate::systems::free_address().unwrap();
    let prepared = Prepared::new(&Mix::of([asks("x", "/", 2)]), address, 1.0).unwrap();
    assert!(run(&prepared, phases(100), &mut |_| {}, &Interrupt::default()).is_err());
    let (address, _) = server(|_, _| reply("200 OK", "ok"));
    let prepared = Prepared::new(&Mix::of([asks("x", "/", 2)]), address, 1.0).unwrap();
    let interrupt = Interrupt::default();
    interrupt.raise();
    assert!(run(&prepared, phases(60_000), &mut |_| {}, &interrupt).is_err());
}

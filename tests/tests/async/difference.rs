//! Proves that requests do not see each other. An application that waits in every kind of callback (`www/busy`) is
//! requested by many clients at once in async mode. Each response must equal, byte for byte, that of classic mode,
//! which never waits and runs one request at a time in a process. Every request carries its own marker in its URL,
//! headers and cookies, and prints it everywhere; a response with another request's marker fails, and so does one that
//! differs.
//!
//! `HOWDAH_DIFFERENCE_REQUESTS` sets the number of requests (`make test-long`), `HOWDAH_DIFFERENCE_SEED` repeats a run,
//! `HOWDAH_DIFFERENCE_KINDS` restricts it to some kinds of callbacks.

use crate::difference::{Order, comparable, first_difference, names, requests};
use howdah_tests::at_once::{marker, only_own};
use howdah_tests::{Mode, Part, Request, Setup, Site, multipart, run};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Number of clients, each with one request in flight.
const CLIENTS: usize = 48;

/// Actions of one request: kinds of callbacks that wait and, at its end, possibly a way to end a script.
fn target(number: usize, kinds: &[String], ends: &[String]) -> String {
    let mut order = Order::of(number as u64 * 7919 + 13);
    // Close seeds produce similar first numbers.
    for _ in 0..8 {
        let _ = order.below(2);
    }
    let count = if kinds.is_empty() { 0 } else { 1 + order.below(4) };
    let mut list: Vec<&str> = (0..count).map(|_| kinds[order.below(kinds.len())].as_str()).collect();
    let mut seen = std::collections::BTreeSet::new();
    list.retain(|name| seen.insert(*name));
    if !ends.is_empty() && (list.is_empty() || order.below(6) == 0) {
        list.push(&ends[order.below(ends.len())]);
    }
    format!("/busy/worker.php?m={}&do={}", marker(number), list.join(",").replace(' ', "%20"))
}

/// The request with this number: with a query, a form or an upload.
fn request(number: usize, target: &str) -> Request {
    let mark = marker(number);
    let request = match number % 5 {
        0 => Request::form(target, &format!("p={mark}&q={}", "x".repeat(number % 3000))),
        1 => {
            let parts = [
                Part { name: "p", file: None, content: mark.as_bytes() },
                Part { name: "f", file: Some((&mark, "text/plain")), content: mark.as_bytes() },
            ];
            multipart(target, &parts)
        }
        _ => Request::get(target),
    };
    request.header("Cookie", &format!("c={mark}")).header("X-Mark", &mark)
}

/// Echoes each line, and responds to HTTP requests with their path, after a delay that varies.
fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (turn, stream) in listener.incoming().enumerate() {
            let Ok(stream) = stream else { return };
            std::thread::spawn(move || {
                // The client may be gone.
                let _ = answer(stream, Duration::from_micros((turn as u64 * 7919) % 2000));
            });
        }
    });
    port
}

fn answer(mut stream: TcpStream, after: Duration) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut text = line.clone();
    if let Some(path) = line.strip_prefix("GET /").and_then(|rest| rest.split(' ').next()) {
        let mut header = String::new();
        while reader.read_line(&mut header)? > 2 {
            header.clear();
        }
        let status = if path.starts_with("refuse") { "404 Refused" } else { "200 OK" };
        text = format!(
            "HTTP/1.1 {status}\r\nX-Path: {path}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{path}",
            path.len()
        );
    }
    std::thread::sleep(after);
    stream.write_all(text.as_bytes())
}

fn busy(setup: Setup, echo: u16) -> Setup {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("www/busy");
    let files =
        ["application.php", "every_third.php", "language.php", "library.php", "ticks.php", "waits.php", "worker.php"];
    files
        .iter()
        .fold(setup, |s, name| s.file(&format!("busy/{name}"), std::fs::read(directory.join(name)).unwrap()))
        .env("ECHO_PORT", &echo.to_string())
        .ini("display_errors", "1")
        .ini("html_errors", "0")
        .ini("log_errors", "0")
        .ini("memory_limit", "512M")
        // Headers can be sent late; kinds of callbacks that end the buffers show the rest.
        .ini("output_buffering", "16384")
        .ini("allow_url_include", "1")
}

/// The kinds of callbacks and of ends to choose from.
fn kinds() -> (Vec<String>, Vec<String>) {
    let (mut kinds, ends) = names("busy/language.php");
    kinds.extend(names("busy/library.php").0);
    match std::env::var("HOWDAH_DIFFERENCE_KINDS") {
        Ok(only) => {
            kinds.retain(|kind| only.split(',').any(|o| o == kind));
            (kinds, ends.into_iter().filter(|end| only.split(',').any(|o| o == end)).collect())
        }
        Err(_) => (kinds, ends),
    }
}

/// Sends the requests with these numbers to both servers; returns the differences.
fn compare(classic: &Site, busy: &Site, numbers: &AtomicUsize, last: usize) -> Vec<String> {
    let (kinds, ends) = kinds();
    let differences = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let (mut truth, mut conn) = (classic.conn(), busy.conn());
                loop {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    if number >= last || differences.lock().unwrap().len() > 20 {
                        return;
                    }
                    let target = target(number, &kinds, &ends);
                    let asked = request(number, &target);
                    // Sent to both before either is read, so that requests pile up in async mode.
                    conn.send(asked.bytes());
                    let expected = truth.exchange(&asked);
                    let got = conn.response(asked.method());
                    only_own(&got, number);
                    let (expected_text, got_text) = (comparable(classic, &expected), comparable(busy, &got));
                    if expected_text != got_text {
                        differences.lock().unwrap().push(first_difference(&target, &expected_text, &got_text));
                    }
                    let closes = |r: &howdah_tests::Response| {
                        r.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"))
                    };
                    if closes(&expected) {
                        truth = classic.conn();
                    }
                    if closes(&got) {
                        conn = busy.conn();
                    }
                }
            });
        }
    });
    differences.into_inner().unwrap()
}

#[test]
fn waits_in_every_kind_of_callback_change_nothing() {
    let echo = echo_server();
    let mut order = Order::new();
    // Another order has other numbers, and so other requests.
    let first = order.below(1_000_000);
    let last = first + requests(3000);
    run(
        Mode::Classic,
        |s| busy(s, echo).php("soap.php", "echo (int) extension_loaded('soap');"),
        |classic| {
            let classic = &*classic;
            if classic.get_ok("/soap.php") != "1" {
                howdah_skip::record("soap", "its callbacks are not among those that wait");
            }
            run(
                Mode::Async,
                |s| busy(s, echo).script("busy/worker.php").setting("concurrency", &CLIENTS.to_string()),
                |site| {
                    let numbers = AtomicUsize::new(first);
                    let differences = compare(classic, site, &numbers, last);
                    let shown = differences.iter().take(5).cloned().collect::<Vec<_>>().join("\n\n");
                    assert!(differences.is_empty(), "{} responses differ, such as:\n{shown}", differences.len());
                },
            );
        },
    );
}

//! Snapshot mode and the outside world: connections that the application opened at boot, and resources that cannot be
//! restored.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, php, run};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server that sends one line for each line, which looks like an idle database connection from outside. It responds
/// "N-th of connection C". The responses to "quit" and "leave" count as done when they have arrived; the server closes
/// the connection after the first.
struct LineServer {
    port: u16,
    connections: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
}

/// Waits until the peer's kernel has everything that was sent on the connection between two ports, including its end:
/// the peer cannot notice data that has not arrived. `tx_queue` of `/proc/net/tcp` is the unacknowledged data
/// (proc_net_tcp, Linux's documentation). A connection that is not listed was reset by the peer.
fn wait_until_arrived(ports: [u16; 2]) {
    // The list is not read atomically: a connection may be missed while others come and go, but hardly three times in a
    // row.
    let mut missed = 0;
    let arrived = eventually(PATIENCE, || {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let mut fields = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours = fields.find(|f| {
            let port = |field: &str| field.rsplit(':').next().and_then(|hex| u16::from_str_radix(hex, 16).ok());
            f.len() > 4 && [port(f[1]), port(f[2])] == ports.map(Some)
        });
        missed = if ours.is_none() { missed + 1 } else { 0 };
        missed == 3 || ours.is_some_and(|f| f[4].starts_with("00000000:"))
    });
    assert!(arrived, "sent data is not acknowledged");
}

fn line_server() -> LineServer {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = connections.clone();
    let done = Arc::new(AtomicUsize::new(0));
    let all_done = done.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let connection = counter.fetch_add(1, Ordering::Relaxed) + 1;
            let done = all_done.clone();
            let ports = [port, stream.peer_addr().unwrap().port()];
            std::thread::spawn(move || {
                let mut asked = 0;
                let mut byte = [0u8];
                let mut line = Vec::new();
                while matches!(stream.read(&mut byte), Ok(1)) {
                    if byte[0] != b'\n' {
                        line.push(byte[0]);
                        continue;
                    }
                    asked += 1;
                    let _ = stream.write_all(format!("{asked} of {connection}\n").as_bytes());
                    let said = std::mem::take(&mut line);
                    if said == b"quit" {
                        // Closing it is not enough: a process that another test is starting may still have a copy.
                        let _ = stream.shutdown(Shutdown::Write);
                    }
                    if said == b"quit" || said == b"leave" {
                        wait_until_arrived(ports);
                        done.fetch_add(1, Ordering::Release);
                    }
                }
            });
        }
    });
    LineServer { port, connections, done }
}

fn with_connection(setup: Setup, port: u16) -> Setup {
    setup
        .workers(1)
        .boot("boot.php")
        .php(
            "boot.php",
            &format!("$line = stream_socket_client('tcp://127.0.0.1:{port}'); stream_set_blocking($line, true);"),
        )
        .php("ask.php", php!("connections/with_connection.php"))
        .php("close.php", "fclose($line); echo 'closed';")
        .php("pid.php", "echo getmypid();")
}

#[test]
fn a_connection_of_the_boot_is_used_by_thousands_of_requests() {
    let LineServer { port, connections, .. } = line_server();
    run(
        Mode::Snapshot,
        |s| with_connection(s, port),
        |site| {
            let mut conn = site.conn();
            let pid = conn.exchange(&Request::get("/pid.php")).expect(200).text();
            for n in 1..=3000 {
                let answer = conn.exchange(&Request::get("/ask.php")).expect(200).text();
                assert_eq!(answer, format!("{pid} {n} of 1\n"));
            }
            assert_eq!(connections.load(Ordering::Relaxed), 1);
        },
    );
}

/// The worker is replaced when this is noticed: at once, or at the next request, which is run again.
fn replaced_after(how: &str) {
    let LineServer { port, connections, done } = line_server();
    run(
        Mode::Snapshot,
        |s| with_connection(s, port).allow_log("worker died"),
        |site| {
            let before = site.get_ok("/pid.php");
            let _ = site.get(how).expect(200);
            // Data that arrives after the next request's start cannot be noticed; the guide says so.
            assert!(eventually(PATIENCE, || done.load(Ordering::Acquire) > 0));
            let answer = site.get_ok("/ask.php");
            assert!(!answer.starts_with(&before), "{answer}");
            assert!(answer.ends_with(" 1 of 2\n"), "a fresh connection: {answer}");
            let _ = site.wait_for_log(&["worker replaced", "opened at boot"]);
            assert_eq!(connections.load(Ordering::Relaxed), 2);
        },
    );
}

#[test]
fn a_connection_that_its_server_closed_replaces_the_worker() {
    replaced_after("/ask.php?say=quit");
}

#[test]
fn an_unread_answer_replaces_the_worker() {
    replaced_after("/ask.php?say=leave&leave=1");
}

#[test]
fn a_connection_that_a_request_closes_comes_back() {
    let LineServer { port, connections, .. } = line_server();
    run(
        Mode::Snapshot,
        |s| with_connection(s, port),
        |site| {
            let pid = site.get_ok("/pid.php");
            for n in 1..5 {
                assert_eq!(site.get_ok("/close.php"), "closed");
                assert_eq!(site.get_ok("/ask.php"), format!("{pid} {n} of 1\n"));
            }
            assert_eq!(connections.load(Ordering::Relaxed), 1);
        },
    );
}

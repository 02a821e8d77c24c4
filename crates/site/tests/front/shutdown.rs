//! The shutdown: no new requests, no lost requests, nothing left over.

use crate::support::{Client, DEADLINE, Server, eventually};
use howdah_protocol::front::Drained;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Waits until the shutdown has begun: the port is closed.
fn begins(addr: SocketAddr) {
    eventually("the shutdown", || TcpStream::connect(addr).is_err());
}

#[test]
fn idle_connections_are_closed_at_once() {
    let mut server = Server::start();
    let (mut used, mut unused) = (server.connect(), server.connect());
    assert_eq!(used.ask("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
    eventually("taking both over", || server.front().open_connections() == 2);
    let start = Instant::now();
    assert_eq!(server.shutdown(DEADLINE), Drained::All);
    assert!(start.elapsed() < DEADLINE / 2);
    assert!(used.is_closed());
    assert!(unused.is_closed());
    assert!(TcpStream::connect(server.tcp()).is_err(), "the listener is closed");
    assert_eq!(server.metrics.connections_open.get(), 0);
}

#[test]
fn a_running_request_is_finished_and_then_its_connection_ends() {
    let mut server = Server::start();
    let mut client = server.connect();
    client.send("GET /stream.php HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let (pipe, addr) = (server.stand.pipe.clone(), server.tcp());
    let ender = std::thread::spawn(move || {
        begins(addr);
        pipe.push("last words", false);
        pipe.end();
    });
    assert_eq!(server.shutdown(DEADLINE), Drained::All);
    ender.join().unwrap();
    assert_eq!(client.chunk().unwrap(), b"last words");
    assert_eq!(client.chunk(), None);
    assert!(client.is_closed());
}

#[test]
fn requests_longer_than_the_grace_time_are_cut() {
    let mut server = Server::start();
    let mut client = server.connect();
    client.send("GET /hang.php HTTP/1.1\r\nHost: h\r\n\r\n");
    eventually("the request", || server.stand.requests.load(Ordering::SeqCst) == 1);
    assert_eq!(server.shutdown(Duration::from_millis(50)), Drained::Cut(1));
    assert_eq!(server.stand.given_up.load(Ordering::SeqCst), 1);
    assert!(client.is_closed());
    assert_eq!(server.metrics.connections_open.get(), 0);
}

#[test]
fn under_load_every_request_that_was_accepted_is_answered() {
    let mut server = Server::start();
    let addr = server.tcp();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                let mut answered = 0;
                loop {
                    let Ok(stream) = TcpStream::connect(addr) else { return answered };
                    let mut client = Client::new(stream);
                    // Accepted by the kernel only: the listener was closed before the server saw the connection.
                    if !client.try_send("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n") {
                        return answered;
                    }
                    match client.first_line() {
                        Some(line) => assert!(line.starts_with("HTTP/1.1 200"), "{line}"),
                        None => return answered,
                    }
                    answered += 1;
                }
            })
        })
        .collect();
    eventually("some load", || server.metrics.durations().count > 200);
    assert_eq!(server.shutdown(DEADLINE), Drained::All);
    let answered: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert_eq!(server.metrics.durations().count, answered);
}

#[test]
fn a_running_request_gets_connection_close() {
    let mut server = Server::start();
    let mut client = server.connect();
    client.send("POST /echo.php HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nhe");
    eventually("the request", || server.front().open_connections() == 1);
    let addr = server.tcp();
    let ender = std::thread::spawn(move || {
        begins(addr);
        client.send("re");
        let response = client.response();
        assert_eq!((response.text(), response.header("connection")), ("here", Some("close")));
        assert!(client.is_closed());
    });
    assert_eq!(server.shutdown(DEADLINE), Drained::All);
    ender.join().unwrap();
}

#[test]
fn requests_sent_before_the_shutdown_are_answered() {
    let shut_down = || {
        let mut server = Server::start();
        let mut clients: Vec<_> = (0..8).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.send("GET /a.txt HTTP/1.1\r\nHost: h\r\n\r\n");
        }
        eventually("accepting", || server.metrics.connections_accepted.get() == 8);
        assert_eq!(server.shutdown(DEADLINE), Drained::All);
        for client in &mut clients {
            assert_eq!(client.response().text(), "static content");
        }
    };
    // Each waits for a second until its clients close their connections.
    std::thread::scope(|scope| (0..20).for_each(|_| drop(scope.spawn(shut_down))));
}

//! Async mode: WebSocket connections that a coroutine holds (`WebSocket::accept()`).

use super::proxy_connect::{client, said};
use super::websocket_events::{closed, open};
use howdah_tests::process::{PATIENCE, eventually, signal};
use howdah_tests::websocket::{BINARY, TEXT, WebSocket, frame};
use howdah_tests::{Mode, Request, Setup, Site, crowd, php, run};
use rustix::process::Signal;

const HOLD: &str = php!("websocket_held/hold.php");

/// One process, whose script holds each connection to `/chat.php`.
fn hold(setup: Setup) -> Setup {
    let rule = "[{ path = \"/chat.php\", websocket = \"/chat.php\" }]";
    setup.http1("the upgrade of a connection is HTTP/1.1's").workers(1).php("chat.php", HOLD).setting("rule", rule)
}

#[test]
fn a_coroutine_gets_the_messages_of_its_connection_and_answers() {
    run(Mode::Async, hold, |site| {
        let (mut one, id) = open(site, "room=a");
        assert_eq!(one.head.header("sec-websocket-protocol"), None, "the client offers none");
        assert!(one.head.header("set-cookie").is_some());
        let (mut other, other_id) = open(site, "room=a");
        assert_eq!((id.len(), id != other_id), (32, true));
        one.send(TEXT, "hello");
        one.send(BINARY, "bytes");
        other.send(TEXT, "äöü");
        assert_eq!((one.next(TEXT), one.next(BINARY)), ("0 hello 7".into(), "1 bytes 7".into()));
        assert_eq!(other.next(TEXT), "0 äöü 7");
        one.send(TEXT, vec![b'x'; 1 << 19]);
        assert_eq!(one.next(TEXT).len(), (1 << 19) + 4);
        // Channels and single connections are reached from any request.
        assert_eq!(site.get_ok("/chat.php?publish=a"), "");
        assert_eq!((one.next(TEXT), other.next(TEXT)), ("to all".into(), "to all".into()));
        one.send(TEXT, "wait");
        assert_eq!(one.next(TEXT), "No message arrived in time");
        one.send(TEXT, "twice");
        assert_eq!(one.next(TEXT), "Another coroutine receives from this connection");
        one.send(TEXT, "next");
        assert_eq!(one.next(TEXT), "next");
        let why = site.get_ok("/chat.php");
        assert!(why.contains("not the \"open\" event"), "{why}");
        let refused = WebSocket::ask(site, "/chat.php?refuse", &[]).map_err(|response| response.status);
        assert_eq!(refused.err(), Some(403));
    });
}

#[test]
fn each_end_of_a_connection_has_its_code() {
    run(
        Mode::Async,
        |s| hold(s).workers(2).expect_log("thrown").expect_log("abstract").allow_log("request failed"),
        |site| {
            for (message, code) in [("bye", 4000), ("return", 1000), ("exit", 1000), ("throw", 1011), ("crash", 1011)] {
                let (mut socket, _) = open(site, "");
                socket.send(TEXT, message);
                assert_eq!(socket.closed(), code, "{message}");
            }
            closed(site, "4000 unasked, [null,false]");
            let (mut leaves, _) = open(site, "");
            leaves.send(0x88, [&1001u16.to_be_bytes()[..], b"away"].concat());
            assert_eq!(leaves.try_next().unwrap().payload, b"\x03\xe9away");
            closed(site, "1001 away");
            drop(open(site, ""));
            closed(site, "1006 ");
        },
    );
}

#[test]
fn connections_of_a_process_that_dies_are_closed() {
    run(
        Mode::Async,
        |s| hold(s).allow_log("died").allow_log("request failed").allow_log("killed"),
        |site| {
            let (mut one, mut other) = (open(site, "").0, open(site, "").0);
            one.send(TEXT, "die");
            assert_eq!((one.closed(), other.closed()), (1011, 1011));
            open(site, "").0.send(TEXT, "bye");
        },
    );
}

#[test]
fn a_client_that_reads_nothing_suspends_the_coroutines_that_send() {
    run(Mode::Async, hold, |site| {
        let (mut slow, _) = open(site, "");
        slow.send(TEXT, "senders");
        let (mut quick, _) = open(site, "");
        quick.send(TEXT, "quick");
        assert_eq!(quick.next(TEXT), "0 quick 7");
        // More than the server would keep, each message whole.
        let mut from = [0; 10];
        for _ in 0..200 {
            let message = slow.next(TEXT);
            let sender = message.as_bytes()[0];
            assert!(message.len() == 100_000 && message.bytes().all(|byte| byte == sender));
            from[usize::from(sender - b'0')] += 1;
        }
        assert_eq!(from, [20; 10]);
        assert_eq!(slow.next(TEXT), "all sent");
    });
}

#[test]
fn a_sender_gets_its_turn_when_earlier_ones_are_cancelled() {
    run(Mode::Async, hold, |site| {
        let (mut slow, _) = open(site, "");
        slow.send(TEXT, "cancelled senders");
        closed(site, "last: false");
    });
}

#[test]
fn a_client_is_not_read_from_while_its_messages_are_not_received() {
    const MESSAGES: usize = 400;
    run(Mode::Async, hold, |site| {
        let gate = site.gate("g");
        let (mut busy, _) = open(site, "");
        busy.send(TEXT, "gate");
        busy.send(TEXT, "count");
        let held = gate.wait();
        let sends = std::thread::spawn(move || {
            let message = frame(TEXT, &[b'x'; 100_000]);
            (0..MESSAGES).for_each(|_| busy.conn.send(&message));
            busy.send(TEXT, "end");
            busy
        });
        let (mut quick, _) = open(site, "");
        quick.send(TEXT, "quick");
        assert_eq!(quick.next(TEXT), "0 quick 7");
        assert!(!sends.is_finished(), "the server has taken {MESSAGES} unreceived messages");
        drop(held);
        assert_eq!(sends.join().unwrap().next(TEXT), format!("{MESSAGES} {}", MESSAGES * 100_000));
    });
}

/// Waits for the log of closes to have this many lines.
fn closes(site: &Site, expected: usize) {
    let notes = || std::fs::read_to_string(site.file("closed")).unwrap_or_default();
    assert!(eventually(PATIENCE, || notes().lines().count() == expected), "{}", notes());
}

#[test]
fn a_reload_asks_clients_to_come_back_and_so_does_a_stop() {
    run(
        Mode::Async,
        |s| hold(s).setting("grace", "\"5s\""),
        |site| {
            let mut sockets: Vec<_> = (0..5).map(|_| open(site, "").0).collect();
            assert!(site.howdah().command(&["reload"]).status.success());
            for socket in &mut sockets {
                assert_eq!(socket.closed(), 1001);
            }
            closes(site, 5);
            let (mut socket, _) = open(site, "");
            socket.send(TEXT, "again");
            assert_eq!(socket.next(TEXT), "0 again 7");
            signal(site.howdah().pid(), Signal::TERM);
            assert_eq!(socket.closed(), 1001);
            assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
            closes(site, 6);
        },
    );
}

#[test]
fn a_connection_outlives_the_deadline_of_requests() {
    run(
        Mode::Async,
        |s| hold(s).setting("deadline", "\"300ms\"").expect_log("past the deadline"),
        |site| {
            let (mut socket, _) = open(site, "");
            assert_eq!(site.send(&Request::get("/chat.php?sleep=1")).status, 504);
            socket.send(TEXT, "still here");
            assert_eq!(socket.next(TEXT), "0 still here 7");
        },
    );
}

#[test]
fn one_process_holds_many_connections_and_serves_other_requests() {
    run(
        Mode::Async,
        |s| hold(s).setting("concurrency", "600"),
        |site| {
            let mut sockets: Vec<_> = (0..crowd(500)).map(|_| open(site, "").0).collect();
            for (number, socket) in sockets.iter_mut().enumerate() {
                socket.send(TEXT, format!("{number}"));
            }
            for (number, socket) in sockets.iter_mut().enumerate() {
                assert_eq!(socket.next(TEXT), format!("0 {number} 7"));
            }
            assert!(site.get_ok("/chat.php").contains("not the \"open\" event"));
        },
    );
}

const ECHO: &str = "foreach ($connection = \\Howdah\\WebSocket::accept() as $message) {
        $connection->send($message, $connection->binary);
    }";

#[test]
fn streams_of_http_2_are_held_too() {
    let rule = "[{ path = \"/echo.php\", websocket = \"/echo.php\", cors = { origins = [\"https://localhost\"] } }]";
    run(
        Mode::Async,
        |s| client(s.php("echo.php", ECHO).setting("rule", rule)),
        |site| assert_eq!(said(site, &["talk", "/echo.php"]), "all came back"),
    );
}

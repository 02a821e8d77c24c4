//! WebSocket connections held by the server, whose events go to a script, in every mode.

use super::proxy_connect::{client, said};
use super::proxy_upgrade::{PYTHON, has_websockets, script};
use howdah_tests::process::{PATIENCE, eventually, signal};
use howdah_tests::websocket::{BINARY, CLOSE, PING, PONG, TEXT, WebSocket, frame};
use howdah_tests::{Mode, Setup, Site, php, run, script_scenario};
use rustix::process::Signal;
use std::process::Command;

const CHAT: &str = php!("websocket_events/chat.php");
const HTTP1: &str = "the upgrade of a connection is HTTP/1.1's";

pub(super) fn chat(setup: Setup) -> Setup {
    setup.http1(HTTP1).php("chat.php", CHAT).setting("rule", "[{ path = \"/chat.php\", websocket = \"/chat.php\" }]")
}

/// Waits for the script's records of closed connections.
pub(super) fn closed(site: &Site, expected: &str) {
    let notes = || std::fs::read_to_string(site.file("closed")).unwrap_or_default();
    let has_come = eventually(PATIENCE, || notes().lines().any(|line| line == expected));
    assert!(has_come, "no {expected:?} in {:?}", notes());
}

pub(super) fn open(site: &Site, query: &str) -> (WebSocket, String) {
    let mut socket = WebSocket::ask(site, &format!("/chat.php?{query}"), &[("Cookie", "id=7")]).unwrap();
    let welcome = socket.next(TEXT);
    (socket, welcome.strip_prefix("welcome ").unwrap().to_owned())
}

script_scenario!(
    events_reach_the_script_and_its_messages_reach_the_client,
    howdah_only = "PHP-FPM has no WebSockets",
    chat,
    |site| {
        let (mut one, id) = open(site, "room=a");
        let (mut other, other_id) = open(site, "room=a");
        assert_eq!((id.len(), id != other_id), (32, true));
        // Text and binary messages, in order, with the state of each connection and the fields of its handshake.
        one.send(TEXT, "hello");
        one.send(BINARY, "bytes");
        assert_eq!((one.next(TEXT), one.next(BINARY)), ("1 hello 7".into(), "2 bytes 7".into()));
        one.send(0x01, "in ");
        one.send(PING, "between");
        one.send(0x80, "parts");
        other.send(TEXT, "äöü");
        let mut next = [one.try_next().unwrap(), one.try_next().unwrap()];
        next.sort_by_key(|frame| frame.first);
        assert_eq!(next.each_ref().map(|frame| frame.first), [TEXT, PONG]);
        assert_eq!(next.map(|frame| String::from_utf8(frame.payload).unwrap()), ["3 in parts 7", "between"]);
        assert_eq!(other.next(TEXT), "1 äöü 7");
        one.send(TEXT, vec![b'x'; 1 << 20]);
        assert_eq!(one.next(TEXT), "1048576");
        // Other requests can send to connections and channels.
        let text = format!("/chat.php?publish=a&text={}", "to%20all");
        assert_eq!(site.get_ok(&text), "no event");
        assert_eq!((one.next(TEXT), other.next(TEXT)), ("to all".into(), "to all".into()));
        assert_eq!(site.get_ok(&format!("/chat.php?to={other_id}")), "no event");
        assert_eq!(other.next(TEXT), "from another request");
        other.send(TEXT, "leave");
        assert_eq!(other.next(TEXT), "2 leave 7");
        assert_eq!(site.get_ok(&text), "no event");
        assert_eq!(one.next(TEXT), "to all");
        assert_eq!(site.get_ok("/chat.php?to=00000000000000000000000000000000"), "no event");
        // Ends: by another request, by the script, by the client, and without a close.
        assert_eq!(site.get_ok(&format!("/chat.php?close={other_id}")), "no event");
        assert_eq!(other.closed(), 3000);
        closed(site, "3000 2 by another request");
        one.send(TEXT, "bye");
        assert_eq!(one.closed(), 4000);
        closed(site, "4000 5 bye");
        let (mut leaves, _) = open(site, "");
        leaves.send(CLOSE, [&1001u16.to_be_bytes()[..], b"away"].concat());
        assert_eq!(leaves.try_next().unwrap().payload, b"\x03\xe9away");
        assert_eq!(leaves.try_next(), None);
        closed(site, "1001 0 away");
        drop(open(site, ""));
        closed(site, "1006 0 ");
        assert_eq!(site.get_ok("/chat.php"), "no event");
    },
);

script_scenario!(
    a_slow_handler_holds_up_its_own_connection_only,
    howdah_only = "PHP-FPM has no WebSockets",
    |s| chat(s).workers(2),
    |site| {
        let gate = site.gate("g");
        let ((mut slow, _), (mut quick, _)) = (open(site, ""), open(site, ""));
        slow.send(TEXT, "wait");
        let held = gate.wait();
        for number in 1..=40 {
            slow.send(TEXT, format!("after {number}"));
        }
        slow.send(PING, "alive");
        quick.send(TEXT, "quick");
        assert_eq!(quick.next(TEXT), "1 quick 7");
        drop(held);
        assert_eq!(slow.next(TEXT), "1 wait 7");
        let mut texts = Vec::new();
        while texts.len() < 40 {
            let frame = slow.try_next().unwrap();
            if frame.first == TEXT {
                texts.push(String::from_utf8(frame.payload).unwrap());
            }
        }
        let expected: Vec<_> = (1..=40).map(|number| format!("{} after {number} 7", number + 1)).collect();
        assert_eq!(texts, expected);
    },
);

script_scenario!(
    a_handler_that_fails_or_dies_costs_its_own_connection,
    howdah_only = "PHP-FPM has no WebSockets",
    |s| chat(s)
        .workers(2)
        .expect_log("no_such_function")
        .allow_log("request failed")
        .allow_log("killed")
        .allow_log("died"),
    |site| {
        let (mut other, _) = open(site, "room=a");
        for (message, code) in [("crash", 1011), ("refuse", 1008), ("die", 1011)] {
            let (mut socket, _) = open(site, "");
            socket.send(TEXT, message);
            // The server may read it before, but does not handle it any more.
            socket.send(TEXT, "later");
            assert_eq!(socket.closed(), code, "{message}");
        }
        closed(site, "1008 1 the application refused the message");
        other.send(TEXT, "here");
        assert_eq!(other.next(TEXT), "1 here 7");
        assert_eq!(site.get_ok("/chat.php?publish=a&text=still"), "no event");
        assert_eq!(other.next(TEXT), "still");
    },
);

#[test]
fn handshakes_are_refused_by_the_script_and_for_other_origins_and_versions() {
    let rule = "[{ path = \"/ws\", websocket = \"/chat.php\", cors = { origins = [\"https://*.friend.example\"] } }]";
    run(
        Mode::Classic,
        |s| s.http1(HTTP1).php("chat.php", CHAT).setting("rule", rule),
        |site| {
            for (target, fields, status) in [
                ("/ws?refuse=403", &[][..], 403),
                ("/ws?refuse=500", &[], 500),
                ("/ws", &[("Origin", "https://evil.example")], 403),
                ("/ws", &[("Origin", "null")], 403),
                ("/ws", &[("Origin", "http://localhost")], 101),
                ("/ws", &[("Origin", "https://www.friend.example")], 101),
            ] {
                let asked = WebSocket::ask(site, target, fields).map_or_else(|response| response.status, |_| 101);
                assert_eq!(asked, status, "{target} {fields:?}");
            }
            let ask = |fields: &str| {
                let mut conn = site.conn();
                conn.send(format!(
                    "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{fields}\r\n"
                ));
                conn.next_head()
            };
            let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
            let old = ask(&format!("{key}Sec-WebSocket-Version: 8\r\n"));
            assert_eq!((old.status, old.header("sec-websocket-version")), (426, Some("13")));
            assert_eq!(ask("Sec-WebSocket-Version: 13\r\n").status, 400);
            // The script's fields, and only a protocol that the client offers.
            let chosen = WebSocket::ask(site, "/ws", &[("Sec-WebSocket-Protocol", "other, chat")]).unwrap();
            assert_eq!(chosen.head.header("sec-websocket-protocol"), Some("chat"));
            assert_eq!(chosen.head.header("set-cookie"), Some("seen=yes"));
            let plain = WebSocket::open(site, "/ws");
            assert_eq!(plain.head.header("sec-websocket-protocol"), None);
            assert_eq!(plain.head.header("sec-websocket-extensions"), None);
            // Other requests for the path are served as usual.
            assert_eq!(site.get("/ws").status, 404);
            let explained = super::sites_explain::explain(site, &["/ws"]).to_string();
            assert!(explained.contains("/chat.php gets its events"), "{explained}");
        },
    );
}

/// Broken frames and the codes with which the server closes.
fn broken_frames() -> Vec<(&'static str, Vec<u8>, u16)> {
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    vec![
        ("without a mask", vec![TEXT, 1, b'x'], 1002),
        ("a reserved bit", frame(0xc1, &hello), 1002),
        ("an unknown kind", frame(0x83, b""), 1002),
        ("a continuation of nothing", frame(0x80, b"x"), 1002),
        ("a long ping", frame(PING, &[0; 126]), 1002),
        ("an invalid code", frame(CLOSE, &999u16.to_be_bytes()), 1002),
        ("no UTF-8", frame(TEXT, b"\xff"), 1007),
        ("no UTF-8 in a first part", frame(0x01, b"\xed\xa0\x80"), 1007),
        ("too large", frame(BINARY, &vec![0; (1 << 20) + 1])[..100].to_vec(), 1009),
        ("too large in parts", [frame(0x01, &vec![b'x'; 1 << 20]), frame(0x80, b"x")].concat(), 1009),
    ]
}

#[test]
fn broken_frames_bombs_and_floods_harm_their_own_connection_only() {
    run(
        Mode::Classic,
        |s| chat(s.workers(1)),
        |site| {
            let (mut other, _) = open(site, "");
            for (name, bytes, code) in broken_frames() {
                let (mut socket, _) = open(site, "");
                socket.conn.send(bytes);
                assert_eq!(socket.closed(), code, "{name}");
            }
            let offer = ("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits");
            let mut packs = WebSocket::ask(site, "/chat.php", &[offer]).unwrap();
            let agreed = packs.head.header("sec-websocket-extensions").unwrap().to_owned();
            assert!(agreed.contains("client_no_context_takeover"), "{agreed}");
            assert!(packs.next(TEXT).starts_with("welcome "));
            packs.send(0xc1, bomb());
            assert_eq!(packs.closed(), 1009);
            // Small frames as fast as they can be sent: those that require a response get it.
            let flood: Vec<u8> = (0..20_000).flat_map(|_| frame(PING, b"")).collect();
            let (mut flooder, _) = open(site, "");
            flooder.conn.send(&flood);
            flooder.send(0x01, "");
            flooder.conn.send((0..20_000).flat_map(|_| frame(0x00, b"")).collect::<Vec<u8>>());
            flooder.send(0x80, "end");
            loop {
                let frame = flooder.try_next().unwrap();
                if frame.first == TEXT {
                    break assert!(frame.payload.starts_with(b"1 end"));
                }
                assert_eq!(frame.first, PONG);
            }
            other.send(TEXT, "here");
            assert_eq!(other.next(TEXT), "1 here 7");
        },
    );
}

/// 10 MB of zeros in a raw deflate stream of 65 KB: a block with fixed codes, in which each match of 258 bytes takes
/// 13 bits.
fn bomb() -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    // Not the last block; fixed codes; a zero byte (8 bits from 0x30); matches: length 258 (code 285) at distance 1
    // (code 0).
    bits.extend([false, true, false]);
    let code = |bits: &mut Vec<bool>, value: u32, length: u32| {
        bits.extend((0..length).rev().map(|bit| value >> bit & 1 != 0));
    };
    code(&mut bits, 0x30, 8);
    for _ in 0..40_000 {
        code(&mut bits, 0xc5, 8);
        code(&mut bits, 0, 5);
    }
    code(&mut bits, 0, 7);
    // An empty stored block, whose four length bytes are left out.
    bits.extend([false, false, false]);
    bits.chunks(8).map(|byte| byte.iter().enumerate().fold(0, |sum, (at, bit)| sum | u8::from(*bit) << at)).collect()
}

#[test]
fn a_client_that_reads_nothing_loses_its_connection_and_others_get_every_message() {
    run(
        Mode::Classic,
        |s| chat(s.workers(1)),
        |site| {
            let (lazy, _) = open(site, "room=a");
            lazy.conn.shrink_receive_buffer();
            let (mut reader, _) = open(site, "room=a");
            for _ in 0..24 {
                assert_eq!(site.get_ok("/chat.php?publish=a&long=1000000"), "no event");
                assert_eq!(reader.next(TEXT).len(), 1_000_000);
            }
            closed(site, "1008 0 the client is too slow");
            drop(lazy);
        },
    );
}

#[test]
fn a_client_that_reads_nothing_may_lose_its_oldest_messages_instead() {
    run(
        Mode::Classic,
        |s| chat(s.workers(1)),
        |site| {
            let (mut lazy, _) = open(site, "room=a&keep=2");
            for _ in 0..24 {
                assert_eq!(site.get_ok("/chat.php?publish=a&long=1000000"), "no event");
            }
            assert_eq!(site.get_ok("/chat.php?publish=a&text=last"), "no event");
            let mut count = 0;
            while lazy.next(TEXT) != "last" {
                count += 1;
            }
            assert!((1..20).contains(&count), "{count} of 24 arrived");
            assert_eq!(site.get_ok("/chat.php?publish=a&text=on"), "no event");
            assert_eq!(lazy.next(TEXT), "on");
        },
    );
}

#[test]
fn connections_survive_a_reload_and_their_clients_come_back_after_a_stop() {
    run(
        Mode::Classic,
        |s| chat(s.workers(1)).setting("grace", "\"5s\""),
        |site| {
            let (mut socket, _) = open(site, "room=a");
            socket.send(TEXT, "before");
            assert_eq!(socket.next(TEXT), "1 before 7");
            assert!(site.howdah().command(&["reload"]).status.success());
            socket.send(TEXT, "behind");
            assert_eq!(socket.next(TEXT), "2 behind 7");
            assert_eq!(site.get_ok("/chat.php?publish=a&text=all"), "no event");
            assert_eq!(socket.next(TEXT), "all");
            signal(site.howdah().pid(), Signal::TERM);
            assert_eq!(socket.closed(), 1001);
            assert!(eventually(PATIENCE, || site.howdah_mut().ended()));
            closed(site, "1001 2 the server restarts");
        },
    );
}

const ECHO: &str = "$event = \\Howdah\\WebSocket::event();
    if ($event->type === 'message') { $event->send($event->data, $event->binary); }";

/// A script that echoes everything.
fn echo(setup: Setup) -> Setup {
    let rule = "[{ path = \"/echo.php\", websocket = \"/echo.php\", cors = { origins = [\"https://localhost\"] } }]";
    setup.php("echo.php", ECHO).setting("rule", rule)
}

#[test]
fn an_independent_client_gets_everything_back_over_tls() {
    run(
        Mode::Classic,
        |s| {
            let s = echo(s.workers(2).https());
            if has_websockets() { s } else { s.lacks("python3-websockets", "the WebSocket peer") }
        },
        |site| {
            let mut command = Command::new(PYTHON);
            command.arg(script("events.py")).arg(format!("wss://localhost:{}/echo.php", site.port()));
            let output = command.arg(site.place().top.join("site.pem")).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), "all came back\n", "{errors}");
        },
    );
}

#[test]
fn streams_of_http_2_are_connections_too() {
    run(Mode::Classic, |s| echo(client(s)), |site| assert_eq!(said(site, &["talk", "/echo.php"]), "all came back"));
}

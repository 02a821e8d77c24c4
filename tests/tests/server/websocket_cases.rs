//! The cases of the Autobahn test suite for servers, by their numbers, as one list that a real server answers over
//! HTTP/1.1 and over HTTP/2. `crates/websocket` has the longer list for its codec.

use super::proxy_connect::{ConnectClient, client};
use howdah_tests::websocket::{BINARY, CLOSE, Frame, PING, PONG, TEXT, WebSocket, frame};
use howdah_tests::{Mode, Setup, run};
use std::collections::BTreeMap;

const ECHO: &str = "$event = \\Howdah\\WebSocket::event();
    if ($event->type === 'message') { $event->send($event->data, $event->binary); }";

/// First bytes of a text's first frame, of a continuation, and of the last frame.
const FIRST: u8 = 0x01;
const MORE: u8 = 0x00;
const LAST: u8 = 0x80;

/// Bytes of a client and the server's answer: messages and pongs, each in their order, and the close code. The client
/// closes after an expected answer.
struct Case {
    name: String,
    sent: Vec<u8>,
    expected: Vec<(u8, Vec<u8>)>,
    code: u16,
    packs: bool,
}

/// A case in which the client closes at the end.
fn good(name: &str, frames: &[Vec<u8>], expected: &[(u8, &[u8])]) -> Case {
    let expected = expected.iter().map(|(first, payload)| (*first, payload.to_vec())).collect();
    Case { name: name.to_owned(), sent: frames.concat(), expected, code: 1000, packs: false }
}

/// A case in which the server closes with this code.
fn bad(name: &str, frames: &[Vec<u8>], code: u16) -> Case {
    Case { name: name.to_owned(), sent: frames.concat(), expected: Vec::new(), code, packs: false }
}

fn packing(case: Case) -> Case {
    Case { packs: true, ..case }
}

fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    frame(CLOSE, &[&code.to_be_bytes(), reason].concat())
}

fn messages_and_pings() -> Vec<Case> {
    let mut cases = Vec::new();
    for length in [0, 1, 125, 126, 127, 128, 65535, 65536, 300_000] {
        let payload = vec![b'*'; length];
        for first in [TEXT, BINARY] {
            cases.push(good(&format!("1.{first:x} {length}"), &[frame(first, &payload)], &[(first, &payload)]));
        }
    }
    let longest = [b'*'; 125];
    cases.extend([
        good("2.1", &[frame(PING, b"")], &[(PONG, b"")]),
        good("2.3", &[frame(PING, b"\x00\xff\xfe")], &[(PONG, b"\x00\xff\xfe")]),
        good("2.4", &[frame(PING, &longest)], &[(PONG, &longest)]),
        bad("2.5", &[frame(PING, &[b'*'; 126])], 1002),
        good("2.8", &[frame(PONG, b"unsolicited"), frame(TEXT, b"x")], &[(TEXT, b"x")]),
        good("2.10", &[frame(TEXT, b"1"), frame(TEXT, b"2")], &[(TEXT, b"1"), (TEXT, b"2")]),
    ]);
    cases
}

fn bits_kinds_and_parts() -> Vec<Case> {
    let mut cases = Vec::new();
    for bits in 1..8u8 {
        for first in [TEXT, PING, CLOSE] {
            cases.push(bad(&format!("3.{bits} {first:x}"), &[frame(first | bits << 4, b"")], 1002));
        }
    }
    for kind in (3..8).chain(11..16) {
        cases.push(bad(&format!("4.{kind}"), &[frame(LAST | kind, b"x")], 1002));
    }
    cases.extend([
        bad("5.1", &[frame(PING & 0x7f, b"a"), frame(LAST, b"b")], 1002),
        good("5.3", &[frame(FIRST, b"a"), frame(LAST, b"b")], &[(TEXT, b"ab")]),
        good("5.6", &[frame(FIRST, b"a"), frame(PING, b"p"), frame(LAST, b"b")], &[(TEXT, b"ab"), (PONG, b"p")]),
        bad("5.9", &[frame(LAST, b"none")], 1002),
        bad("5.12", &[frame(MORE, b"none"), frame(TEXT, b"x")], 1002),
        bad("5.18", &[frame(FIRST, b"a"), frame(TEXT, b"b")], 1002),
        good("5.19", &[frame(FIRST, b"1"), frame(MORE, b"2"), frame(MORE, b"3"), frame(LAST, b"")], &[(TEXT, b"123")]),
        bad("without a mask (RFC 6455 5.1)", &[vec![TEXT, 1, b'x']], 1002),
    ]);
    cases
}

fn utf8_and_closes() -> Vec<Case> {
    let all = "κόσμε \u{0}\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}\u{d7ff}\u{e000}".as_bytes();
    let parts = all.iter().enumerate().map(|(at, byte)| frame(if at == 0 { FIRST } else { MORE }, &[*byte]));
    let parts: Vec<_> = parts.chain([frame(LAST, b"")]).collect();
    let mut cases = vec![good("6.2", &[frame(TEXT, all)], &[(TEXT, all)]), good("6.2.4", &parts, &[(TEXT, all)])];
    for wrong in
        [&b"\xce\xba\xed\xa0\x80"[..], b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xe0\x80\x80", b"\xfe", b"\x80", b"\xce"]
    {
        cases.push(bad(&format!("6.3 {wrong:x?}"), &[frame(TEXT, wrong)], 1007));
    }
    // Before the message is complete.
    cases.push(bad("6.4", &[frame(FIRST, b"\xed\xa0\x80")], 1007));
    for code in [1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        cases.push(bad(&format!("7.7 {code}"), &[close(code, b"")], code));
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535] {
        cases.push(bad(&format!("7.9 {code}"), &[close(code, b"")], 1002));
    }
    cases.extend([
        bad("7.1.2", &[frame(CLOSE, b""), frame(CLOSE, b"")], 1005),
        bad("7.1.5", &[frame(FIRST, b"a"), frame(CLOSE, b""), frame(LAST, b"b")], 1005),
        bad("7.3.2", &[frame(CLOSE, b"a")], 1002),
        bad("7.3.5", &[close(1000, &[b'*'; 123])], 1000),
        bad("7.3.6", &[close(1000, &[b'*'; 124])], 1002),
        bad("7.5.1", &[close(1000, b"\xed\xa0\x80")], 1007),
        bad("9, above the limit", &[frame(FIRST, &vec![b'x'; 1 << 20]), frame(LAST, b"x")], 1009),
    ]);
    cases
}

fn packed() -> Vec<Case> {
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    let parts = [frame(FIRST | 0x40, &hello[..3]), frame(LAST, &hello[3..])];
    vec![
        packing(good("12.1", &[frame(TEXT | 0x40, &hello)], &[(TEXT, b"Hello")])),
        packing(good("12.1 in parts", &parts, &[(TEXT, b"Hello")])),
        packing(good(
            "12.1, one packed",
            &[frame(TEXT, b"a"), frame(TEXT | 0x40, &hello)],
            &[(TEXT, b"a"), (TEXT, b"Hello")],
        )),
        packing(bad("12, no deflate", &[frame(TEXT | 0x40, &[0xff; 30])], 1002)),
        packing(bad("12, a packed ping", &[frame(PING | 0x40, b"")], 1002)),
        bad("12, without an agreement", &[frame(TEXT | 0x40, &hello)], 1002),
    ]
}

fn cases() -> Vec<Case> {
    let all = [messages_and_pings(), bits_kinds_and_parts(), utf8_and_closes(), packed()];
    let cases: Vec<Case> = all.into_iter().flatten().collect();
    assert!(cases.len() > 80, "{}", cases.len());
    cases
}

/// Splits a server's frames by kind; the last one is its close, whose code is returned.
fn read(mut data: &[u8], name: &str) -> (BTreeMap<u8, Vec<Vec<u8>>>, u16) {
    let mut found: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
    loop {
        let [first, short, rest @ ..] = data else { panic!("{name}: the server's data end without a close") };
        let wide = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let (length, rest) = rest.split_at(wide);
        let length = match wide {
            0 => usize::from(*short),
            _ => length.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)),
        };
        let (payload, rest) = rest.split_at(length);
        if *first == CLOSE {
            assert!(rest.is_empty(), "{name}: data after the close");
            return (found, payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code)));
        }
        found.entry(*first).or_default().push(payload.to_vec());
        data = rest;
    }
}

/// A server's frame as bytes.
fn frame_of(frame: &Frame) -> Vec<u8> {
    let length = frame.payload.len() as u64;
    let head = match length {
        0..126 => vec![frame.first, length as u8],
        _ => [&[frame.first, 127][..], &length.to_be_bytes()].concat(),
    };
    [head, frame.payload.clone()].concat()
}

fn check(case: &Case, data: &[u8]) {
    let (found, code) = read(data, &case.name);
    assert_eq!(code, case.code, "{}", case.name);
    let mut expected: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
    for (first, payload) in &case.expected {
        expected.entry(*first).or_default().push(payload.clone());
    }
    assert!(found == expected, "{}: {:?}", case.name, found.keys());
}

fn echo(setup: Setup) -> Setup {
    let rule = "[{ path = \"/echo.php\", websocket = \"/echo.php\", cors = { origins = [\"https://localhost\"] } }]";
    setup.workers(2).php("echo.php", ECHO).setting("rule", rule)
}

#[test]
fn a_server_answers_autobahns_cases_over_http_1() {
    run(
        Mode::Classic,
        |s| echo(s.http1("this is HTTP/1.1's half of the list")),
        |site| {
            for case in cases() {
                let offer = [("Sec-WebSocket-Extensions", "permessage-deflate")];
                let fields = if case.packs { &offer[..] } else { &[] };
                let mut socket = WebSocket::ask(site, "/echo.php", fields).unwrap();
                // A server that has seen a violation reads no further.
                let _ = socket.conn.try_send(&case.sent);
                let mut data = Vec::new();
                for _ in &case.expected {
                    data.extend(frame_of(&socket.try_next().unwrap()));
                }
                if !case.expected.is_empty() {
                    socket.send(CLOSE, 1000u16.to_be_bytes());
                }
                data.extend(std::iter::from_fn(|| socket.conn.raw_byte()));
                check(&case, &data);
            }
        },
    );
}

#[test]
fn a_server_answers_autobahns_cases_over_http_2() {
    run(
        Mode::Classic,
        |s| echo(client(s)),
        |site| {
            let mut other = ConnectClient::start(site, &["frames", "/echo.php"]);
            for case in cases() {
                let hex: String = case.sent.iter().map(|byte| format!("{byte:02x}")).collect();
                let kind = if case.packs { "packing" } else { "plain" };
                other.tell(&format!("{kind} {} {hex}", case.expected.len()));
                let line = other.line();
                let bytes: Vec<u8> = line
                    .as_bytes()
                    .chunks(2)
                    .map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap())
                    .collect();
                check(&case, &bytes);
            }
            assert_eq!(other.end(), "");
        },
    );
}

//! The cases of the Autobahn test suite for servers, by their numbers, as tables: frames from a client, the parsed
//! result, and the close code for violations of the protocol.

use crate::close::Close;
use crate::deflate;
use crate::frames::{Incoming, Receiver};

/// A client's frame: the first byte, and its payload, masked.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        short @ 0..126 => out.push(0x80 | short as u8),
        long if long < 1 << 16 => {
            out.push(0x80 | 126);
            out.extend((long as u16).to_be_bytes());
        }
        long => {
            out.push(0x80 | 127);
            out.extend((long as u64).to_be_bytes());
        }
    }
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    out.extend(mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

fn text(text: &str) -> String {
    format!("text {text}")
}

/// Reads bytes that arrive in pieces of `piece` bytes. Returns a word for each message or control frame, and at a
/// violation the close code.
fn read_in(bytes: &[u8], piece: usize, deflate: bool, limit: usize) -> Vec<String> {
    let mut receiver = Receiver::new(limit, deflate);
    let mut seen = Vec::new();
    for mut input in bytes.chunks(piece.max(1)) {
        loop {
            match receiver.take(&mut input) {
                Ok(None) => break,
                Ok(Some(Incoming::Message(data, true))) => seen.push(format!("binary {}", data.escape_ascii())),
                Ok(Some(Incoming::Message(data, false))) => seen.push(text(std::str::from_utf8(&data).unwrap())),
                Ok(Some(Incoming::Ping(data))) => seen.push(format!("ping {}", data.escape_ascii())),
                Ok(Some(Incoming::Pong)) => seen.push("pong".to_owned()),
                Ok(Some(Incoming::Close(close))) => {
                    seen.push(format!("close {} {}", close.number(), close.reason.escape_ascii()));
                    return seen;
                }
                Err((code, _)) => {
                    seen.push(code.to_string());
                    return seen;
                }
            }
        }
        assert!(input.is_empty());
    }
    seen
}

/// Asserts that the result does not depend on the size of the pieces, and returns it.
fn read(bytes: &[u8], deflate: bool) -> Vec<String> {
    let whole = read_in(bytes, bytes.len(), deflate, 1 << 20);
    for piece in [1, 2, 3, 7, 64] {
        assert_eq!(read_in(bytes, piece, deflate, 1 << 20), whole, "in pieces of {piece}");
    }
    whole
}

/// A name, frames, and the expected result.
type Case<'a> = (&'a str, Vec<Vec<u8>>, &'a [&'a str]);

fn check(cases: &[Case<'_>]) {
    for (name, frames, expected) in cases {
        assert_eq!(read(&frames.concat(), false), *expected, "{name}");
    }
}

const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
const CLOSE: u8 = 0x88;
/// First bytes of a text's first frame, of a continuation, and of the last frame.
const FIRST: u8 = 0x01;
const MORE: u8 = 0x00;
const LAST: u8 = 0x80;

#[test]
fn groups_1_and_9_messages_of_all_lengths() {
    for length in [0, 1, 125, 126, 127, 128, 65535, 65536, 65543, 1 << 20] {
        let payload = vec![b'*'; length];
        let payload_text = String::from_utf8(payload.clone()).unwrap();
        for piece in [997, 64 * 1024, 1 << 21] {
            assert_eq!(read_in(&frame(TEXT, &payload), piece, false, 1 << 20), [text(&payload_text)]);
        }
        assert_eq!(read_in(&frame(BINARY, &payload), 1 << 21, false, 1 << 20), [format!("binary {payload_text}")]);
    }
    // 9.x: above the limit, as announced or in total.
    assert_eq!(read_in(&frame(TEXT, &[b'*'; 101]), 9, false, 100), ["1009"]);
    assert_eq!(read_in(&frame(TEXT, &[b'*'; 101])[..8], 9, false, 100), ["1009"]);
    let parts = [frame(FIRST, &[b'*'; 60]), frame(LAST, &[b'*'; 41])].concat();
    assert_eq!(read_in(&parts, 9, false, 100), ["1009"]);
    // Both extremes of a 63-bit length.
    let announced = |length: u64| [&[BINARY, 0xff][..], &length.to_be_bytes(), &[0; 4]].concat();
    assert_eq!(read(&announced(u64::MAX >> 1), false), ["1009"]);
    assert_eq!(read(&announced(u64::MAX), false), ["1002"]);
    // Lengths that are not encoded in the shortest form.
    assert_eq!(read(&announced(65535), false), ["1002"]);
    assert_eq!(read(&[&[BINARY, 0xfe, 0, 125][..], &[0; 4]].concat(), false), ["1002"]);
    // RFC 6455 5.1.
    assert_eq!(read(&[TEXT, 1, b'x'], false), ["1002"]);
}

#[test]
fn group_2_pings_and_pongs() {
    let longest = "*".repeat(125);
    check(&[
        ("2.1", vec![frame(PING, b"")], &["ping "]),
        ("2.2", vec![frame(PING, b"Hello")], &["ping Hello"]),
        ("2.3", vec![frame(PING, b"\x00\xff\xfe")], &["ping \\x00\\xff\\xfe"]),
        ("2.4", vec![frame(PING, longest.as_bytes())], &[&*format!("ping {longest}")]),
        ("2.5", vec![frame(PING, &[b'*'; 126])], &["1002"]),
        ("2.7", vec![frame(PONG, b"")], &["pong"]),
        ("2.8", vec![frame(PONG, b"unsolicited")], &["pong"]),
        ("2.9", vec![frame(PONG, b"x"), frame(PING, b"y")], &["pong", "ping y"]),
        ("2.10", vec![frame(PING, b"1"), frame(PING, b"2")], &["ping 1", "ping 2"]),
    ]);
}

#[test]
fn groups_3_and_4_reserved_bits_and_kinds() {
    for bits in 1..8u8 {
        for first in [TEXT, BINARY, PING, PONG, CLOSE] {
            let frames = [frame(TEXT, b"before"), frame(first | bits << 4, b"")].concat();
            assert_eq!(read(&frames, false), ["text before", "1002"], "3.{bits} {first:x}");
        }
    }
    for kind in (3..8).chain(11..16) {
        let frames = [frame(TEXT, b"before"), frame(LAST | kind, b"x"), frame(PING, b"")].concat();
        assert_eq!(read(&frames, false), ["text before", "1002"], "4.{kind}");
    }
}

#[test]
fn group_5_parts() {
    check(&[
        ("5.1", vec![frame(PING & 0x7f, b"a"), frame(LAST, b"b")], &["1002"]),
        ("5.2", vec![frame(PONG & 0x7f, b"a"), frame(LAST, b"b")], &["1002"]),
        ("5.3", vec![frame(FIRST, b"a"), frame(LAST, b"b")], &["text ab"]),
        ("5.6", vec![frame(FIRST, b"a"), frame(PING, b"p"), frame(LAST, b"b")], &["ping p", "text ab"]),
        ("5.9", vec![frame(LAST, b"none")], &["1002"]),
        ("5.12", vec![frame(MORE, b"none"), frame(TEXT, b"x")], &["1002"]),
        ("5.15", vec![frame(FIRST, b"a"), frame(LAST, b"b"), frame(MORE, b"c")], &["text ab", "1002"]),
        ("5.18", vec![frame(FIRST, b"a"), frame(TEXT, b"b")], &["1002"]),
        (
            "5.19",
            vec![
                frame(FIRST, b"1"),
                frame(MORE, b"2"),
                frame(PING, b"p"),
                frame(MORE, b"3"),
                frame(PING, b"q"),
                frame(LAST, b""),
            ],
            &["ping p", "ping q", "text 123"],
        ),
    ]);
}

#[test]
fn group_6_utf8() {
    let all = "κόσμε \u{0}\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}\u{d7ff}\u{e000}";
    // Each byte in a separate frame; a truncated frame is incomplete.
    let parts: Vec<Vec<u8>> =
        all.bytes().enumerate().map(|(at, b)| frame(if at == 0 { FIRST } else { MORE }, &[b])).collect();
    assert_eq!(read(&[parts.concat(), frame(LAST, b"")].concat(), false), [text(all)]);
    assert_eq!(read(&frame(TEXT, all.as_bytes()), false), [text(all)]);
    for wrong in [
        &b"\xce\xba\xe1\xbd\xb9\xed\xa0\x80edited"[..],
        b"\xf4\x90\x80\x80",
        b"\xc0\xaf",
        b"\xe0\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xfe",
        b"\x80",
        b"\xed\xbf\xbf",
        b"\xf0\x80\x80\x80",
    ] {
        assert_eq!(read(&frame(TEXT, wrong), false), ["1007"], "{wrong:x?}");
        // 6.4: before the message is complete.
        assert_eq!(read(&[frame(FIRST, wrong), frame(PING, b"")].concat(), false), ["1007"], "{wrong:x?}");
    }
    for cut in [&b"\xce"[..], b"\xe1\xbd", b"\xf4\x8f\xbf"] {
        assert_eq!(read(&frame(TEXT, cut), false), ["1007"], "{cut:x?}");
        assert_eq!(read(&frame(BINARY, cut), false), [format!("binary {}", cut.escape_ascii())]);
    }
}

#[test]
fn group_7_closes() {
    let close = |code: u16, reason: &[u8]| frame(CLOSE, &[&code.to_be_bytes(), reason].concat());
    check(&[
        ("7.1.2", vec![frame(CLOSE, b""), frame(CLOSE, b"")], &["close 1005 "]),
        ("7.1.3", vec![frame(CLOSE, b""), frame(PING, b"")], &["close 1005 "]),
        ("7.1.5", vec![frame(FIRST, b"a"), frame(CLOSE, b""), frame(LAST, b"b")], &["close 1005 "]),
        ("7.3.2", vec![frame(CLOSE, b"a")], &["1002"]),
        ("7.3.4", vec![close(1000, b"Hello World!")], &["close 1000 Hello World!"]),
        ("7.3.5", vec![close(1000, &[b'*'; 123])], &[&*format!("close 1000 {}", "*".repeat(123))]),
        ("7.3.6", vec![close(1000, &[b'*'; 124])], &["1002"]),
        ("7.5.1", vec![close(1000, b"\xed\xa0\x80")], &["1007"]),
    ]);
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999] {
        assert_eq!(read(&close(code, b""), false), [format!("close {code} ")], "7.7");
    }
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535] {
        assert_eq!(read(&close(code, b""), false), ["1002"], "7.9");
    }
}

#[test]
fn groups_12_and_13_packed_messages() {
    let packed = |first: u8, data: &[u8]| frame(first | 0x40, &deflate::pack(data).unwrap_or_else(|| data.to_vec()));
    for length in [200, 1024, 8192, 131_072, 1 << 20] {
        let data = "äx repeated ".repeat(length / 13);
        assert!(read_in(&packed(TEXT, data.as_bytes()), 4096, true, 1 << 20) == [text(&data)], "{length}");
    }
    let hello = [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00];
    // A compressed message in several frames, with a ping in between; only the first frame has the bit.
    let parts = [frame(FIRST | 0x40, &hello[..3]), frame(PING, b"p"), frame(LAST, &hello[3..])].concat();
    assert_eq!(read(&parts, true), ["ping p", "text Hello"]);
    let again = [frame(FIRST | 0x40, &hello[..3]), frame(LAST | 0x40, &hello[3..])].concat();
    assert_eq!(read(&again, true), ["1002"]);
    assert_eq!(read(&frame(PING | 0x40, b""), true), ["1002"]);
    // Uncompressed messages may come in between.
    let mixed = [frame(TEXT, b"plain"), frame(TEXT | 0x40, &hello), frame(BINARY, b"x")].concat();
    assert_eq!(read(&mixed, true), ["text plain", "text Hello", "binary x"]);
    assert_eq!(read(&frame(TEXT | 0x40, &hello), false), ["1002"], "without an agreement");
    assert_eq!(read(&frame(TEXT | 0x40, &[0xff; 30]), true), ["1002"], "no deflate");
    let not_utf8 = deflate::pack(&[0xff; 2000]).unwrap();
    assert_eq!(read(&frame(TEXT | 0x40, &not_utf8), true), ["1007"]);
    let bomb = deflate::pack(&vec![0; 8 << 20]).unwrap();
    assert_eq!(read_in(&frame(BINARY | 0x40, &bomb), 1 << 20, true, 1 << 20), ["1009"]);
}

#[test]
fn an_idle_client_has_no_memory_beyond_the_receiver() {
    let mut receiver = Receiver::new(1 << 20, true);
    let bytes = [frame(TEXT, &[b'*'; 5000]), frame(PING, b"Hello")].concat();
    let mut input = &bytes[..];
    while receiver.take(&mut input).unwrap().is_some() {}
    assert!(receiver.buffered_bytes() == 0 && size_of::<Receiver>() <= 120, "{}", size_of::<Receiver>());
}

#[test]
fn reasons_are_cut_between_characters() {
    let close = Close { code: Some(1000), reason: "ä".repeat(100).into() };
    let payload = close.payload();
    assert_eq!((payload.len(), std::str::from_utf8(&payload[2..]).is_ok()), (2 + 122, true));
    assert!(Close::NO_STATUS.payload().is_empty());
}

//! Tests of `decoder` with all kinds of input, split at every position.

use super::*;
use crate::fastcgi::record::write;

fn begin(id: u16, role: u8, flags: u8) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, kind::BEGIN_REQUEST, id, &[0, role, flags, 0, 0, 0, 0, 0]);
    out
}

fn record(kind: u8, id: u16, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, kind, id, content);
    out
}

/// A record with padding, as web servers write it.
fn padded(kind: u8, id: u16, content: &[u8]) -> Vec<u8> {
    let mut out = Header::bytes(kind, id, content.len() as u16).to_vec();
    out[6] = 5;
    [&out, content, &[9; 5]].concat()
}

fn variables(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in pairs {
        write_pair(&mut out, name.as_bytes(), value.as_bytes());
    }
    out
}

/// Outcome of reading bytes: events as text, output, and the error.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    events: Vec<String>,
    sent: Vec<(u8, u16, Vec<u8>)>,
    malformed: Option<Malformed>,
}

/// Reads bytes in pieces of this size. Requests end with their bodies.
fn read(bytes: &[u8], size: usize) -> Read {
    let (mut decoder, mut input, mut out) = (Decoder::new(100_000, 7), BytesMut::new(), Vec::new());
    let mut read = Read::default();
    let mut body = Vec::new();
    for piece in bytes.chunks(size) {
        input.extend_from_slice(piece);
        loop {
            match decoder.next(&mut input, &mut out) {
                Ok(None) => break,
                Ok(Some(Event::Body(part))) => body.extend_from_slice(&part),
                Ok(Some(event)) => {
                    match &event {
                        Event::Request(RequestStart { id, keep_connection, params }) => {
                            let pairs: Vec<String> = params
                                .iter()
                                .map(|(n, v)| format!("{}={}", n.escape_ascii(), v.escape_ascii()))
                                .collect();
                            read.events.push(format!("{id} {keep_connection} {}", pairs.join(" ")));
                        }
                        Event::BodyEnd => read.events.push(format!("body {}", std::mem::take(&mut body).len())),
                        other => read.events.push(format!("{other:?}")),
                    }
                    if !matches!(event, Event::Request(_)) {
                        decoder.finish();
                    }
                }
                Err(malformed) => {
                    read.malformed = Some(malformed);
                    return read;
                }
            }
        }
    }
    let mut sent = &out[..];
    while let Some(header) = sent.first_chunk::<HEADER>() {
        let header = Header::parse(header).unwrap();
        let end = HEADER + usize::from(header.length);
        read.sent.push((header.kind, header.id, sent[HEADER..end].to_vec()));
        sent = &sent[end..];
    }
    read
}

#[test]
fn requests_are_read_wherever_their_bytes_are_cut() {
    let long = "x".repeat(70_000);
    let first = variables(&[("A", "1"), ("LONG", &long), ("", "no name"), ("A", "2")]);
    let (one, rest) = first.split_at(66);
    let bytes = [
        record(kind::GET_VALUES, 0, &variables(&[("FCGI_MPXS_CONNS", ""), ("FCGI_MAX_CONNS", ""), ("OTHER", "")])),
        record(99, 0, b"??"),
        begin(1, 1, 1),
        padded(kind::PARAMS, 1, one),
        record(kind::PARAMS, 1, rest),
        padded(kind::PARAMS, 1, b""),
        padded(kind::STDIN, 1, &[b'b'; 300]),
        begin(2, 1, 1),
        record(kind::PARAMS, 2, b"garbage"),
        record(kind::STDIN, 1, &[b'c'; 70_000]),
        record(kind::STDIN, 1, b""),
        begin(5, 3, 0),
        begin(3, 1, 0),
        record(kind::ABORT_REQUEST, 3, b""),
        begin(4, 1, 0),
        record(kind::PARAMS, 4, &variables(&[("B", "")])),
        record(kind::PARAMS, 4, b""),
        record(kind::ABORT_REQUEST, 4, b""),
    ]
    .concat();
    let whole = read(&bytes, bytes.len());
    assert_eq!(whole.malformed, None);
    assert_eq!(whole.events, [&*format!("1 true A=1 LONG={long} A=2"), "body 70300", "4 false B=", "Abort"]);
    let sent: Vec<(u8, u16)> = whole.sent.iter().map(|(kind, id, _)| (*kind, *id)).collect();
    let ends = [2, 5, 3].map(|id| (kind::END_REQUEST, id));
    assert_eq!(sent, [[(kind::GET_VALUES_RESULT, 0), (kind::UNKNOWN_TYPE, 0)].as_slice(), &ends].concat());
    assert_eq!(whole.sent[0].2, variables(&[("FCGI_MAX_CONNS", "7"), ("FCGI_MPXS_CONNS", "0")]));
    let statuses: Vec<u8> = whole.sent[2..].iter().map(|(.., content)| content[4]).collect();
    assert_eq!(statuses, [EndStatus::CannotMultiplex as u8, EndStatus::UnknownRole as u8, EndStatus::Complete as u8]);
    for size in [1, 2, 3, 7, 8, 9, 13, 64, 1000] {
        assert_eq!(read(&bytes, size), whole, "in pieces of {size}");
    }
}

#[test]
fn invalid_fastcgi_is_an_error() {
    let begun = begin(1, 1, 0);
    let complete = [&begun[..], &record(kind::PARAMS, 1, b"")].concat();
    let after = |rest: &[u8]| [&begun[..], rest].concat();
    let cases = [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Malformed::Version),
        (after(&[2; 8]), Malformed::Version),
        (after(&begun), Malformed::Nested),
        (record(kind::BEGIN_REQUEST, 1, &[0, 1]), Malformed::Record),
        (record(kind::BEGIN_REQUEST, 1, &[0; 5000]), Malformed::Record),
        (record(kind::GET_VALUES, 0, &[200]), Malformed::Params),
        (after(&record(kind::STDIN, 1, b"x")), Malformed::Record),
        ([&complete[..], &record(kind::PARAMS, 1, b"x")].concat(), Malformed::Record),
        (
            after(
                &[record(kind::PARAMS, 1, &[0xff, 0xff, 0xff, 0xff, 0, b'x']), record(kind::PARAMS, 1, b"")].concat(),
            ),
            Malformed::Params,
        ),
    ];
    for (bytes, malformed) in cases {
        for size in [1, bytes.len()] {
            assert_eq!(read(&bytes, size).malformed, Some(malformed), "{bytes:?}");
        }
    }
}

#[test]
fn variables_are_limited_in_size_and_number() {
    let begun = begin(1, 1, 0);
    let many = variables(&vec![("A", "b"); crate::params::MAX_PARAMS + 1]);
    for content in [vec![0; 100_001], many] {
        let bytes = [&begun[..], &record(kind::PARAMS, 1, &content), &record(kind::PARAMS, 1, b"")].concat();
        let read = read(&bytes, 4096);
        assert_eq!(read.events.first().map(String::as_str), Some("TooLarge(1)"));
    }
}

//! Fuzz target: bytes from a web server. The result must not depend on how they are split, and variables, heads and
//! bodies must satisfy the limits and rules that handlers rely on.

use super::decoder::{Decoder, Event, Malformed};
use super::head;
use crate::params::MAX_PARAMS;
use bytes::BytesMut;

/// Maximum size of variables in bytes, for this target.
const MAX_INPUT: usize = 4096;

/// Outcome of a connection: requests by their methods and targets, bodies, output, and the violation that ended it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    requests: Vec<(u16, bool, String)>,
    body: Vec<u8>,
    ends: usize,
    sent: Vec<u8>,
    malformed: Option<Malformed>,
    too_large: bool,
}

/// Reads a connection's bytes, as a whole and in pieces.
pub fn fastcgi_connection(data: &[u8]) {
    let whole = read(data, data.len().max(1));
    for size in [1, 2, 7, 64] {
        let pieces = read(data, size);
        assert!(whole == pieces, "in pieces of {size}: {whole:?} / {pieces:?}");
    }
}

fn read(data: &[u8], size: usize) -> Read {
    let (mut decoder, mut input) = (Decoder::new(MAX_INPUT, 0), BytesMut::new());
    let mut read = Read::default();
    for piece in data.chunks(size) {
        input.extend_from_slice(piece);
        loop {
            match decoder.next(&mut input, &mut read.sent) {
                Ok(None) => break,
                Ok(Some(Event::Request(begun))) => {
                    assert!(begun.params.iter().count() <= MAX_PARAMS);
                    assert!(
                        begun.params.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= MAX_INPUT
                    );
                    let head = head::head(&begun.params).map(|head| {
                        let fields = ["connection", "transfer-encoding", "upgrade", "expect"];
                        assert!(fields.iter().all(|name| !head.headers.contains_key(*name)));
                        assert!(head.target.as_bytes().iter().all(|&byte| byte > b' ' && byte != 0x7f));
                        format!("{} {}", head.method, head.target.as_bytes().escape_ascii())
                    });
                    read.requests.push((begun.id, begun.keep_connection, head.unwrap_or_else(str::to_owned)));
                }
                Ok(Some(Event::Body(part))) => {
                    assert!(!part.is_empty());
                    read.body.extend_from_slice(&part);
                }
                Ok(Some(Event::BodyEnd | Event::Abort)) => {
                    read.ends += 1;
                    decoder.finish();
                }
                Ok(Some(Event::TooLarge(_))) => {
                    read.too_large = true;
                    return read;
                }
                Err(malformed) => {
                    read.malformed = Some(malformed);
                    return read;
                }
            }
            assert!(decoder.buffered_params() <= MAX_INPUT);
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_fuzz_driver::Target;

    #[test]
    fn connections_are_read_alike_wherever_their_bytes_are_cut() {
        let words: &[&[u8]] = &[
            b"\x01\x01\0\x01\0\x08\0\0\0\x01\x01\0\0\0\0\0",
            b"\x01\x01\0\x02\0\x08\0\0\0\x01\0\0\0\0\0\0",
            b"\x01\x04\0\x01\0\0\0\0",
            b"\x01\x05\0\x01\0\0\0\0",
            b"\x01\x05\0\x01\0\x03\x02\0abc\0\0",
            b"\x01\x02\0\x01\0\0\0\0",
            b"\x01\x09\0\0\0\x11\0\0\x0f\0FCGI_MPXS_CONNS",
            b"\x01\x04\0\x01\0\x13\0\0\x0e\x03REQUEST_METHODGET",
            b"\x01\x04\0\x01\0\x0f\0\0\x0b\x02REQUEST_URI/a",
            b"\x80\0\0\x01",
            b"\xff\xff\xff\xff",
        ];
        let target =
            Target { name: "fastcgi_connection", corpus: "fastcgi_connection", words, run: fastcgi_connection };
        howdah_fuzz_driver::drive(&target, 20_000);
    }
}

//! Fuzz target: bytes from a client on a request's stream. The result must not depend on how they are split, and must
//! satisfy the rules that handlers rely on.

use super::body::Parts;
use super::code::Fault;
use super::frames::{Frames, Source, kind};
use super::{head, qpack};
use bytes::{Bytes, BytesMut};
use http::Method;
use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

/// Maximum size of a field list that this target accepts.
const MAX_INPUT: usize = 4096;

struct Pieces(VecDeque<Bytes>);

impl Source for Pieces {
    fn poll_bytes(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        Poll::Ready(Ok(self.0.pop_front()))
    }
}

/// Result of parsing a stream.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    Nothing,
    Fault(Fault),
    TooLarge,
    Head { fields: usize, target: Bytes, body: Result<Vec<u8>, Fault> },
}

/// Parses a stream's bytes, as a whole and in pieces.
pub fn http3_stream(data: &[u8]) {
    let whole = read(data, data.len().max(1));
    for size in [1, 2, 7] {
        let pieces = read(data, size);
        assert!(whole == pieces, "in pieces of {size}: {whole:?} / {pieces:?}");
    }
}

fn read(data: &[u8], size: usize) -> Read {
    let pieces = data.chunks(size).map(Bytes::copy_from_slice).collect();
    let mut frames = Frames::new(Pieces(pieces));
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        match frames.poll_frame(&mut cx) {
            Poll::Ready(Ok(Some(kind::HEADERS))) => break,
            Poll::Ready(Ok(Some(_))) => {}
            Poll::Ready(Err(fault)) => return Read::Fault(fault),
            Poll::Ready(Ok(None)) | Poll::Pending => return Read::Nothing,
        }
    }
    if frames.left() > MAX_INPUT as u64 {
        return Read::TooLarge;
    }
    let mut block = BytesMut::new();
    loop {
        match frames.poll_payload(&mut cx) {
            Poll::Ready(Ok(Some(bytes))) => block.extend_from_slice(&bytes),
            Poll::Ready(Err(fault)) => return Read::Fault(fault),
            Poll::Ready(Ok(None)) | Poll::Pending => break,
        }
    }
    let Ok(lines) = qpack::decode(block.freeze(), MAX_INPUT) else { return Read::TooLarge };
    let size: usize = lines.iter().map(|line| line.name.len() + line.value.len() + 32).sum();
    assert!(size <= MAX_INPUT, "a list of {size} bytes");
    let Ok(head) = head::request(lines, true) else { return Read::Nothing };
    let target = Bytes::copy_from_slice(head.target.as_bytes());
    assert!(target.iter().all(|&byte| byte > b' ' && byte != 0x7f), "{}", target.escape_ascii());
    assert!(matches!(target.first(), None | Some(b'/' | b'*')), "{}", target.escape_ascii());
    let length = head.headers.get("content-length").map(|value| value.to_str().map(str::parse::<u64>));
    let length = length.map(|length| length.ok().and_then(Result::ok));
    assert!(length != Some(None), "a length that is none");
    assert!(["connection", "transfer-encoding"].iter().all(|name| !head.headers.contains_key(*name)));
    // An extended CONNECT.
    assert!(!head.headers.contains_key("upgrade") || (head.method == Method::GET && length.is_none()));
    let mut parts = Parts::new(frames, length.flatten());
    let mut body = Vec::new();
    let body = loop {
        match parts.poll(&mut cx) {
            Poll::Ready(Ok(Some(bytes))) => {
                assert!(!bytes.is_empty());
                body.extend_from_slice(&bytes);
            }
            Poll::Ready(Err(fault)) => break Err(fault),
            Poll::Ready(Ok(None)) | Poll::Pending => break Ok(body),
        }
    };
    assert!(
        body.as_ref().is_ok_and(|body| length.flatten().is_none_or(|length| length == body.len() as u64))
            || body.is_err()
    );
    Read::Head { fields: head.headers.len(), target, body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_fuzz_driver::Target;

    #[test]
    fn streams_are_read_alike_however_they_are_split() {
        let words: &[&[u8]] = &[
            b"\x01\x0e\0\0\xd1\xd7\xc1\x50\x08h",
            b"\0\x04abcd",
            b"\x21\0",
            b"\x01\0",
            b"\xd4",
            b"\x54\x014",
            b"\x51\x02/a",
            b"\x23abc\x01d",
            b"\x2b\x94\xe7\x82\x1d",
            b"\x40\x05",
            b"\xff\x24",
        ];
        howdah_fuzz_driver::drive(
            &Target { name: "http3_stream", corpus: "http3_stream", words, run: http3_stream },
            20_000,
        );
    }
}

use super::*;
use bytes::BytesMut;
use std::collections::VecDeque;
use std::task::Waker;

/// Bytes in pieces of a fixed length.
pub(in super::super) struct Pieces(VecDeque<Bytes>);

impl Pieces {
    pub(in super::super) fn new(bytes: &[u8], size: usize) -> Self {
        Self(bytes.chunks(size).map(Bytes::copy_from_slice).collect())
    }
}

impl Source for Pieces {
    fn poll_bytes(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        Poll::Ready(Ok(self.0.pop_front()))
    }
}

pub(in super::super) fn now<T>(poll: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> T {
    match poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("not ready"),
    }
}

#[test]
fn numbers_round_trip() {
    for number in [0, 1, 63, 64, 16383, 16384, 1 << 30, (1 << 30) - 1, (1 << 62) - 1] {
        let mut out = BytesMut::new();
        put_number(&mut out, number);
        for size in [1, 3, 8] {
            let mut frames = Frames::new(Pieces::new(&out, size));
            assert_eq!(now(|cx| frames.poll_number(cx)), Ok(Some(number)));
            assert_eq!(now(|cx| frames.poll_number(cx)), Ok(None));
        }
    }
}

#[test]
fn frames_are_the_same_however_they_are_split() {
    let mut out = BytesMut::new();
    put_frame(&mut out, kind::HEADERS, 5);
    out.extend_from_slice(b"heads");
    put_frame(&mut out, kind::DATA, 0);
    put_frame(&mut out, 0x21 + 0x1f * 4096, 300);
    out.extend_from_slice(&[7; 300]);
    put_frame(&mut out, kind::DATA, 4);
    out.extend_from_slice(b"data");
    for size in [1, 2, 7, 4096] {
        let mut frames = Frames::new(Pieces::new(&out, size));
        let mut seen = Vec::new();
        while let Some(kind) = now(|cx| frames.poll_frame(cx)).unwrap() {
            let mut payload = Vec::new();
            // Unknown frames are skipped by requesting the next one.
            while kind < 9
                && let Some(bytes) = now(|cx| frames.poll_payload(cx)).unwrap()
            {
                payload.extend_from_slice(&bytes);
            }
            seen.push((kind, payload));
        }
        let unknown = 0x21 + 0x1f * 4096;
        let expected = [(1, b"heads".to_vec()), (0, vec![]), (unknown, vec![]), (0, b"data".to_vec())];
        assert_eq!(seen, expected, "in pieces of {size}");
    }
}

#[test]
fn an_end_within_a_frame_is_an_error_wherever_it_is() {
    let mut out = BytesMut::new();
    put_frame(&mut out, kind::HEADERS, 70);
    out.extend_from_slice(&[0; 70]);
    for end in 1..out.len() {
        let mut frames = Frames::new(Pieces::new(&out[..end], 16));
        let result = now(|cx| {
            let mut step = frames.poll_frame(cx);
            while matches!(step, Poll::Ready(Ok(Some(_)))) {
                step = frames.poll_frame(cx);
            }
            step
        });
        assert_eq!(result, Err(TRUNCATED), "after {end} bytes");
    }
}

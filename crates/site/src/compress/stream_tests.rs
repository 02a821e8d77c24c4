//! Tests of the stream encoders: random chunks and flushes against real decoders, slices, broken sources, memory.

use super::*;
use crate::compress::cache::{Cache, CacheLookup};
use crate::compress::decode::bodies::{Dice, base64, codings, random, text};
use crate::compress::decode::{Decoder, decode};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

/// A source's reaction to a poll.
enum Step {
    Chunk(Vec<u8>, bool),
    Wait,
    Break,
}

struct Script(VecDeque<Step>);

impl ChunkStream for Script {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        match self.0.pop_front() {
            None => Poll::Ready(None),
            Some(Step::Chunk(data, flush)) => Poll::Ready(Some(Ok(Chunk { data: data.into(), flush }))),
            Some(Step::Wait) => Poll::Pending,
            Some(Step::Break) => Poll::Ready(Some(Err(io::Error::other("worker died")))),
        }
    }
}

/// Counts how often a task was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn encoded(source: impl ChunkStream + 'static, coding: Coding, length: Option<u64>) -> Encoded {
    Encoded::new(Box::new(source), StreamEncoder::new(coding, length).unwrap())
}

fn poll(stream: &mut Encoded) -> Poll<Option<io::Result<Chunk>>> {
    stream.poll_chunk(&mut Context::from_waker(Waker::noop()))
}

/// Reads to the end, and polls again whenever the stream yields.
fn drain(stream: &mut Encoded) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..100_000 {
        match poll(stream) {
            Poll::Ready(Some(chunk)) => out.extend_from_slice(&chunk.unwrap().data),
            Poll::Ready(None) => return out,
            Poll::Pending => {}
        }
    }
    panic!("no end");
}

#[test]
fn after_a_flush_the_decoder_has_seen_everything() {
    for (round, coding) in codings().into_iter().cycle().take(60).enumerate() {
        let mut dice = Dice(round as u64);
        let sizes = [0, 1, 7, 100, 3000, 40_000, 150_000];
        let mut encoder = StreamEncoder::new(coding, None).unwrap();
        let mut decoder = Decoder::new(coding.algorithm);
        let (mut sent, mut all) = (Vec::new(), Vec::new());
        for _ in 0..12 {
            let limit = sizes[dice.roll(sizes.len())];
            let size = dice.roll(limit + 1);
            let part = [text(size), random(size / 3), base64(size / 2)][dice.roll(3)].clone();
            let flush = dice.roll(2) == 0;
            let out = encoder.write(&part, flush).unwrap();
            sent.extend_from_slice(&part);
            all.extend_from_slice(&out);
            let seen = decoder.feed(&out);
            assert!(sent.starts_with(seen), "{coding:?}");
            if flush {
                assert_eq!(seen.len(), sent.len(), "{coding:?}: bytes held back after a flush");
            }
        }
        all.extend_from_slice(&encoder.finish().unwrap());
        assert_eq!(decode(coding.algorithm, &all), sent, "{coding:?}");
    }
}

#[test]
fn without_a_flush_small_parts_are_held_back() {
    // Brotli's quality 0 buffers nothing.
    for coding in codings().into_iter().filter(|coding| coding.level > 0) {
        let mut encoder = StreamEncoder::new(coding, None).unwrap();
        let mut decoder = Decoder::new(coding.algorithm);
        let mut out = 0;
        for _ in 0..20 {
            let bytes = encoder.write(b"a few bytes, ", false).unwrap();
            out += bytes.len();
            decoder.feed(&bytes);
        }
        assert!(out < 30, "{coding:?}: {out} bytes came out unasked");
        // A second flush with nothing in between adds nothing.
        assert!(!encoder.write(b"", true).unwrap().is_empty());
        assert!(encoder.write(b"", true).unwrap().is_empty());
    }
}

#[test]
fn flush_marks_pass_through_chunks() {
    for coding in codings() {
        let steps = [
            Step::Chunk(Vec::new(), true),
            Step::Chunk(b"data: 1\n\n".to_vec(), true),
            Step::Wait,
            Step::Chunk(b"data: 2".to_vec(), false),
            Step::Chunk(b"\n\n".to_vec(), true),
            Step::Wait,
            Step::Chunk(b"bye".to_vec(), false),
        ];
        let mut stream = encoded(Script(steps.into()), coding, None);
        let mut decoder = Decoder::new(coding.algorithm);
        let mut next = |stream: &mut Encoded| match poll(stream) {
            Poll::Ready(Some(chunk)) => {
                let chunk = chunk.unwrap();
                Some((decoder.feed(&chunk.data).len(), chunk.flush))
            }
            _ => None,
        };
        assert_eq!(next(&mut stream), Some((0, true)), "a flush of the head alone");
        assert_eq!(next(&mut stream), Some((9, true)));
        assert_eq!(next(&mut stream), None);
        let mut got = next(&mut stream);
        while got.is_some_and(|(_, flush)| !flush) {
            got = next(&mut stream);
        }
        assert_eq!(got, Some((18, true)));
        assert_eq!(next(&mut stream), None);
        while let Some((_, flush)) = next(&mut stream) {
            assert!(!flush);
        }
        assert_eq!(decoder.feed(b""), b"data: 1\n\ndata: 2\n\nbye");
        assert!(matches!(poll(&mut stream), Poll::Ready(None)));
        assert_eq!(stream.taken(), 21);
    }
}

#[test]
fn empty_bodies_are_valid() {
    for coding in codings() {
        for length in [None, Some(0)] {
            let out = drain(&mut encoded(Script(VecDeque::new()), coding, length));
            assert_eq!(decode(coding.algorithm, &out), b"", "{coding:?}");
        }
    }
}

#[test]
fn a_broken_source_leaves_a_body_without_an_end() {
    for coding in codings() {
        let steps = [Step::Chunk(text(5000), true), Step::Break];
        let mut stream = encoded(Script(steps.into()), coding, None);
        let mut out = Vec::new();
        loop {
            match poll(&mut stream) {
                Poll::Ready(Some(Ok(chunk))) => out.extend_from_slice(&chunk.data),
                Poll::Ready(Some(Err(error))) if error.to_string() == "worker died" => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(matches!(poll(&mut stream), Poll::Ready(None)));
        let whole = std::panic::catch_unwind(|| decode(coding.algorithm, &out));
        assert!(whole.is_err(), "{coding:?}: a decoder accepts it as complete");
    }
}

#[test]
fn large_bodies_yield_between_slices() {
    for coding in codings() {
        let body = Bytes::from(text(10 * SLICE + 17));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut stream = encoded(SingleChunk::new(body.clone()), coding, Some(body.len() as u64));
        let (mut out, mut work_before) = (Vec::new(), 0);
        loop {
            match stream.poll_chunk(&mut cx) {
                Poll::Ready(Some(chunk)) => out.extend_from_slice(&chunk.unwrap().data),
                Poll::Ready(None) => break,
                Poll::Pending => {
                    assert_eq!(stream.taken() - work_before, SLICE as u64, "one slice at a time");
                    work_before = stream.taken();
                }
            }
        }
        assert_eq!(woken.0.load(Ordering::Relaxed), 10);
        assert_eq!(decode(coding.algorithm, &out), body, "{coding:?}");
        assert_eq!((stream.taken(), stream.given()), (body.len() as u64, out.len() as u64));
    }
}

#[test]
fn the_cache_gets_the_body_at_the_end_and_only_then() {
    let coding = codings()[0];
    let cache = Cache::new(8 << 20);
    let body = text(300_000);
    assert!(matches!(cache.look(coding, &body), CacheLookup::New));
    let begin = || {
        let CacheLookup::Again(admission) = cache.look(coding, &body) else { panic!("seen before") };
        let source = SingleChunk::new(admission.original().clone());
        encoded(source, coding, Some(body.len() as u64)).admit(Some(admission))
    };
    let mut given_up = begin();
    for _ in 0..3 {
        let _ = poll(&mut given_up);
    }
    drop(given_up);
    assert_eq!(cache.usage().0, 0);
    let sent = drain(&mut begin());
    let CacheLookup::Hit(Some(stored)) = cache.look(coding, &body) else { panic!("not stored") };
    assert_eq!(stored, sent);
    assert_eq!(decode(coding.algorithm, &stored), body);
}

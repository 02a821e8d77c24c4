//! Random connections through `request_line` into hyper: pipelines, bodies of every framing, heads in pieces, spoilt
//! bytes. What hyper makes of them is compared with what was meant, or with what it makes of them without the reader.

use super::*;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A small generator of numbers: each seed gives the same connection each time.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % most as u64).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// What a service saw of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    method: String,
    target: Vec<u8>,
    /// `None`: it broke off, or was not read.
    body: Option<Vec<u8>>,
}

/// A transport that yields prepared pieces.
struct Script {
    pieces: VecDeque<Vec<u8>>,
    /// A piece is held back until so many requests have been answered.
    gates: VecDeque<u32>,
    lines: Option<RequestLines>,
    targets: Arc<Targets>,
    answered: Arc<AtomicU32>,
    random: Random,
    /// How often reading at the end waits.
    patience: u32,
}

impl Read for Script {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let gate = this.gates.front().copied().unwrap_or(0);
        if !this.pieces.is_empty() && (this.answered.load(Relaxed) < gate || this.random.one_in(3)) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(mut piece) = this.pieces.pop_front() else {
            // hyper gives up what runs when the client closes.
            this.patience -= 1;
            if this.patience > 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            return Poll::Ready(Ok(()));
        };
        let _ = this.gates.pop_front();
        if piece.len() > buf.remaining() {
            this.pieces.push_front(piece.split_off(buf.remaining()));
            this.gates.push_front(0);
        }
        let before = piece.clone();
        if let Some(lines) = &mut this.lines {
            lines.look(&mut piece, &this.targets);
        }
        for (now, before) in piece.iter().zip(before) {
            assert!(*now == before || (*now == STAND_IN && is_special(before)));
        }
        buf.put_slice(&piece);
        Poll::Ready(Ok(()))
    }
}

impl Write for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Has hyper read a connection. A request that was refused is not among the ones returned, and ends it.
fn serve(pieces: Vec<Vec<u8>>, gates: Vec<u32>, seed: u64, with_reader: bool) -> Vec<Seen> {
    let targets = Arc::new(Targets::default());
    let answered = Arc::new(AtomicU32::new(0));
    let all = Arc::new(Mutex::new(Vec::new()));
    let script = Script {
        pieces: pieces.into(),
        gates: gates.into(),
        lines: with_reader.then(RequestLines::new),
        targets: targets.clone(),
        answered: answered.clone(),
        random: Random::new(seed),
        patience: 60,
    };
    let noted = all.clone();
    let delays = Arc::new(Mutex::new(Random::new(seed ^ 0xABCD)));
    let service = service_fn(move |mut request: Request<Incoming>| {
        targets.on_request(&mut request);
        let (answered, noted, delays) = (answered.clone(), noted.clone(), delays.clone());
        async move {
            let (parts, body) = request.into_parts();
            let mut response = http::Response::new(Full::new(Bytes::from_static(b"ok")));
            if check(&parts).is_err() {
                response.headers_mut().insert("connection", http::HeaderValue::from_static("close"));
                return Ok::<_, Infallible>(response);
            }
            let (turns, reads) = {
                let mut delays = delays.lock().unwrap();
                (delays.below(4), !delays.one_in(16))
            };
            let at = {
                let mut all = noted.lock().unwrap();
                let target = before_fragment(target(&parts)).to_vec();
                all.push(Seen { method: parts.method.to_string(), target, body: None });
                all.len() - 1
            };
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            if reads && let Ok(body) = body.collect().await {
                noted.lock().unwrap()[at].body = Some(body.to_bytes().to_vec());
            }
            answered.fetch_add(1, Relaxed);
            Ok(response)
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // Pieces behind a gate that no answer opens would be waited for in vain.
    let turns = 20_000;
    runtime.block_on(async {
        let mut connection = std::pin::pin!(http1::Builder::new().serve_connection(script, service));
        let mut left = turns;
        std::future::poll_fn(|cx| {
            left -= 1;
            match connection.as_mut().poll(cx) {
                Poll::Pending if left > 0 => Poll::Pending,
                _ => Poll::Ready(()),
            }
        })
        .await;
    });
    all.lock().unwrap().clone()
}

const RAW_BYTES: &[u8] = b"<>\"`\xe9\xff\x80abc/%";
const BODY_BYTES: &[&[u8]] =
    &[b"GET /<x> HTTP/1.1\r\n", b"\r\n", b"\n", b"<\"\xff", b"Host: h\r\n", b"0", b"POST ", b"a"];

struct Meant {
    wire: Vec<u8>,
    seen: Seen,
    raw: bool,
}

fn random_request(random: &mut Random) -> Meant {
    let method = random.of(&["GET", "HEAD", "POST", "PUT", "DELETE", "BREW"]);
    let raw = random.one_in(2);
    let mut target = b"/t".to_vec();
    for _ in 0..random.below(8) {
        target.push(random.of(if raw { RAW_BYTES } else { b"abc/%" }));
    }
    if random.one_in(3) {
        target.push(b'?');
        target.extend_from_slice(if raw { b"<q>" } else { b"q" });
    }
    let raw = target.iter().any(|&b| is_special(b));
    let mut body = Vec::new();
    for _ in 0..random.below(12) {
        body.extend_from_slice(random.of(BODY_BYTES));
    }
    let end = random.of(&["\r\n", "\n"]);
    let mut wire = random.of(&["", "", "\r\n", "\n", "\r\n\r\n"]).as_bytes().to_vec();
    wire.extend_from_slice(format!("{method} {}", random.of(&["", "", "", "http://h:1"])).as_bytes());
    wire.extend_from_slice(&target);
    wire.extend_from_slice(format!(" HTTP/1.1{end}Host: h{end}X-Y: <\"\u{e9}>{end}").as_bytes());
    match random.below(4) {
        0 => {
            body.clear();
            wire.extend_from_slice(end.as_bytes());
        }
        1 => {
            wire.extend_from_slice(format!("Transfer-Encoding: chunked{end}{end}").as_bytes());
            for chunk in body.chunks(5) {
                wire.extend_from_slice(format!("{:x};e=\"<>\"\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
        }
        how => {
            let expect = if how == 2 { format!("Expect: 100-continue{end}") } else { String::new() };
            wire.extend_from_slice(format!("Content-Length: {}{end}{expect}{end}", body.len()).as_bytes());
            wire.extend_from_slice(&body);
        }
    }
    Meant { wire, seen: Seen { method: method.to_owned(), target, body: Some(body) }, raw }
}

/// Cuts bytes at random places; `gate` holds for the first piece.
fn cut(random: &mut Random, mut bytes: &[u8], gate: u32, pieces: &mut Vec<Vec<u8>>, gates: &mut Vec<u32>) {
    let most = random.of(&[1, 7, 60, 10_000]);
    let mut gate = Some(gate);
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(bytes.len().min(1 + random.below(most)));
        pieces.push(piece.to_vec());
        gates.push(gate.take().unwrap_or(0));
        bytes = rest;
    }
}

/// Whether `seen` is the beginning of `meant`: what is not read may be missing.
fn begins(seen: &[Seen], meant: &[&Seen]) -> bool {
    seen.len() <= meant.len()
        && seen.iter().zip(meant).all(|(seen, meant)| {
            seen.method == meant.method
                && seen.target == meant.target
                && (seen.body.is_none() || seen.body == meant.body || meant.body.is_none())
        })
}

#[test]
fn every_request_of_a_random_connection_is_the_one_that_was_meant() {
    let (mut raw_taken, mut lost) = (0, 0);
    for seed in 0..6000 {
        let mut random = Random::new(seed);
        let requests: Vec<Meant> = (0..1 + random.below(6)).map(|_| random_request(&mut random)).collect();
        let (mut pieces, mut gates) = (Vec::new(), Vec::new());
        let waits = random.one_in(2);
        if waits {
            // Each request is sent when the one before has been answered.
            for (at, request) in requests.iter().enumerate() {
                cut(&mut random, &request.wire, u32::try_from(at).unwrap(), &mut pieces, &mut gates);
            }
        } else {
            let all: Vec<u8> = requests.iter().flat_map(|request| request.wire.clone()).collect();
            cut(&mut random, &all, 0, &mut pieces, &mut gates);
        }
        let seen = serve(pieces, gates, seed, true);
        let meant: Vec<&Seen> = requests.iter().map(|request| &request.seen).collect();
        assert!(begins(&seen, &meant), "seed {seed}: {seen:?}");
        raw_taken += requests.iter().zip(&seen).skip(1).filter(|(request, _)| request.raw).count();
        if seen.len() < requests.len() && seen.iter().all(|seen| seen.body.is_some()) {
            // Only a raw target may end a connection, and never the first one.
            assert!(requests[seen.len()].raw && !seen.is_empty(), "seed {seed}: {seen:?}");
            lost += 1;
        }
    }
    // The test sees what it is to see.
    assert!(raw_taken > 500 && lost > 500, "{raw_taken} {lost}");
}

#[test]
fn what_hyper_takes_of_spoilt_bytes_it_takes_in_the_same_way_behind_the_reader() {
    let mut compared = 0;
    for seed in 0..6000 {
        let mut random = Random::new(seed ^ 0x5EED_0000);
        let mut wire: Vec<u8> = (0..1 + random.below(5)).flat_map(|_| random_request(&mut random).wire).collect();
        for _ in 0..random.below(4) {
            let at = random.below(wire.len());
            let bytes = random.of(&[
                &b"\n"[..],
                b"\r",
                b"\r\n",
                b"\n\r\n",
                b" ",
                b"\0",
                b":",
                b"<",
                b"@",
                b"\xff",
                b"GET /< HTTP/1.1\r\n\r\n",
                b"\r\nContent-Length: 3\r\n",
                b"\r\n folded",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            ]);
            match random.below(3) {
                0 => drop(wire.drain(at..wire.len().min(at + 1 + random.below(9)))),
                1 => drop(wire.splice(at..at, bytes.iter().copied())),
                _ => wire[at] = bytes[0],
            }
            if wire.is_empty() {
                break;
            }
        }
        let (mut pieces, mut gates) = (Vec::new(), Vec::new());
        cut(&mut random, &wire, 0, &mut pieces, &mut gates);
        let with = serve(pieces.clone(), gates.clone(), seed, true);
        let without = serve(pieces, gates, seed, false);
        compared += without.len();
        let without: Vec<&Seen> = without.iter().collect();
        let shared = with.len().min(without.len());
        assert!(shared == without.len() && begins(&with[..shared], &without), "seed {seed}: {with:?} {without:?}");
    }
    assert!(compared > 3000, "{compared}");
}

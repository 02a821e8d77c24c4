//! Interim answers (103 Early Hints): what may be in one, how many a request may have, and how they reach a client that
//! speaks HTTP/1.1. hyper has no way to send them from a server, so they go past it, straight to the socket, at the one
//! moment at which hyper has nothing under way: it flushes its transport only when all that it wants to write is written
//! (see `ConnIo::poll_flush`).
//!
//! **No interim answer gets behind the head of its request's answer, or in front of another request's.** Whoever runs the
//! script may send one at any time, from another thread, and is not believed about the moment. So each request takes a
//! number (`Interim::open`), one is taken in only while its request's number is the open one, and the request closes it
//! before its answer goes on: from then on nothing is taken in, and the answer waits until what was taken in is out. All of
//! that happens under one lock. HTTP/2 has its own way with the same rule: see `http2`.
//!
//! What waits for a client that reads nothing is bounded, per request and per connection. Clients must do without interim
//! answers anyway, so what is too much is dropped.

use crate::phase::php::MOST_LINES;
use bytes::Bytes;
use howdah_pool::RequestId;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Interim answers of one request.
const MOST_ANSWERS: u32 = 32;
/// Their bytes.
const MOST_BYTES: usize = 64 << 10;
/// Their bytes over all requests of a connection that are not answered.
const MOST_BYTES_OF_CONNECTION: usize = 256 << 10;

/// What one request has used of what it may send.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    answers: u32,
    bytes: usize,
    refused: bool,
}

impl Allowance {
    /// Takes the room for an interim answer; says once in the log that there is none.
    pub(super) fn take(&mut self, of_connection: &AtomicUsize, bytes: usize, id: RequestId) -> bool {
        let fits = self.answers < MOST_ANSWERS
            && self.bytes + bytes <= MOST_BYTES
            && of_connection
                .fetch_update(Relaxed, Relaxed, |used| {
                    Some(used + bytes).filter(|used| *used <= MOST_BYTES_OF_CONNECTION)
                })
                .is_ok();
        if fits {
            self.answers += 1;
            self.bytes += bytes;
        } else if !std::mem::replace(&mut self.refused, true) {
            tracing::warn!(target: "howdah::php", %id, "too many or too long interim answers: the rest is dropped");
        }
        fits
    }

    /// The request is answered or gone.
    pub(super) fn give_back(&mut self, of_connection: &AtomicUsize) {
        of_connection.fetch_sub(std::mem::take(&mut self.bytes), Relaxed);
    }
}

/// What waits for the socket.
#[derive(Debug, Default)]
struct Waiting {
    /// The number of the request whose interim answers are taken in.
    open: Option<u64>,
    /// The last number given.
    last: u64,
    allowance: Allowance,
    /// The connection has ended.
    ended: bool,
    answers: VecDeque<Vec<u8>>,
    /// How much of the first one is written. One that has begun must be written to its end, whatever happens.
    written: usize,
    /// The request that holds its answer back.
    request: Option<Waker>,
}

/// The interim answers of a connection.
#[derive(Debug, Default)]
pub struct Interim {
    /// Something waits; looked at without the lock, as nearly always nothing does.
    any: AtomicBool,
    /// Bytes in the allowances of all requests.
    bytes: AtomicUsize,
    waiting: Mutex<Waiting>,
}

impl Interim {
    /// A request begins to wait for its answer: its interim answers are taken in until the returned value is closed.
    pub(crate) fn open(&self) -> Open<'_> {
        let mut waiting = self.lock();
        waiting.last += 1;
        let number = waiting.last;
        waiting.open = (!waiting.ended).then_some(number);
        Open { interim: self, number }
    }

    /// Adds an interim answer of the request with this number, if that is open. The connection's task has to be woken.
    pub(crate) fn add(&self, number: u64, id: RequestId, status: u16, headers: &[(Bytes, Bytes)]) {
        if self.lock().open == Some(number)
            && let Some(answer) = written_out(status, headers)
        {
            // Written out without the lock; so it may have been closed meanwhile.
            let mut waiting = self.lock();
            if waiting.open == Some(number) && waiting.allowance.take(&self.bytes, answer.len(), id) {
                self.push(&mut waiting, answer);
            }
        }
    }

    /// Adds an interim answer of the server's own, if a request is open.
    pub(super) fn ask(&self, status: u16) -> bool {
        let mut waiting = self.lock();
        let answer = waiting.open.and_then(|_| written_out(status, &[]));
        answer.map(|answer| self.push(&mut waiting, answer)).is_some()
    }

    fn push(&self, waiting: &mut Waiting, answer: Vec<u8>) {
        waiting.answers.push_back(answer);
        self.any.store(true, Release);
    }

    /// The connection has ended: nothing is taken in any more.
    pub(super) fn end(&self) {
        let mut waiting = self.lock();
        waiting.ended = true;
        waiting.open = None;
        waiting.answers = VecDeque::new();
        waiting.allowance.give_back(&self.bytes);
        self.any.store(false, Release);
        let request = waiting.request.take();
        drop(waiting);
        if let Some(request) = request {
            request.wake();
        }
    }

    /// Writes what waits with `write`. Ready when nothing waits any more.
    pub(super) fn poll_write(
        &self,
        mut write: impl FnMut(&[u8]) -> Poll<std::io::Result<usize>>,
    ) -> Poll<std::io::Result<()>> {
        if !self.any.load(Acquire) {
            return Poll::Ready(Ok(()));
        }
        let mut waiting = self.lock();
        while let Some(answer) = waiting.answers.front() {
            match write(&answer[waiting.written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) if waiting.written + n < answer.len() => waiting.written += n,
                Poll::Ready(Ok(_)) => {
                    waiting.answers.pop_front();
                    waiting.written = 0;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.any.store(false, Release);
        let request = waiting.request.take();
        drop(waiting);
        if let Some(request) = request {
            request.wake();
        }
        Poll::Ready(Ok(()))
    }

    /// What requests use together.
    pub(super) fn bytes(&self) -> &AtomicUsize {
        &self.bytes
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose interim answers are taken in.
#[derive(Debug)]
pub(crate) struct Open<'a> {
    interim: &'a Interim,
    number: u64,
}

impl Open<'_> {
    /// The request's number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Takes no more in, and is ready when all that was taken in is written: only then may the answer go on. With
    /// `drop_rest`, what has not begun to be written is thrown away.
    pub(crate) async fn close(self, drop_rest: bool) {
        self.shut(drop_rest);
        std::future::poll_fn(|cx| self.poll_written(cx)).await;
    }

    fn shut(&self, drop_rest: bool) {
        let mut waiting = self.interim.lock();
        if waiting.open == Some(self.number) {
            waiting.open = None;
            waiting.allowance.give_back(&self.interim.bytes);
            waiting.allowance = Allowance::default();
        }
        if drop_rest && waiting.last == self.number {
            let begun = usize::from(waiting.written > 0);
            waiting.answers.truncate(begun);
            self.interim.any.store(begun > 0, Release);
        }
    }

    fn poll_written(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.interim.any.load(Acquire) {
            return Poll::Ready(());
        }
        let mut waiting = self.interim.lock();
        if waiting.answers.is_empty() {
            return Poll::Ready(());
        }
        waiting.request = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // After `close` this finds nothing to do. A request that is given up has no use for the rest.
        self.shut(true);
    }
}

/// Takes the interim answers of one request in HTTP/1.1, from whatever thread.
#[derive(Debug)]
pub(crate) struct OfRequest {
    pub(crate) conn: Arc<super::Conn>,
    pub(crate) number: u64,
    pub(crate) id: RequestId,
}

impl howdah_pool::TakesInterim for OfRequest {
    fn interim(&self, status: u16, headers: &[(Bytes, Bytes)]) {
        self.conn.interim.add(self.number, self.id, status, headers);
        self.conn.state.wake();
    }

    fn may_have_left(&self) -> bool {
        self.conn.state.is_half_closed()
    }
}

/// A status that an interim answer may have.
pub(super) fn sendable(status: u16) -> Option<StatusCode> {
    let code = StatusCode::from_u16(status).ok()?;
    (code.is_informational() && code != StatusCode::SWITCHING_PROTOCOLS).then_some(code)
}

/// The headers that an interim answer may carry, and about how long they are; `None` if they are too many.
pub(super) fn fields(headers: &[(Bytes, Bytes)]) -> Option<(HeaderMap, usize)> {
    let mut map = HeaderMap::new();
    let mut bytes = 0;
    if headers.len() > MOST_LINES {
        return None;
    }
    for (name, value) in headers {
        if let Some((name, value)) = field(name, value) {
            bytes += name.as_str().len() + value.len() + 4;
            map.try_append(name, value).ok()?;
        }
    }
    Some((map, bytes))
}

/// An interim answer as HTTP/1.1 has it; `None` if it cannot be sent.
fn written_out(status: u16, headers: &[(Bytes, Bytes)]) -> Option<Vec<u8>> {
    let code = sendable(status)?;
    if headers.len() > MOST_LINES
        || headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > MOST_BYTES
    {
        return None;
    }
    let reason = if status == 103 { "Early Hints" } else { code.canonical_reason().unwrap_or("Interim") };
    let mut bytes = format!("HTTP/1.1 {status} {reason}\r\n").into_bytes();
    for (name, value) in headers.iter().filter(|(name, value)| field(name, value).is_some()) {
        for part in [&name[..], b": ", &value[..], b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    Some(bytes)
}

/// A valid header that is not about the connection or a body.
fn field(name: &[u8], value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name).ok()?;
    let of_the_answer = matches!(name.as_str(), "content-length" | "content-type" | "content-encoding" | "date");
    let value = HeaderValue::from_bytes(value).ok()?;
    (!of_the_answer && !crate::phase::php::is_hop_by_hop(&name)).then_some((name, value))
}

/// What a worker's interim answer becomes holds no line that is not one of its headers.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn fuzz(status: u16, headers: &[(Bytes, Bytes)]) {
    let Some(bytes) = written_out(status, headers) else { return };
    let lines = bytes.split(|&b| b == b'\n').count() - 3;
    assert!(bytes.starts_with(b"HTTP/1.1 1") && bytes.ends_with(b"\r\n\r\n"));
    assert!(lines <= headers.len() && bytes.iter().filter(|&&b| b == b'\r').count() == lines + 2);
    let (map, _) = fields(headers).unwrap_or_default();
    assert_eq!(map.len(), lines);
}

#[cfg(test)]
#[path = "interim_tests.rs"]
mod tests;

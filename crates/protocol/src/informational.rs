//! Informational responses (103 Early Hints): their contents, limits, and transfer from any thread to the connection,
//! which writes them.
//!
//! **An informational response is never written after the head of its final response, or before another request's.** A
//! script's worker may send one at any time from another thread, so its timing is not trusted. Where requests are
//! serial, each gets a number (`Queue::open`). An informational response is accepted only while its request's number is
//! open. The connection closes the number before it writes the response's head, after everything accepted. All of this
//! happens under one lock. HTTP/2 and 3 implement the rule per stream (`stream_sink`).
//!
//! Data that waits for a client that does not read is bounded, per request and per connection. Informational responses
//! are optional, so any excess is dropped.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Maximum number of informational responses per request.
const MAX_RESPONSES: u32 = 32;
/// Maximum bytes of informational responses per request.
const MAX_BYTES: usize = 64 << 10;
/// Maximum bytes of informational responses over all unfinished requests of a connection.
const MAX_CONNECTION_BYTES: usize = 256 << 10;
/// Maximum header lines of one informational response. Receivers have lower limits, and a `HeaderMap` holds about
/// 24,000 names.
const MAX_LINES: usize = 1000;

/// Result of an informational response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendResult {
    /// Sent; or silently ignored because it is invalid or its request has its response.
    Done,
    /// Dropped because a limit of the request or its connection is reached.
    TooMuch {
        /// No other one of this request was dropped before.
        first: bool,
    },
}

/// The receiving end of informational responses: a connection or stream.
pub(crate) trait Sink: Send + Sync + std::fmt::Debug {
    fn send(&self, number: u64, status: u16, headers: &[(Bytes, Bytes)]) -> SendResult;
    fn discard(&self, _number: u64) {}
    fn may_have_left(&self) -> bool {
        false
    }
}

#[derive(Debug, Clone)]
enum SinkHandle {
    Connection(Arc<dyn Sink>),
    Stream(Weak<dyn Sink>),
}

/// Sends informational responses of one request to the client, from any thread. Those sent after the request has its
/// response are dropped.
#[derive(Debug, Clone)]
pub struct Informational {
    sink: SinkHandle,
    number: u64,
}

impl Informational {
    pub(crate) fn of_connection(connection: Arc<dyn Sink>, number: u64) -> Self {
        Self { sink: SinkHandle::Connection(connection), number }
    }

    pub(crate) fn of_stream(stream: Weak<dyn Sink>) -> Self {
        Self { sink: SinkHandle::Stream(stream), number: 0 }
    }

    /// Sends an informational response. Status and fields need not be valid: invalid ones are dropped.
    pub fn send(&self, status: u16, headers: &[(Bytes, Bytes)]) -> SendResult {
        match &self.sink {
            SinkHandle::Connection(connection) => connection.send(self.number, status, headers),
            SinkHandle::Stream(stream) => {
                stream.upgrade().map_or(SendResult::Done, |s| s.send(self.number, status, headers))
            }
        }
    }

    /// Drops the pending ones that are not yet being written, because the response will be an error. Does nothing in
    /// HTTP/2 and 3.
    pub fn discard(&self) {
        if let SinkHandle::Connection(connection) = &self.sink {
            connection.discard(self.number);
        }
    }

    /// `true` if the client may have left: it has closed its side of an HTTP/1 connection, and may or may not wait for
    /// the response.
    pub fn may_have_left(&self) -> bool {
        match &self.sink {
            SinkHandle::Connection(connection) => connection.may_have_left(),
            SinkHandle::Stream(_) => false,
        }
    }
}

/// Usage of one request.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    number: u32,
    bytes: usize,
    refused: bool,
}

impl Allowance {
    /// Reserves room for an informational response.
    pub(crate) fn take(&mut self, of_connection: &AtomicUsize, bytes: usize) -> SendResult {
        let fits = self.number < MAX_RESPONSES
            && self.bytes + bytes <= MAX_BYTES
            && of_connection
                .fetch_update(Relaxed, Relaxed, |used| Some(used + bytes).filter(|used| *used <= MAX_CONNECTION_BYTES))
                .is_ok();
        if !fits {
            return SendResult::TooMuch { first: !std::mem::replace(&mut self.refused, true) };
        }
        self.number += 1;
        self.bytes += bytes;
        SendResult::Done
    }

    /// Releases the bytes that this request reserved of its connection's limit, when it has its response or is dropped.
    pub(crate) fn give_back(&mut self, of_connection: &AtomicUsize) {
        of_connection.fetch_sub(std::mem::take(&mut self.bytes), Relaxed);
    }
}

#[derive(Debug, Default)]
struct Waiting {
    /// Number of the request whose informational responses are accepted.
    open: Option<u64>,
    /// The last number given.
    last: u64,
    allowance: Allowance,
    /// Pending bytes, as they go over the wire.
    bytes: Vec<u8>,
}

/// The informational responses of a connection whose requests come one after the other.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// `true` if anything waits. Checked without the lock, because there is nearly always nothing.
    any: AtomicBool,
    /// Bytes in the allowances of all requests.
    used: AtomicUsize,
    waiting: Mutex<Waiting>,
}

impl Queue {
    /// Begins a request, whose informational responses are accepted until `close`. Returns its number.
    pub(crate) fn open(&self) -> u64 {
        let mut waiting = self.lock();
        waiting.last += 1;
        waiting.open = Some(waiting.last);
        waiting.last
    }

    /// Queues an informational response if the request with this number is open. The caller must wake the connection's
    /// task.
    pub(crate) fn send(&self, number: u64, status: u16, headers: &[(Bytes, Bytes)]) -> SendResult {
        if self.lock().open != Some(number) {
            return SendResult::Done;
        }
        let Some(bytes) = written_out(status, headers) else { return SendResult::Done };
        // Formatted without the lock, so the request may have been closed meanwhile.
        let mut waiting = self.lock();
        if waiting.open != Some(number) {
            return SendResult::Done;
        }
        let taken = waiting.allowance.take(&self.used, bytes.len());
        if taken == SendResult::Done {
            self.push(&mut waiting, &bytes);
        }
        taken
    }

    /// Adds an informational response from the server itself, if a request is open.
    pub(crate) fn ask(&self, status: u16) -> bool {
        let mut waiting = self.lock();
        let bytes = waiting.open.and_then(|_| written_out(status, &[]));
        bytes.map(|bytes| self.push(&mut waiting, &bytes)).is_some()
    }

    fn push(&self, waiting: &mut Waiting, bytes: &[u8]) {
        waiting.bytes.extend_from_slice(bytes);
        self.any.store(true, Release);
    }

    /// Drops pending informational responses of the request with this number.
    pub(crate) fn discard(&self, number: u64) {
        let mut waiting = self.lock();
        if waiting.last == number {
            waiting.bytes.clear();
            self.any.store(false, Release);
        }
    }

    /// Accepts nothing more: a response begins, or the connection has ended.
    pub(crate) fn close(&self) {
        let mut waiting = self.lock();
        waiting.open = None;
        waiting.allowance.give_back(&self.used);
        waiting.allowance = Allowance::default();
    }

    /// `true` if something waits.
    pub(crate) fn is_any(&self) -> bool {
        self.any.load(Acquire)
    }

    /// Moves the pending bytes to `into`.
    pub(crate) fn take(&self, into: &mut Vec<u8>) {
        let mut waiting = self.lock();
        into.append(&mut waiting.bytes);
        self.any.store(false, Release);
    }

    /// Total usage of all requests.
    pub(crate) fn used(&self) -> &AtomicUsize {
        &self.used
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A status that an informational response may have.
pub(crate) fn sendable(status: u16) -> Option<StatusCode> {
    let code = StatusCode::from_u16(status).ok()?;
    (code.is_informational() && code != StatusCode::SWITCHING_PROTOCOLS).then_some(code)
}

/// The headers that an informational response may carry, and their approximate length; `None` if there are too many.
pub(crate) fn fields(headers: &[(Bytes, Bytes)]) -> Option<(HeaderMap, usize)> {
    let mut map = HeaderMap::new();
    let mut bytes = 0;
    if headers.len() > MAX_LINES {
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

/// Formats an informational response for HTTP/1.1; `None` if it cannot be sent.
fn written_out(status: u16, headers: &[(Bytes, Bytes)]) -> Option<Vec<u8>> {
    let code = sendable(status)?;
    if headers.len() > MAX_LINES
        || headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > MAX_BYTES
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
    let of_the_response = matches!(name.as_str(), "content-length" | "content-type" | "content-encoding" | "date");
    let value = HeaderValue::from_bytes(value).ok()?;
    (!of_the_response && !is_hop_by_hop(&name)).then_some((name, value))
}

/// `true` for headers about the connection (RFC 9110 7.6.1), and for CGI's `Status`, which HTTP does not have.
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "status"
    )
}

/// Checks that a compromised worker's informational response contains no lines but its headers.
#[cfg(any(test, feature = "fuzz"))]
pub fn fuzz(status: u16, headers: &[(Bytes, Bytes)]) {
    let Some(bytes) = written_out(status, headers) else { return };
    let lines = bytes.split(|&b| b == b'\n').count() - 3;
    assert!(bytes.starts_with(b"HTTP/1.1 1") && bytes.ends_with(b"\r\n\r\n"));
    assert!(lines <= headers.len() && bytes.iter().filter(|&&b| b == b'\r').count() == lines + 2);
    let (map, _) = fields(headers).unwrap_or_default();
    assert_eq!(map.len(), lines);
}

#[cfg(test)]
#[path = "informational_tests.rs"]
mod tests;

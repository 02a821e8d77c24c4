//! Interim answers (103 Early Hints): what may be in one, and how they reach a client that speaks HTTP/1.1. hyper has
//! no way to send them from a server, so they go past it, straight to the socket, at the one moment at which hyper has
//! nothing under way: it flushes its transport only when all that it wants to write is written (see
//! `ConnIo::poll_flush`).
//!
//! The answer itself waits until its interim answers are out. HTTP/2 has its own way: see `http2`.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// What waits for the socket.
#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    written: usize,
    /// The request that holds its answer back.
    request: Option<Waker>,
}

/// The interim answers of a connection.
#[derive(Debug, Default)]
pub struct Interim {
    /// Something waits; looked at without the lock, as nearly always nothing does.
    any: AtomicBool,
    waiting: Mutex<Waiting>,
}

impl Interim {
    /// Adds an interim answer. The connection's task has to be woken.
    pub fn add(&self, status: u16, headers: &[(Bytes, Bytes)]) {
        let Some(code) = sendable(status) else { return };
        let mut waiting = self.lock();
        let bytes = &mut waiting.bytes;
        let reason = if status == 103 { "Early Hints" } else { code.canonical_reason().unwrap_or("Interim") };
        bytes.extend_from_slice(format!("HTTP/1.1 {status} {reason}\r\n").as_bytes());
        for (name, value) in headers.iter().filter(|(name, value)| field(name, value).is_some()) {
            for part in [&name[..], b": ", &value[..], b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        }
        bytes.extend_from_slice(b"\r\n");
        self.any.store(true, Release);
    }

    /// Writes what waits with `write`. Ready when nothing waits any more.
    pub fn poll_write(
        &self,
        mut write: impl FnMut(&[u8]) -> Poll<std::io::Result<usize>>,
    ) -> Poll<std::io::Result<()>> {
        if !self.any.load(Acquire) {
            return Poll::Ready(Ok(()));
        }
        let mut waiting = self.lock();
        while waiting.written < waiting.bytes.len() {
            match write(&waiting.bytes[waiting.written..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(n)) => waiting.written += n,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.any.store(false, Release);
        let request = std::mem::take(&mut *waiting).request;
        drop(waiting);
        if let Some(request) = request {
            request.wake();
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when nothing waits; the request is woken then.
    pub fn poll_written(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.any.load(Acquire) {
            return Poll::Ready(());
        }
        let mut waiting = self.lock();
        // Looked at again under the lock, which the writer holds while it clears the flag.
        if !self.any.load(Acquire) {
            return Poll::Ready(());
        }
        waiting.request = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A status that an interim answer may have.
pub(super) fn sendable(status: u16) -> Option<StatusCode> {
    let code = StatusCode::from_u16(status).ok()?;
    (code.is_informational() && code != StatusCode::SWITCHING_PROTOCOLS).then_some(code)
}

/// The headers that an interim answer may carry.
pub(super) fn fields(headers: &[(Bytes, Bytes)]) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
    headers.iter().filter_map(|(name, value)| field(name, value))
}

/// A valid header that is not about the connection or a body.
fn field(name: &[u8], value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(name).ok()?;
    let of_the_answer = matches!(name.as_str(), "content-length" | "content-type" | "content-encoding" | "date");
    let value = HeaderValue::from_bytes(value).ok()?;
    (!of_the_answer && !crate::phase::php::is_hop_by_hop(&name)).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pairs: &[(&'static str, &'static str)]) -> Vec<(Bytes, Bytes)> {
        pairs
            .iter()
            .map(|(name, value)| (Bytes::from_static(name.as_bytes()), Bytes::from_static(value.as_bytes())))
            .collect()
    }

    fn all(interim: &Interim, step: usize) -> String {
        let mut out = Vec::new();
        let polled = interim.poll_write(|bytes| {
            let n = bytes.len().min(step);
            out.extend_from_slice(&bytes[..n]);
            Poll::Ready(Ok(n))
        });
        assert!(matches!(polled, Poll::Ready(Ok(()))));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_interim_answer_is_written_whole_and_once() {
        let interim = Interim::default();
        interim.add(
            103,
            &lines(&[("Link", "</a.css>; rel=preload"), ("Content-Type", "text/html"), ("Connection", "close")]),
        );
        interim.add(103, &lines(&[("X", "a\r\nB: c"), ("Bad name", "v"), ("Y", "z")]));
        let expected =
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 103 Early Hints\r\nY: z\r\n\r\n";
        assert_eq!(all(&interim, 7), expected);
        assert_eq!(all(&interim, 7), "");
    }

    #[test]
    fn what_is_no_interim_status_is_left_out() {
        let interim = Interim::default();
        for status in [99, 101, 200, 500, 1000] {
            interim.add(status, &[]);
        }
        assert_eq!(all(&interim, 100), "");
    }

    #[test]
    fn the_answer_waits_for_a_slow_client() {
        let interim = Interim::default();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(interim.poll_written(&mut cx).is_ready());
        interim.add(103, &[]);
        assert!(interim.poll_write(|_| Poll::Pending).is_pending());
        assert!(interim.poll_written(&mut cx).is_pending());
        assert!(!all(&interim, 3).is_empty());
        assert!(interim.poll_written(&mut cx).is_ready());
    }
}

//! The handler's end of a request's body, for protocols with one request at a time. The handler may keep it for longer
//! than the request.

use crate::exchange::{BodyError, BodySource};
use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// A connection that reads bodies.
pub(crate) trait BodyReader: Send + 'static {
    /// The next part of the body of this request.
    fn poll_body(&mut self, cx: &mut Context<'_>, request: u64) -> Poll<Option<Result<Bytes, BodyError>>>;
}

/// Ignores poisoning: after a panic the request ends, and its connection too.
pub(crate) fn lock<I>(io: &Mutex<I>) -> MutexGuard<'_, I> {
    io.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body of a request.
pub(crate) struct SerialBody<I> {
    pub(crate) io: Arc<Mutex<I>>,
    pub(crate) request: u64,
}

impl<I> std::fmt::Debug for SerialBody<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SerialBody")
    }
}

impl<I: BodyReader> BodySource for SerialBody<I> {
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        lock(&self.io).poll_body(cx, self.request)
    }
}

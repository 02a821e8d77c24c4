//! The body of a request, and the handling of its unread part.

use super::code::{Code, Fault};
use super::frames::{Frames, Source, kind};
use super::streams::Incoming;
use crate::exchange::{BodyError, BodySource};
use bytes::Bytes;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

/// Maximum amount of an unread body that is read after the response, if it has arrived already. A client that still
/// sends more gets STOP_SENDING.
const DRAINED: usize = 64 << 10;

/// Keeps a body that its handler no longer needs until the response is sent. STOP_SENDING must not come earlier: some
/// clients take it for the end of the whole exchange.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<UnreadBody>);

#[derive(Debug, Default)]
enum UnreadBody {
    /// The body has ended, or is in use.
    #[default]
    Nothing,
    Unread(Parts<Incoming>),
    Broken(Fault),
}

impl Slot {
    fn put(&self, left: UnreadBody) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = left;
    }

    /// The fault with which reading the body failed.
    pub(super) fn fault(&self) -> Option<Fault> {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            UnreadBody::Broken(fault) => Some(fault),
            _ => None,
        }
    }

    /// Called after the response: drains what has arrived of an unread body, and sends STOP_SENDING if more is to come.
    pub(super) async fn settle(&self) -> Result<(), Fault> {
        let left = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let UnreadBody::Unread(mut parts) = left else { return Ok(()) };
        let mut read = 0;
        poll_fn(|cx| {
            while read < DRAINED {
                match parts.poll(cx) {
                    Poll::Ready(Ok(Some(bytes))) => read += bytes.len(),
                    Poll::Ready(result) => return Poll::Ready(result.map(drop)),
                    Poll::Pending => break,
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }
}

/// The body of a request, for its handler.
#[derive(Debug)]
pub(super) struct Upload {
    parts: Option<Parts<Incoming>>,
    slot: Arc<Slot>,
}

impl Upload {
    /// Returns `true` if the request has a body, judged by the data that has arrived.
    pub(super) async fn begin<S: Source>(frames: &mut Frames<S>, length: Option<u64>) -> Result<bool, Fault> {
        let first = poll_fn(|cx| Poll::Ready(frames.poll_at_end(cx))).await;
        match first {
            Poll::Ready(Ok(true)) if length.is_some_and(|length| length > 0) => Err(SHORTER),
            Poll::Ready(ended) => ended.map(|ended| !ended),
            Poll::Pending => Ok(true),
        }
    }

    pub(super) fn new(frames: Frames<Incoming>, length: Option<u64>, slot: Arc<Slot>) -> Self {
        Self { parts: Some(Parts::new(frames, length)), slot }
    }
}

impl BodySource for Upload {
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let Some(parts) = &mut self.parts else { return Poll::Ready(None) };
        match ready!(parts.poll(cx)) {
            Ok(Some(bytes)) => Poll::Ready(Some(Ok(bytes))),
            Ok(None) => {
                self.parts = None;
                Poll::Ready(None)
            }
            Err(fault) => {
                if let Some(mut parts) = self.parts.take()
                    && let Fault::Stream(code, _) = fault
                {
                    parts.frames.source().stop(code);
                }
                self.slot.put(UnreadBody::Broken(fault));
                Poll::Ready(Some(Err(fault.into())))
            }
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            self.slot.put(UnreadBody::Unread(parts));
        }
    }
}

/// Extracts the parts of a body from DATA frames.
#[derive(Debug)]
pub(super) struct Parts<S> {
    frames: Frames<S>,
    /// Remainder of the announced length.
    left: Option<u64>,
    trailers: bool,
}

const SHORTER: Fault = Fault::Stream(Code::MESSAGE_ERROR, "the body is shorter than its content-length");
const LONGER: Fault = Fault::Stream(Code::MESSAGE_ERROR, "the body is longer than its content-length");
const MISPLACED: Fault = Fault::Connection(Code::FRAME_UNEXPECTED, "the request has a frame that is not allowed there");

impl<S: Source> Parts<S> {
    pub(super) fn new(frames: Frames<S>, length: Option<u64>) -> Self {
        Self { frames, left: length, trailers: false }
    }

    /// The next part, which is never empty; `None` at the end. Trailers are read and dropped.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        loop {
            if !self.trailers
                && let Some(bytes) = ready!(self.frames.poll_payload(cx))?
            {
                if let Some(left) = &mut self.left {
                    *left = left.checked_sub(bytes.len() as u64).ok_or(LONGER)?;
                }
                return Poll::Ready(Ok(Some(bytes)));
            }
            loop {
                match ready!(self.frames.poll_frame(cx))? {
                    Some(kind::DATA) if !self.trailers => break,
                    Some(kind::HEADERS) if !self.trailers => self.trailers = true,
                    Some(kind) if kind::is_reserved(kind) => return Poll::Ready(Err(MISPLACED)),
                    Some(_) => {}
                    None if self.left.is_some_and(|left| left > 0) => return Poll::Ready(Err(SHORTER)),
                    None => return Poll::Ready(Ok(None)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::tests::{Pieces, now};
    use super::*;

    fn body(stream: &[u8], length: Option<u64>) -> Result<Vec<u8>, Fault> {
        let mut parts = Parts::new(Frames::new(Pieces::new(stream, 2)), length);
        let mut whole = Vec::new();
        while let Some(part) = now(|cx| parts.poll(cx))? {
            assert!(!part.is_empty());
            whole.extend_from_slice(&part);
        }
        Ok(whole)
    }

    #[test]
    fn a_body_is_exactly_the_content_of_its_frames() {
        assert_eq!(body(b"", None).unwrap(), b"");
        assert_eq!(body(b"\0\x03abc", Some(3)).unwrap(), b"abc");
        assert_eq!(
            body(b"\0\0\0\x02ab\0\0\x21\x03xyz\0\x02cd\0\0", None).unwrap(),
            b"abcd",
            "empty frames end nothing"
        );
        assert_eq!(body(b"\0\x02ab\x01\x04zzzz\x21\x01x", Some(2)).unwrap(), b"ab", "trailers are dropped");
    }

    #[test]
    fn a_body_that_breaks_the_rules_is_an_error() {
        assert_eq!(body(b"\0\x03abc", Some(2)).unwrap_err(), LONGER);
        assert_eq!(body(b"\0\x03abc", Some(4)).unwrap_err(), SHORTER);
        for misplaced in [&b"\0\x01a\x04\0"[..], b"\x01\0\0\x01a", b"\x01\0\x01\0", b"\x07\x01\0", b"\x0d\x01\0"] {
            assert_eq!(body(misplaced, None).unwrap_err(), MISPLACED, "{}", misplaced.escape_ascii());
        }
        assert!(matches!(body(b"\0\x03ab", None), Err(Fault::Connection(Code::FRAME_ERROR, _))));
    }
}

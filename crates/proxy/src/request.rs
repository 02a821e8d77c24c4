//! A request on its way to a server: its body for hyper, and its fields as they are forwarded.

use bytes::Bytes;
use howdah_protocol::{BodyError, RequestBody};
use http::header::{self, HeaderMap, HeaderValue};
use http::uri::{PathAndQuery, Uri};
use hyper::body::{Body, Frame, SizeHint};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use std::borrow::Cow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

/// State of a body while hyper has it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Parts that hyper has taken. While this grows, the server's response timeout does not run.
    parts: AtomicU64,
    /// The whole body was passed to hyper.
    complete: AtomicBool,
    /// The body waits for the client.
    starved: AtomicBool,
    /// The body could not be read to its end.
    broken: AtomicBool,
    /// The response has arrived: the body is not read any further.
    over: AtomicBool,
}

impl Progress {
    pub(crate) fn parts(&self) -> u64 {
        self.parts.load(Relaxed)
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Relaxed)
    }

    pub(crate) fn is_starved(&self) -> bool {
        self.starved.load(Relaxed)
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Relaxed)
    }

    pub(crate) fn set_over(&self) {
        self.over.store(true, Relaxed);
    }
}

/// A request's body for hyper.
#[derive(Debug)]
pub(crate) struct Outgoing {
    body: Option<RequestBody>,
    progress: Arc<Progress>,
}

impl Outgoing {
    pub(crate) fn new(body: RequestBody) -> Self {
        let body = if body.is_none() { None } else { Some(body) };
        let progress = Arc::new(Progress::default());
        progress.complete.store(body.is_none(), Relaxed);
        Self { body, progress }
    }

    pub(crate) fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        // An error would make hyper drop the response, which may explain why the server stopped reading.
        if this.progress.over.load(Relaxed) {
            return Poll::Pending;
        }
        let part = body.poll_part(cx);
        this.progress.starved.store(part.is_pending(), Relaxed);
        part.map(|part| match part {
            Some(Ok(data)) => {
                this.progress.parts.fetch_add(1, Relaxed);
                Some(Ok(Frame::data(data)))
            }
            Some(Err(error)) => {
                this.progress.broken.store(true, Relaxed);
                Some(Err(error))
            }
            None => {
                this.progress.complete.store(true, Relaxed);
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            None => SizeHint::with_exact(0),
            Some(body) => body.announced().map_or_else(SizeHint::new, SizeHint::with_exact),
        }
    }
}

/// Bytes that are invalid in a URI.
const INVALID: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'}');

/// Converts a target for hyper. Bytes that are invalid in a URI are percent-encoded, which is equivalent for servers.
pub(crate) fn uri(target: &[u8]) -> Option<Uri> {
    let end = target.iter().position(|&byte| byte == b'#').unwrap_or(target.len());
    let text: Cow<'_, str> = percent_encode(&target[..end], INVALID).into();
    PathAndQuery::try_from(&*text).ok().map(Uri::from)
}

/// Sets the framing headers of a request's body, which hyper follows.
pub(crate) fn frame(headers: &mut HeaderMap, body: &RequestBody) {
    let had_length = headers.remove(header::CONTENT_LENGTH).is_some();
    match (body.is_none(), body.announced()) {
        // Servers expect the explicit length of an empty POST, which clients send.
        (true, _) if had_length => {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(0));
        }
        (true, _) => {}
        (false, Some(length)) => {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        (false, None) => {
            headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyper_accepts_any_target() {
        for (target, sent) in [
            ("/a/b?c=d", "/a/b?c=d"),
            ("/a%2fb/../c", "/a%2fb/../c"),
            ("/\"{}<>\\^`|#f", "/%22%7B%7D%3C%3E%5C%5E%60|"),
            ("/\u{e9}?\u{e9}", "/%C3%A9?%C3%A9"),
            ("/?", "/?"),
        ] {
            assert_eq!(uri(target.as_bytes()).unwrap().to_string(), sent, "{target}");
        }
    }
}

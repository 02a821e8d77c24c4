//! A server's response on its way to the client: its fields, and its body at the client's pace.

use crate::fault::in_words;
use crate::group::{Group, ServerSlot};
use crate::idle::Idle;
use crate::link::Link;
use howdah_budget::Charge;
use howdah_protocol::{Chunk, ChunkStream, Reason, hop_by_hop};
use http::header::{self, HeaderMap, HeaderName};
use hyper::body::{Body as _, Incoming};
use hyper::ext::ReasonPhrase;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// Removes headers that must not be forwarded. The error describes an invalid response.
pub(crate) fn fields(headers: &mut HeaderMap) -> Result<(), &'static str> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => {}
        // hyper has decoded the chunks. A `Content-Length` that accompanies them is invalid (RFC 9112 6.3).
        (Some(only), None) if only.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") => {
            headers.remove(header::CONTENT_LENGTH);
        }
        _ => return Err("its body has a transfer coding that was not requested"),
    }
    hop_by_hop::strip(headers);
    // `Alt-Svc` describes the upstream server's endpoints, not this server's.
    headers.remove(HeaderName::from_static("alt-svc"));
    Ok(())
}

/// The reason phrase, if it is not the standard one.
pub(crate) fn reason(extensions: &http::Extensions) -> Option<Reason> {
    extensions.get::<ReasonPhrase>().and_then(|phrase| Reason::new(phrase.as_bytes()))
}

/// Maximum number of idle connections that each I/O thread keeps open to each server.
const KEEP_ALIVE: usize = 32;

/// The connection and request slot that a response holds until its end.
pub(crate) struct ResponseGuard {
    pub(crate) link: Link,
    pub(crate) place: ServerSlot,
    pub(crate) group: Arc<Group>,
    pub(crate) idle: Arc<Idle>,
}

impl ResponseGuard {
    /// Returns the connection to the idle ones after a complete response, if it can be reused.
    pub(crate) fn give_back(self) {
        let Self { link, group, idle, place } = self;
        drop(place);
        idle.keep(link, KEEP_ALIVE, group.settings.keep_alive_timeout);
    }
}

/// A response's body as it comes.
pub(crate) struct Streamed {
    incoming: Incoming,
    held: Option<ResponseGuard>,
    /// Bytes still to come, if the server announced the length.
    left: Option<u64>,
    /// Charge for data on its way to the client.
    charge: Charge,
    timeout: ProgressTimeout,
}

impl Streamed {
    pub(crate) fn new(incoming: Incoming, held: ResponseGuard, charge: Charge) -> Self {
        let left = incoming.size_hint().exact();
        let timeout = ProgressTimeout::new(held.group.settings.idle_timeout());
        Self { incoming, held: Some(held), left, charge, timeout }
    }

    /// Gives a complete body's connection back.
    fn finish(&mut self) {
        if let Some(held) = self.held.take() {
            held.give_back();
        }
    }

    fn cut(&mut self, why: &str) -> io::Error {
        if let Some(held) = self.held.take() {
            held.place.server.metrics.failures.inc("cut");
            let (proxy, server) = (held.group.name(), &held.place.server.label);
            tracing::warn!(target: "howdah::proxy", proxy, server, "response cut off: {why}");
        }
        io::Error::other(why.to_owned())
    }
}

impl ChunkStream for Streamed {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        loop {
            let mut frame = Pin::new(&mut self.incoming).poll_frame(cx);
            if frame.is_pending()
                && let Some(held) = &mut self.held
            {
                held.link.work(cx);
                frame = Pin::new(&mut self.incoming).poll_frame(cx);
            }
            match frame {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are dropped: the response interface does not support them.
                    let Ok(data) = frame.into_data() else { continue };
                    self.timeout.moved();
                    if let Some(left) = &mut self.left {
                        *left = left.saturating_sub(data.len() as u64);
                    }
                    let mut charge = self.charge.beside(self.charge.budget());
                    if !charge.grow(data.len() as u64) {
                        return Poll::Ready(Some(Err(self.cut("there is no room for more of it in `http.memory`"))));
                    }
                    // Flushed if the length is unknown, because more data may not come soon.
                    let chunk = Chunk { data: charge.cover(data), flush: self.left.is_none() };
                    return Poll::Ready(Some(Ok(chunk)));
                }
                Poll::Ready(Some(Err(error))) => {
                    let why = in_words(&error);
                    return Poll::Ready(Some(Err(self.cut(&why))));
                }
                Poll::Ready(None) => {
                    self.finish();
                    return Poll::Ready(None);
                }
                Poll::Pending => {
                    if self.timeout.poll_over(cx).is_ready() {
                        let why =
                            format!("no data for {:?} (`response_timeout`, at least 5 minutes)", self.timeout.most);
                        return Poll::Ready(Some(Err(self.cut(&why))));
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    fn remaining(&self) -> Option<u64> {
        self.left
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // A reader that knows the length may have stopped before it polled the end.
        if self.left == Some(0) {
            let mut cx = Context::from_waker(std::task::Waker::noop());
            if let Some(held) = &mut self.held {
                held.link.work(&mut cx);
            }
            if matches!(Pin::new(&mut self.incoming).poll_frame(&mut cx), Poll::Ready(None)) {
                self.finish();
            }
        }
    }
}

/// A timeout that progress restarts. A timer is armed only when there is something to wait for.
pub(crate) struct ProgressTimeout {
    pub(crate) most: Duration,
    since: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl ProgressTimeout {
    pub(crate) fn new(most: Duration) -> Self {
        Self { most, since: Instant::now(), timer: None }
    }

    /// Reduces the timeout to at most `most`.
    pub(crate) fn shorten(&mut self, most: Duration) {
        if most < self.most {
            self.most = most;
            self.timer = None;
        }
    }

    /// `true` if it has expired.
    pub(crate) fn is_over(&self) -> bool {
        self.since.elapsed() >= self.most
    }

    /// Restarts the timeout after progress.
    pub(crate) fn moved(&mut self) {
        self.since = Instant::now();
    }

    /// Ready when there has been no progress for too long.
    pub(crate) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let (since, most) = (self.since, self.most);
            let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until((since + most).into())));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if self.since.elapsed() >= most {
                return Poll::Ready(());
            }
            timer.as_mut().reset((since + most).into());
        }
    }
}

//! The body of an answer: nothing, bytes at hand, or a stream (PHP's output as it comes, an encoder's output).
//!
//! A body that still lies in a worker's ring goes to the socket from there if that can happen at once (see `conn::straight`).
//!
//! A file is a kind of its own: over plain HTTP/1 its parts are tokens that only the connection's writer understands
//! (see `sendfile`); whoever takes the body as a stream gets its bytes.

use crate::conn::Conn;
use crate::contain;
use crate::exchange::Exchange;
use crate::phase::static_files::FileBody;
use bytes::Bytes;
use howdah_pool::{Chunk, WholeBody};
use howdah_transport::HeldPayload;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Bodies from this size on are charged while they wait in a connection, of which there are as many as connections.
const HELD_BY_CONNECTION: usize = 16 * 1024;

/// The same in a stream of a connection, of which there are many more.
const HELD_BY_STREAM: usize = 1024;

/// A body that comes in parts. A part may be empty when only its `flush` matters.
pub trait ChunkStream: Send {
    /// The next part; `None` at the end. An error cuts the answer off.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>>;

    /// The number of bytes that are still to come, if that is known.
    fn remaining(&self) -> Option<u64> {
        None
    }
}

/// A stream of body parts.
pub type Stream = Box<dyn ChunkStream>;

enum Kind {
    Empty,
    Full(Bytes),
    /// For the turn in which the answer is made; whatever else happens to it, it is copied first.
    InRing(HeldPayload),
    Stream(Stream),
    File(FileBody),
}

/// The body of an answer.
pub struct Body {
    kind: Kind,
    sent: u64,
    exchange: Option<Box<Exchange>>,
    /// The last look found nothing to send yet.
    waits: bool,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::Empty => f.write_str("Body::Empty"),
            Kind::Full(bytes) => write!(f, "Body::Full({} bytes)", bytes.len()),
            Kind::InRing(held) => write!(f, "Body::InRing({} bytes)", held.len()),
            Kind::Stream(_) => f.write_str("Body::Stream"),
            Kind::File(file) => write!(f, "Body::File({} bytes)", file.remaining()),
        }
    }
}

impl Body {
    /// No body.
    #[must_use]
    pub fn empty() -> Self {
        Self { kind: Kind::Empty, sent: 0, exchange: None, waits: false }
    }

    /// A body that is at hand completely.
    #[must_use]
    pub fn full(bytes: Bytes) -> Self {
        let kind = if bytes.is_empty() { Kind::Empty } else { Kind::Full(bytes) };
        Self { kind, sent: 0, exchange: None, waits: false }
    }

    /// A body that is complete, wherever it is.
    #[must_use]
    pub fn whole(whole: WholeBody) -> Self {
        match whole {
            WholeBody::Memory(bytes) => Self::full(bytes),
            WholeBody::InRing(held) => Self { kind: Kind::InRing(held), sent: 0, exchange: None, waits: false },
        }
    }

    /// A body that comes in parts.
    #[must_use]
    pub fn stream(stream: Stream) -> Self {
        Self { kind: Kind::Stream(stream), sent: 0, exchange: None, waits: false }
    }

    /// A file or parts of it.
    #[must_use]
    pub fn file(file: FileBody) -> Self {
        match file.as_memory() {
            Some(bytes) => Self::full(bytes.clone()),
            None if file.remaining() == 0 => Self::empty(),
            None => Self { kind: Kind::File(file), sent: 0, exchange: None, waits: false },
        }
    }

    /// The whole body, if it is complete (empty for an empty one); the body itself otherwise.
    pub fn into_whole(mut self) -> Result<WholeBody, Self> {
        match std::mem::replace(&mut self.kind, Kind::Empty) {
            Kind::Empty => Ok(Bytes::new().into()),
            Kind::Full(bytes) => Ok(bytes.into()),
            Kind::InRing(held) => Ok(WholeBody::InRing(held)),
            other => {
                self.kind = other;
                Err(self)
            }
        }
    }

    /// The bytes of a body that is in memory (empty for an empty one).
    #[cfg(test)]
    pub(crate) fn as_full(&self) -> Option<&Bytes> {
        static NOTHING: Bytes = Bytes::new();
        match &self.kind {
            Kind::Empty => Some(&NOTHING),
            Kind::Full(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The inner stream, if the body comes in parts; the body itself otherwise.
    pub fn into_stream(mut self) -> Result<Stream, Self> {
        match std::mem::replace(&mut self.kind, Kind::Empty) {
            Kind::Stream(stream) => Ok(stream),
            Kind::File(file) => Ok(Box::new(file.into_readable())),
            other => {
                self.kind = other;
                Err(self)
            }
        }
    }

    /// Charges what is at hand to the connection, for as long as any of it waits there. False: there is no budget for it.
    pub(crate) fn hold(&mut self, conn: &Conn) -> bool {
        let multiplexed = conn.state.is_multiplexed();
        let (len, least) = match &self.kind {
            Kind::Full(bytes) => (bytes.len(), if multiplexed { HELD_BY_STREAM } else { HELD_BY_CONNECTION }),
            // It goes out when its stream's turn comes, whenever that is. Else it goes at once or to the backlog.
            Kind::InRing(held) if multiplexed => (held.len(), HELD_BY_STREAM),
            _ => return true,
        };
        let mut charge = conn.charge();
        if len >= least && !charge.grow(len as u64) {
            return false;
        }
        self.kind = match std::mem::replace(&mut self.kind, Kind::Empty) {
            Kind::Full(bytes) => Kind::Full(charge.cover(bytes)),
            Kind::InRing(held) => Kind::Full(charge.cover(held.copy_from(0).into())),
            other => other,
        };
        true
    }

    /// Ties the exchange to the body: it ends when the body has been handed to the connection or is given up.
    pub(crate) fn carry(&mut self, exchange: Box<Exchange>) {
        if exchange.conn.state.is_multiplexed() {
            exchange.conn.state.sending_begins();
        }
        self.exchange = Some(exchange);
    }

    /// Tells the connection, which cannot see it from its writes in HTTP/2, whether the client or the source is slow.
    fn note(&mut self, waits: bool) {
        let Some(exchange) = &self.exchange else { return };
        let state = &exchange.conn.state;
        if !state.is_multiplexed() {
            return;
        }
        if waits != self.waits {
            self.waits = waits;
            state.source_waits(waits);
        } else if !waits {
            state.body_moved();
        }
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                self.sent += bytes.len() as u64;
                self.kind = Kind::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Kind::InRing(_) => {
                let Kind::InRing(held) = std::mem::replace(&mut self.kind, Kind::Empty) else {
                    return Poll::Ready(None);
                };
                self.sent += held.len() as u64;
                let bytes = match &self.exchange {
                    Some(exchange) => exchange.conn.straight.lay(held),
                    None => held.copy_from(0).into(),
                };
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Kind::Stream(stream) => loop {
                // The connection writes what it has whenever no further part is ready, so a flush needs nothing more.
                match ready!(stream.poll_chunk(cx)) {
                    Some(Ok(chunk)) if chunk.data.is_empty() => {}
                    Some(Ok(chunk)) => {
                        self.sent += chunk.data.len() as u64;
                        return Poll::Ready(Some(Ok(Frame::data(chunk.data))));
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => {
                        self.kind = Kind::Empty;
                        return Poll::Ready(None);
                    }
                }
            },
            Kind::File(file) => {
                let frame = ready!(Pin::new(file).poll_frame(cx));
                let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
                self.sent += frame.data_ref().map_or(0, |data| data.len() as u64);
                let exchange = self.exchange.as_ref().filter(|exchange| exchange.conn.state.is_multiplexed());
                let Some(exchange) = exchange else { return Poll::Ready(Some(Ok(frame))) };
                // A part that was read for a stream, which may take it when it likes.
                let mut charge = exchange.conn.charge();
                Poll::Ready(Some(match frame.data_ref().is_none_or(|data| charge.grow(data.len() as u64)) {
                    true => Ok(frame.map_data(|data| charge.cover(data))),
                    false => Err(io::Error::other("there is no room for more of the file in `http.memory`")),
                }))
            }
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // A body that still holds something here was given up; one that was drained has all been handed over.
        let complete = self.is_end_stream();
        // The stream goes first: at its end it tells the exchange where the call ran.
        self.kind = Kind::Empty;
        self.note(false);
        if let Some(exchange) = self.exchange.take() {
            if exchange.conn.state.is_multiplexed() {
                exchange.conn.state.sending_ends();
            }
            exchange.finish(self.sent, complete);
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let part = contain::call(|| self.poll_part(cx)).unwrap_or_else(|panic| {
            if let Some(exchange) = &self.exchange {
                panic.note(&exchange.conn.site.metrics);
            }
            // What made it is not to be asked again.
            self.kind = Kind::Empty;
            Poll::Ready(Some(Err(io::Error::other("a fault in the server"))))
        });
        self.note(part.is_pending());
        part
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Full(_) | Kind::InRing(_) => false,
            Kind::Stream(stream) => stream.remaining() == Some(0),
            Kind::File(file) => file.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::InRing(held) => SizeHint::with_exact(held.len() as u64),
            Kind::Stream(stream) => stream.remaining().map_or_else(SizeHint::default, SizeHint::with_exact),
            Kind::File(file) => file.size_hint(),
        }
    }
}

//! One connection to a server, with hyper: a sender of requests and the future that does the work, which whoever has the link
//! polls.

use crate::request::Outgoing;
use crate::transport::Transport;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The most that a connection reads ahead, and a response's head may have.
const BUFFER: usize = 64 * 1024;

/// See above.
pub(crate) struct Link {
    pub(crate) send: SendRequest<Outgoing>,
    connection: Connection<TokioIo<Transport>, Outgoing>,
    /// The connection's future has ended: it is not to be polled again.
    ended: bool,
    /// It has had a request before.
    pub(crate) used: bool,
    /// Since when it waits for its next one.
    pub(crate) since: Instant,
}

/// A connection that has left HTTP: its stream, and what was read of it already.
pub(crate) struct Left {
    pub(crate) stream: Transport,
    pub(crate) ahead: bytes::Bytes,
}

impl Link {
    pub(crate) async fn new(stream: Transport) -> hyper::Result<Self> {
        let (send, connection) = Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await?;
        Ok(Self { send, connection, ended: false, used: false, since: Instant::now() })
    }

    /// Lets the connection do what it can. True once it has ended; what it still had to tell has been told to whoever waits for
    /// the response or reads its body.
    pub(crate) fn work(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.ended {
            // An error goes to whoever waits; one that nobody waits for ends the connection all the same.
            self.ended = self.connection.poll_without_shutdown(cx).is_ready();
        }
        self.ended
    }

    /// Whether it can have another request, as far as can be seen without waiting.
    pub(crate) fn is_usable(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        !self.work(&mut cx) && self.send.is_ready() && matches!(self.send.poll_ready(&mut cx), Poll::Ready(Ok(())))
    }

    /// The stream, after a response of status 101.
    pub(crate) fn leave(self) -> Left {
        let parts = self.connection.into_parts();
        Left { stream: parts.io.into_inner(), ahead: parts.read_buf }
    }
}

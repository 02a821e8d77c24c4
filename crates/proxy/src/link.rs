//! One connection to a server, with hyper: a sender of requests and the future that does the work, which the link's
//! owner polls.

use crate::request::Outgoing;
use crate::transport::Transport;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// The most that a connection reads ahead, and a response's head may have.
const BUFFER: usize = 64 * 1024;

/// A connection to a server.
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

    /// Lets the connection do its work. Returns `true` once it has ended; the waiting response or body has received its
    /// last data then.
    pub(crate) fn work(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.ended {
            // Errors are reported to the waiting side; without one the connection ends all the same.
            self.ended = self.connection.poll_without_shutdown(cx).is_ready();
        }
        self.ended
    }

    /// `true` if it can take another request, as far as that is known without waiting.
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

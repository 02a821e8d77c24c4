//! One connection to a server, with hyper: a request sender, and the connection's future, which the link's owner polls.

use crate::request::Outgoing;
use crate::transport::Transport;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Maximum bytes that a connection reads ahead; also the limit of a response's head.
const BUFFER: usize = 64 * 1024;

/// A connection to a server.
pub(crate) struct Link {
    pub(crate) send: SendRequest<Outgoing>,
    connection: Connection<TokioIo<Transport>, Outgoing>,
    /// The connection's future has ended and must not be polled again.
    ended: bool,
    /// It has had a request before.
    pub(crate) used: bool,
    /// Start of its present idle time.
    pub(crate) since: Instant,
}

/// An upgraded connection: its stream, and the bytes already read from it.
pub(crate) struct UpgradedStream {
    pub(crate) stream: Transport,
    pub(crate) ahead: bytes::Bytes,
}

impl Link {
    pub(crate) async fn new(stream: Transport) -> hyper::Result<Self> {
        let (send, connection) = Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await?;
        Ok(Self { send, connection, ended: false, used: false, since: Instant::now() })
    }

    /// Polls the connection. Returns `true` once it has ended; by then the waiting response or body has received its
    /// last data.
    pub(crate) fn work(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.ended {
            // hyper reports errors to the waiting response or body; if there is none, the connection just ends.
            self.ended = self.connection.poll_without_shutdown(cx).is_ready();
        }
        self.ended
    }

    /// `true` if the connection can take another request, judged without waiting.
    pub(crate) fn is_usable(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        !self.work(&mut cx) && self.send.is_ready() && matches!(self.send.poll_ready(&mut cx), Poll::Ready(Ok(())))
    }

    /// The stream, after a response of status 101.
    pub(crate) fn leave(self) -> UpgradedStream {
        let parts = self.connection.into_parts();
        UpgradedStream { stream: parts.io.into_inner(), ahead: parts.read_buf }
    }
}

//! A stream that has left HTTP for another protocol (RFC 8441): its DATA frames, for the upgraded protocol.
//!
//! For timeouts and the shutdown it counts as a running request, as in HTTP/1. If the client does not read, the stream
//! is reset, as with a response's body.

use super::{SendWindow, poll_room};
use crate::connection::Connection;
use crate::multiplexed::ClientTimeout;
use crate::state::Verdict;
use crate::upgrade::Upgraded;
use crate::upgraded_connection::{SentBytes, read_ahead};
use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The stream, as the upgraded protocol sees it.
pub(super) struct Client {
    connection: Arc<Connection>,
    timeout: ClientTimeout<Arc<Connection>>,
    incoming: RecvStream,
    /// Received data that is unread. The client may send as much again only once it is read.
    ahead: Bytes,
    outgoing: SendStream<Bytes>,
    /// The end of the outgoing stream was sent.
    ended: bool,
    sent: SentBytes,
}

impl Client {
    pub(super) fn new(
        connection: &Arc<Connection>,
        incoming: RecvStream,
        outgoing: SendStream<Bytes>,
        sent: SentBytes,
    ) -> Self {
        let timeout = ClientTimeout::new(connection.clone());
        let (connection, ahead) = (connection.clone(), Bytes::new());
        Self { connection, timeout, incoming, ahead, outgoing, ended: false, sent }
    }
}

impl Drop for Client {
    /// A stream dropped before its end is reset, like a connection would be (RFC 8441 5).
    fn drop(&mut self) {
        if !self.ended {
            self.outgoing.send_reset(Reason::CANCEL);
        }
    }
}

impl Upgraded for Client {
    fn is_to_end(&self) -> bool {
        self.connection.state.verdict() >= Verdict::Finish
    }
}

fn broken(error: h2::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

impl AsyncRead for Client {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.ahead.is_empty() {
            match ready!(this.incoming.poll_data(cx)) {
                Some(Ok(data)) => this.ahead = data,
                Some(Err(error)) => return Poll::Ready(Err(broken(error))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let bytes = read_ahead(&mut this.ahead, buf);
        // This fails only once the stream is gone.
        let _ = this.incoming.flow_control().release_capacity(bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Client {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { connection, timeout, outgoing, sent, .. } = self.get_mut();
        outgoing.reserve_capacity(bytes.len());
        if outgoing.capacity() == 0 {
            match ready!(poll_room(outgoing, timeout, cx)).map_err(broken)? {
                SendWindow::Some => {}
                SendWindow::Never => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                SendWindow::TooLate => return Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            }
        }
        let bytes = &bytes[..bytes.len().min(outgoing.capacity())];
        let mut charge = connection.charge();
        if !charge.grow(bytes.len() as u64) {
            return Poll::Ready(Err(io::Error::other("no room for sent data in `http.memory`")));
        }
        outgoing.send_data(charge.cover(Bytes::copy_from_slice(bytes)), false).map_err(broken)?;
        timeout.took(bytes.len());
        sent.fetch_add(bytes.len() as u64, Relaxed);
        Poll::Ready(Ok(bytes.len()))
    }

    /// The connection's task writes pending frames.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.ended {
            this.outgoing.send_data(Bytes::new(), true).map_err(broken)?;
            this.ended = true;
        }
        Poll::Ready(Ok(()))
    }
}

//! The socket as h2 sees it: with the bytes that were read while the protocol was found out, and with notes for the timeouts.

use crate::connection::Connection;
use crate::socket::Socket;
use crate::state::Verdict;
use bytes::{Buf, Bytes};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// See above.
pub(super) struct Noted {
    socket: Socket,
    connection: Arc<Connection>,
    ahead: Bytes,
}

impl Noted {
    pub(super) fn new(socket: Socket, connection: Arc<Connection>, ahead: Bytes) -> Self {
        Self { socket, connection, ahead }
    }
}

impl AsyncRead for Noted {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.ahead.is_empty() {
            let n = this.ahead.len().min(buf.remaining());
            buf.put_slice(&this.ahead[..n]);
            this.ahead.advance(n);
            if this.ahead.is_empty() {
                // Gives the memory back.
                this.ahead = Bytes::new();
            }
            return Poll::Ready(Ok(()));
        }
        match this.connection.state.verdict() {
            Verdict::None | Verdict::LastResponse | Verdict::Finish => this.socket.poll_read(cx, buf),
            // The end of the stream, as far as h2 can see.
            Verdict::Idle | Verdict::HeaderTimeout | Verdict::Drop => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Noted {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = this.socket.poll_write_vectored(cx, bufs);
        this.connection.state.note_write(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// h2 calls this when all its bytes are written.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.socket.is_behind() {
            let result = this.socket.poll_flush(cx).map_ok(|()| 0);
            this.connection.state.note_write(&result);
            ready!(result)?;
        }
        this.connection.state.on_caught_up();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().socket.say_goodbye();
        // The close that follows sends everything written before it.
        Poll::Ready(Ok(()))
    }
}

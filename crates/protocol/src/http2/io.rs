//! The socket that h2 reads and writes: replays the bytes read during protocol detection, and records progress for the
//! timeouts.

use super::refusals::{Outgoing, Refusals};
use crate::connection::Connection;
use crate::socket::Socket;
use crate::state::Verdict;
use bytes::{Buf, Bytes};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The socket that h2 uses, with a view of its bytes.
pub(super) struct ObservedSocket {
    socket: Socket,
    connection: Arc<Connection>,
    ahead: Bytes,
    /// Bytes up to the first frame's flags that have not been read yet.
    before_frames: usize,
    outgoing: Outgoing,
    refusals: Arc<Refusals>,
}

/// The client's preface and its first frame's length; the frame's kind and flags follow.
const BEFORE_KIND: usize = 24 + 3;
const SETTINGS: u8 = 4;
const ACK: u8 = 1;

impl ObservedSocket {
    pub(super) fn new(socket: Socket, connection: Arc<Connection>, ahead: Bytes, refusals: Arc<Refusals>) -> Self {
        let outgoing = Outgoing::default();
        Self { socket, connection, ahead, before_frames: BEFORE_KIND + 2, outgoing, refusals }
    }

    /// `true` if the data may begin an HTTP/2 connection. The first frame must be SETTINGS (RFC 9113 3.4), which h2
    /// does not check.
    fn is_preface(&mut self, bytes: &[u8]) -> bool {
        let at = BEFORE_KIND + 2 - self.before_frames;
        self.before_frames = self.before_frames.saturating_sub(bytes.len());
        let byte = |place: usize| place.checked_sub(at).and_then(|place| bytes.get(place));
        byte(BEFORE_KIND).is_none_or(|kind| *kind == SETTINGS)
            && byte(BEFORE_KIND + 1).is_none_or(|flags| flags & ACK == 0)
    }
}

impl AsyncRead for ObservedSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(this.poll_bytes(cx, buf))?;
        match this.before_frames == 0 || this.is_preface(&buf.filled()[before..]) {
            true => Poll::Ready(Ok(())),
            false => Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "the first frame is not SETTINGS"))),
        }
    }
}

impl ObservedSocket {
    fn poll_bytes(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let n = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead[..n]);
            self.ahead.advance(n);
            if self.ahead.is_empty() {
                // Gives the memory back.
                self.ahead = Bytes::new();
            }
            return Poll::Ready(Ok(()));
        }
        match self.connection.state.verdict() {
            Verdict::None | Verdict::LastResponse | Verdict::Finish => self.socket.poll_read(cx, buf),
            // Reported to h2 as the end of the stream.
            Verdict::Idle | Verdict::HeaderTimeout | Verdict::Drop => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for ObservedSocket {
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
        if let Poll::Ready(Ok(mut written)) = result {
            for part in bufs {
                let taken = written.min(part.len());
                this.outgoing.note(&part[..taken], &this.refusals);
                written -= taken;
            }
        }
        result
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Called by h2 when all its bytes are written.
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
        self.get_mut().socket.send_close_notify();
        // The close that follows sends everything written before it.
        Poll::Ready(Ok(()))
    }
}

//! A connection that has left HTTP/1 for another protocol: its bytes, for the upgraded protocol.
//!
//! For timeouts and the shutdown (`state`) it counts as a running request: it has no idle timeout, a client that does
//! not read is dropped as usual, and a shutdown waits for its end up to the grace time.

use super::io::Io;
use crate::serial_body::lock;
use crate::state::Verdict;
use crate::upgrade::Upgraded;
use crate::upgraded_connection::SentBytes;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The connection, as the upgraded protocol sees it.
pub(super) struct Client {
    io: Arc<Mutex<Io>>,
    /// For the log.
    sent: SentBytes,
}

impl Client {
    pub(super) fn new(io: Arc<Mutex<Io>>, sent: SentBytes) -> Self {
        Self { io, sent }
    }
}

impl Upgraded for Client {
    fn is_to_end(&self) -> bool {
        lock(&self.io).connection.state.verdict() >= Verdict::Finish
    }
}

impl AsyncRead for Client {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        lock(&self.io).poll_upgraded_read(cx, buf)
    }
}

impl AsyncWrite for Client {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = lock(&self.io).poll_upgraded_write(cx, buf);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.sent.fetch_add(*bytes as u64, Relaxed);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.io).poll_upgraded_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.io).socket.poll_shutdown(cx)
    }
}

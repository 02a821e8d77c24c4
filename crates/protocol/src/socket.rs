//! A connection's socket: reads, writes of memory, and writes of files without a copy (`sendfile`).
//!
//! A partial write is reported to tokio as "would block", so that the next attempt waits for readiness instead of
//! making a call that is known to fail. Nothing here waits for the peer, but reading a file may wait for the disk.

use crate::files::{FilePart, truncated};
use crate::tls_socket::TlsSocket;
use rustix::fs::{fstat, sendfile};
use rustix::io::{Errno, pread};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// Maximum bytes per `sendfile` call, so that a fast reader of a huge file does not starve other connections.
const MAX_SENDFILE: u64 = 2 << 20;
/// Bytes per read on file systems without `sendfile`.
const COPY: usize = 128 << 10;

/// A stream socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsSocket>),
}

/// Result of one attempt to write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes taken.
    pub(crate) bytes: usize,
    /// The socket is full and took less than was offered: it reports when it has room again.
    pub(crate) full: bool,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(tls) => tls.stream().as_fd(),
        }
    }
}

impl Socket {
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(tls) => tls.poll_read(cx, buf),
        }
    }

    /// Attempts one read without waiting for readiness. `buf` stays empty for any reason: no data, end, or error.
    pub(crate) fn read_at_once(&self, buf: &mut ReadBuf<'_>) {
        if let Self::Tcp(_) | Self::Unix(_) = self
            && let Ok((read, _)) = recv(self.as_fd(), buf.initialize_unfilled(), RecvFlags::DONTWAIT)
        {
            buf.advance(read);
        }
    }

    /// `true` if bytes have arrived that are unread and that the runtime may not have reported yet.
    pub(crate) fn has_unread(&self) -> bool {
        has_unread(self.as_fd())
    }

    /// Like `AsyncWrite::poll_write_vectored`, for protocols that write themselves. They call `poll_flush` after it, or
    /// continue reading.
    pub(crate) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(tls) => tls.poll_write_vectored(cx, bufs),
        }
    }

    /// `true` if data that counts as written still waits for the kernel.
    pub(crate) fn is_behind(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.is_behind())
    }

    /// Ready when the kernel has taken everything that counts as written.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::Tls(tls) => tls.poll_flush(cx),
        }
    }

    /// Sends TLS' `close_notify`; called when everything is written and the close follows.
    pub(crate) fn send_close_notify(&mut self) {
        if let Self::Tls(tls) = self {
            tls.send_close_notify();
        }
    }

    /// Shuts down the sending side.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(tls) => tls.poll_shutdown(cx),
        }
    }

    /// Attempts one write without waiting.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
            Self::Tls(tls) => tls.try_write(bytes),
        }
    }

    /// The same socket, registered a second time, for watching: reads and writes bypass TLS.
    pub(crate) fn registered_again(&self) -> io::Result<Self> {
        let descriptor = self.as_fd().try_clone_to_owned()?;
        Ok(match self {
            Self::Tcp(_) | Self::Tls(_) => Self::Tcp(TcpStream::from_std(descriptor.into())?),
            Self::Unix(_) => Self::Unix(UnixStream::from_std(descriptor.into())?),
        })
    }

    /// Returns when the connection was reset.
    pub(crate) async fn reset(&self) {
        let _ = match self {
            Self::Tcp(stream) => stream.ready(Interest::ERROR).await,
            Self::Unix(stream) => stream.ready(Interest::ERROR).await,
            Self::Tls(tls) => tls.stream().ready(Interest::ERROR).await,
        };
    }

    /// Waits until the socket is writable and calls `write` once. Not for TLS, where only the session writes to the
    /// socket.
    pub(crate) fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(BorrowedFd<'_>) -> io::Result<Written>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(match self {
                Self::Tcp(stream) => stream.poll_write_ready(cx),
                Self::Unix(stream) => stream.poll_write_ready(cx),
                Self::Tls(_) => return Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
            })?;
            let mut taken = 0;
            let attempt = || {
                let written = write(self.as_fd())?;
                if written.full {
                    taken = written.bytes;
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                Ok(written.bytes)
            };
            let result = match self {
                Self::Tcp(stream) => stream.try_io(Interest::WRITABLE, attempt),
                Self::Unix(stream) => stream.try_io(Interest::WRITABLE, attempt),
                Self::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if taken > 0 {
                        return Poll::Ready(Ok(taken));
                    }
                }
                other => return Poll::Ready(other),
            }
        }
    }
}

/// See [`Socket::has_unread`].
pub(crate) fn has_unread(socket: BorrowedFd<'_>) -> bool {
    recv(socket, &mut [0; 1], RecvFlags::DONTWAIT | RecvFlags::PEEK).is_ok_and(|(_, length)| length > 0)
}

/// Sends memory; `more` keeps the kernel from sending a small packet before the file that follows.
pub(crate) fn send_memory(socket: BorrowedFd<'_>, bufs: &[IoSlice<'_>], more: bool) -> io::Result<Written> {
    let mut flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    if more {
        flags |= SendFlags::MORE;
    }
    let offered: usize = bufs.iter().map(|buf| buf.len()).sum();
    let result = loop {
        let result = match bufs {
            [one] => send(socket, one, flags),
            _ => sendmsg(socket, bufs, &mut SendAncillaryBuffer::default(), flags),
        };
        if result != Err(Errno::INTR) {
            break result;
        }
    };
    let bytes = result?;
    Ok(Written { bytes, full: bytes < offered })
}

/// Sends the beginning of a part of a file.
pub(crate) fn send_file(socket: BorrowedFd<'_>, from: &FilePart) -> io::Result<Written> {
    let len = usize::try_from((from.end - from.start).min(MAX_SENDFILE)).unwrap_or(COPY);
    let mut position = from.start;
    let result = loop {
        match sendfile(socket, &from.file, Some(&mut position), len) {
            Err(Errno::INTR) => {}
            result => break result,
        }
    };
    match result {
        Ok(0) => Err(truncated()),
        Ok(bytes) if bytes == len => Ok(Written { bytes, full: false }),
        Ok(bytes) => {
            // A short count means that the socket is full or that the file has ended. Only a full socket reports
            // readiness later; at the end of the file, waiting for it would never end.
            let end = from.start + bytes as u64;
            let full = fstat(&from.file).is_ok_and(|stat| u64::try_from(stat.st_size).unwrap_or(0) > end);
            Ok(Written { bytes, full })
        }
        // The file system does not support `sendfile` (some FUSE and network file systems): copy.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => copy_file(socket, from, len),
        Err(error) => Err(error.into()),
    }
}

/// As [`send_file`], through a buffer.
fn copy_file(socket: BorrowedFd<'_>, from: &FilePart, len: usize) -> io::Result<Written> {
    let mut buffer = Vec::with_capacity(len.min(COPY));
    loop {
        match pread(&from.file, rustix::buffer::spare_capacity(&mut buffer), from.start) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) => return Err(truncated()),
            Ok(_) => break,
        }
    }
    buffer.truncate(len);
    send_memory(socket, &[IoSlice::new(&buffer)], false)
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;

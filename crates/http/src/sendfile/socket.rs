//! The writing side: plain bytes by `send`, tokens by `sendfile`, in the order in which they stand.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use rustix::fs::{fstat, sendfile};
use rustix::io::{Errno, pread};
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use super::token::{Located, locate};

/// Most bytes that one call asks `sendfile` for, so that a fast reader of a huge file lets other connections in.
const LONGEST_CALL: usize = 2 << 20;
/// Bytes that are read at once where the file system has no `sendfile`.
const COPY: usize = 128 << 10;

/// A stream socket whose readiness tokio watches.
pub(crate) trait Watched: AsFd {
    /// As `TcpStream::poll_write_ready`.
    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    /// As `TcpStream::try_io` for writing.
    fn try_write_io<R>(&self, write: impl FnOnce() -> io::Result<R>) -> io::Result<R>;
}

impl Watched for TcpStream {
    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_ready(cx)
    }
    fn try_write_io<R>(&self, write: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.try_io(Interest::WRITABLE, write)
    }
}

impl Watched for UnixStream {
    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_ready(cx)
    }
    fn try_write_io<R>(&self, write: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.try_io(Interest::WRITABLE, write)
    }
}

/// What one attempt to write did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes taken, from the start of the first slice on.
    pub(crate) bytes: usize,
    /// The socket took less than was offered because it is full: it will tell when it has room again.
    pub(crate) full: bool,
}

/// Writes `bufs` if there is a token among them; `None` (and nothing done) if all of them are plain memory, which the
/// caller then writes as usual.
///
/// For `poll_write_vectored` of a connection; `poll_write` must ask too, with its one slice.
pub(crate) fn poll_write_vectored<S: Watched>(
    socket: &S,
    cx: &mut Context<'_>,
    bufs: &[IoSlice<'_>],
) -> Option<Poll<io::Result<usize>>> {
    let first = bufs.iter().position(|buf| locate(buf).is_some())?;
    Some(poll_write_tokens(socket, cx, bufs, first))
}

fn poll_write_tokens<S: Watched>(
    socket: &S,
    cx: &mut Context<'_>,
    bufs: &[IoSlice<'_>],
    first: usize,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(socket.poll_write_ready(cx))?;
        let mut taken = 0;
        let result = socket.try_write_io(|| {
            let written = write_from(socket.as_fd(), bufs, first)?;
            if written.full {
                // Reported to tokio as "would block", so that the next attempt waits for the socket and does not begin
                // with a call that is known to fail.
                taken = written.bytes;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(written.bytes)
        });
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

/// One attempt to write `bufs`, with tokens sent from their files; `None` if there is no token among them.
///
/// Never blocks. An error is returned only if nothing was written before it.
#[cfg(test)]
pub(crate) fn write_vectored(socket: BorrowedFd<'_>, bufs: &[IoSlice<'_>]) -> Option<io::Result<Written>> {
    let first = bufs.iter().position(|buf| locate(buf).is_some())?;
    Some(write_from(socket, bufs, first))
}

/// `first` is the index of the first token.
fn write_from(socket: BorrowedFd<'_>, bufs: &[IoSlice<'_>], first: usize) -> io::Result<Written> {
    let mut written = Written { bytes: 0, full: false };
    let mut next = 0;
    let mut token = first;
    while next < bufs.len() && written.bytes < LONGEST_CALL {
        let offered;
        let result = if next < token {
            let plain = &bufs[next..token];
            offered = plain.iter().map(|buf| buf.len()).sum();
            next = token;
            send_plain(socket, plain, token < bufs.len())
        } else {
            let Some(located) = locate(&bufs[next]) else { return Err(io::ErrorKind::InvalidInput.into()) };
            offered = bufs[next].len().min(LONGEST_CALL - written.bytes);
            let more = offered < bufs[next].len();
            next = if more { bufs.len() } else { next + 1 };
            token = bufs[next..].iter().position(|buf| locate(buf).is_some()).map_or(bufs.len(), |at| next + at);
            send_file(socket, &located, offered)
        };
        match result {
            Ok(sent) => {
                written.bytes += sent.bytes;
                if sent.bytes < offered {
                    written.full = sent.full;
                    break;
                }
            }
            // What was sent before counts; the error comes back with the next attempt.
            Err(_) if written.bytes > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// Sends memory; `more` keeps the kernel from sending a small packet before the file that follows.
fn send_plain(socket: BorrowedFd<'_>, bufs: &[IoSlice<'_>], more: bool) -> io::Result<Written> {
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

/// Sends `len` bytes of a file.
fn send_file(socket: BorrowedFd<'_>, from: &Located, len: usize) -> io::Result<Written> {
    let mut position = from.offset;
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
            // Short because the socket is full, or because the file is. Only the first will be announced by the socket;
            // waiting for the second would wait for ever.
            let end = from.offset + bytes as u64;
            let full = fstat(&from.file).is_ok_and(|stat| u64::try_from(stat.st_size).unwrap_or(0) > end);
            Ok(Written { bytes, full })
        }
        // The file system cannot splice (some FUSE and network ones): copy.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => copy_file(socket, from, len),
        Err(error) => Err(error.into()),
    }
}

/// As [`send_file`], through a buffer.
fn copy_file(socket: BorrowedFd<'_>, from: &Located, len: usize) -> io::Result<Written> {
    let mut buffer = Vec::with_capacity(len.min(COPY));
    loop {
        match pread(&from.file, rustix::buffer::spare_capacity(&mut buffer), from.offset) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) => return Err(truncated()),
            Ok(_) => break,
        }
    }
    buffer.truncate(len);
    send_plain(socket, &[IoSlice::new(&buffer)], false)
}

fn truncated() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "a file became shorter while it was being sent")
}

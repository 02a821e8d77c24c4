//! A TCP socket with TLS. Output passes through the TLS session in pieces of bounded size. Bytes count as written once
//! they are encrypted. Encrypted bytes that the kernel has not taken wait here, are charged like all waiting data, and
//! are written before anything else.

use crate::files::{FilePart, truncated};
use bytes::Bytes;
use howdah_budget::Charge;
use rustix::io::{Errno, pread};
use rustls::ServerConnection;
use std::cell::RefCell;
use std::io::{self, BufRead, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Maximum number of bytes encrypted ahead of the socket: a few TLS records, which one system call writes.
const AHEAD: usize = 64 * 1024;

thread_local! {
    /// Buffer for file content before encryption.
    static PIECE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A TLS session over a socket.
#[derive(Debug)]
pub(crate) struct TlsSocket {
    stream: TcpStream,
    session: ServerConnection,
    /// Encrypted data that is not yet written.
    charge: Charge,
    /// The client has closed the TCP connection, or its side of it.
    at_end: bool,
}

/// First data of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientHello {
    /// Its first byte.
    pub(crate) first: Option<u8>,
    /// Data read before the handshake began.
    ahead: Bytes,
}

impl ClientHello {
    pub(crate) fn new(ahead: Bytes) -> Self {
        Self { first: ahead.first().copied(), ahead }
    }
}

impl TlsSocket {
    /// A session before its handshake. `charge` is for encrypted data that waits for the socket.
    pub(crate) fn new(stream: TcpStream, mut session: ServerConnection, charge: Charge) -> Self {
        session.set_buffer_limit(Some(AHEAD));
        Self { stream, session, charge, at_end: false }
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    pub(crate) fn session(&self) -> &ServerConnection {
        &self.session
    }

    /// Continues the handshake. Ready when it is complete. Calls `came` whenever bytes have arrived.
    pub(crate) fn poll_handshake(
        &mut self,
        cx: &mut Context<'_>,
        opening: &mut ClientHello,
        mut came: impl FnMut(),
    ) -> Poll<io::Result<()>> {
        loop {
            let blocked = self.poll_flush(cx)?.is_pending();
            if !self.session.is_handshaking() {
                // The unwritten rest is session tickets, or in TLS 1.2 the server's last messages. `poll_read` flushes
                // it.
                return Poll::Ready(Ok(()));
            }
            if blocked {
                return Poll::Pending;
            }
            let mut source = Source { stream: &mut self.stream, cx, opening };
            match self.session.read_tls(&mut source) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => came(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
            if let Err(error) = self.session.process_new_packets() {
                // A client that speaks plain HTTP would take an alert for part of the response.
                if !speaks_http(opening.first) {
                    let _ = self.poll_flush(cx);
                }
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
            }
        }
    }

    /// Decrypts received data. On an error, sends an alert to the client if the socket takes it at once.
    fn process(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.session.process_new_packets() {
            Ok(_) => Ok(()),
            Err(error) => {
                let _ = self.poll_flush(cx);
                Err(io::Error::new(io::ErrorKind::InvalidData, error))
            }
        }
    }

    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        loop {
            let mut reader = self.session.reader();
            while buf.remaining() > 0 {
                match reader.fill_buf() {
                    // The client has sent `close_notify`.
                    Ok([]) => return Poll::Ready(Ok(())),
                    Ok(chunk) => {
                        let length = chunk.len().min(buf.remaining());
                        buf.put_slice(&chunk[..length]);
                        reader.consume(length);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // The client has closed without `close_notify`. Truncation is detected by the lengths of HTTP
                    // messages instead.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Poll::Ready(Ok(())),
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            if buf.filled().len() > before || buf.remaining() == 0 || self.at_end {
                return Poll::Ready(Ok(()));
            }
            let mut source = Source { stream: &mut self.stream, cx, opening: &mut ClientHello::default() };
            match self.session.read_tls(&mut source) {
                Ok(0) => self.at_end = true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Flushes here too, because no write may follow for a while.
                    return match self.poll_flush(cx) {
                        Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                        _ => Poll::Pending,
                    };
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
            self.process(cx)?;
            if self.session.wants_write()
                && let Poll::Ready(Err(error)) = self.poll_flush(cx)
            {
                return Poll::Ready(Err(error));
            }
        }
    }

    /// `true` if encrypted data, which counts as written, still waits for the socket.
    pub(crate) fn is_behind(&self) -> bool {
        self.session.wants_write()
    }

    /// Writes encrypted data. Ready when none is left.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            let mut sink = Sink { stream: &mut self.stream, cx };
            match self.session.write_tls(&mut sink) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => self.charge.shrink(written as u64),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.charge.clear();
        Poll::Ready(Ok(()))
    }

    /// Encrypts as much as fits, and writes as much of that as the socket takes.
    pub(crate) fn poll_write_vectored(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(cx))?;
        let taken = self.session.writer().write_vectored(bufs)?;
        self.push_out(cx, taken)
    }

    /// Encrypts and writes the beginning of a part of a file; returns the number of bytes taken.
    pub(crate) fn poll_write_file(&mut self, cx: &mut Context<'_>, part: &FilePart) -> Poll<io::Result<usize>> {
        ready!(self.poll_flush(cx))?;
        let taken = PIECE.with_borrow_mut(|piece| {
            let length = usize::try_from((part.end - part.start).min(AHEAD as u64)).unwrap_or(AHEAD);
            piece.clear();
            piece.reserve(AHEAD);
            loop {
                match pread(&part.file, rustix::buffer::spare_capacity(piece), part.start) {
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                    Ok(0) => return Err(truncated()),
                    Ok(_) => break,
                }
            }
            piece.truncate(length);
            self.session.writer().write(piece)
        })?;
        self.push_out(cx, taken)
    }

    fn push_out(&mut self, cx: &mut Context<'_>, taken: usize) -> Poll<io::Result<usize>> {
        if let Poll::Ready(result) = self.poll_flush(cx) {
            result?;
        } else if !self.charge.grow(taken as u64) {
            return Poll::Ready(Err(io::Error::other("no room in `http.memory` for unread output")));
        }
        Poll::Ready(Ok(taken))
    }

    /// Attempts one write without waiting. Encrypted bytes that the socket does not take stay buffered.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut cx = Context::from_waker(Waker::noop());
        match self.poll_write_vectored(&mut cx, &[IoSlice::new(bytes)]) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Sends `close_notify` (RFC 8446 6.1) in one attempt. Without it, a client cannot tell the end from a truncation.
    pub(crate) fn send_close_notify(&mut self) {
        self.session.send_close_notify();
        let _ = self.poll_flush(&mut Context::from_waker(Waker::noop()));
    }

    /// Flushes, and closes the sending side of the TCP connection.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.session.send_close_notify();
        ready!(self.poll_flush(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// `true` if a connection that begins with this byte speaks HTTP: no TLS record begins with a letter, common methods
/// do.
pub(crate) fn speaks_http(first: Option<u8>) -> bool {
    first.is_some_and(|byte| byte.is_ascii_alphabetic())
}

impl AsyncRead for TlsSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_read(cx, buf)
    }
}

/// The TCP socket as the session reads it.
struct Source<'a, 'b> {
    stream: &'a mut TcpStream,
    cx: &'a mut Context<'b>,
    opening: &'a mut ClientHello,
}

impl Read for Source<'_, '_> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let mut buf = ReadBuf::new(space);
        if !self.opening.ahead.is_empty() {
            let length = self.opening.ahead.len().min(buf.remaining());
            buf.put_slice(&self.opening.ahead.split_to(length));
            return Ok(length);
        }
        match Pin::new(&mut *self.stream).poll_read(self.cx, &mut buf) {
            Poll::Ready(Ok(())) => {
                if self.opening.first.is_none() {
                    self.opening.first = buf.filled().first().copied();
                }
                Ok(buf.filled().len())
            }
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

/// The TCP socket as the session writes to it.
struct Sink<'a, 'b> {
    stream: &'a mut TcpStream,
    cx: &'a mut Context<'b>,
}

impl Sink<'_, '_> {
    fn blocked<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
        match polled {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Write for Sink<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::blocked(Pin::new(&mut *self.stream).poll_write(self.cx, bytes))
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        Self::blocked(Pin::new(&mut *self.stream).poll_write_vectored(self.cx, bufs))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

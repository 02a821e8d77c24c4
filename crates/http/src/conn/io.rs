//! A connection's transport: the socket with what the front adds to it (bytes read ahead, targets that hyper would
//! refuse, timeouts, clients that are half gone, zero-copy writes, a close that lets the client read the last answer).

use super::Conn;
use super::half_closed::HalfClosed;
use super::request_line::RequestLines;
use super::state::{ConnState, Verdict};
use super::straight::Backlog;
use crate::sendfile::Watched;
use bytes::{Buf, Bytes};
use howdah_budget::{Charge, Share};
use howdah_transport::HeldPayload;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// What goes over the socket when a request's header took too long; hyper has no request yet that could be answered.
const ANSWER_408: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Bytes that are put together before they are written: a `send` of one piece costs less than a `writev` of several.
const SMALL: usize = 1024;

/// Bytes of a header that come with a connection, which is not charged.
const USUAL_HEAD: usize = 8 * 1024;

/// A transport. TLS will be a variant that wraps one of these.
#[derive(Debug)]
pub enum Socket {
    /// A TCP connection.
    Tcp(TcpStream),
    /// A connection over a Unix socket.
    Unix(UnixStream),
}

impl Socket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if let [only] = bufs {
            return self.poll_write(cx, only);
        }
        if bufs.iter().map(|buf| buf.len()).sum::<usize>() <= SMALL {
            let mut space = [std::mem::MaybeUninit::uninit(); SMALL];
            let mut whole = ReadBuf::uninit(&mut space);
            bufs.iter().for_each(|buf| whole.put_slice(buf));
            return self.poll_write(cx, whole.filled());
        }
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
        }
    }
}

/// The socket as hyper sees it.
#[derive(Debug)]
pub struct ConnIo {
    socket: Socket,
    conn: Arc<Conn>,
    /// Bytes read while the protocol was found out; they come first.
    ahead: Bytes,
    lines: RequestLines,
    /// The client has closed its side, as a request's body seemed not to be complete.
    end_seen: bool,
    /// The client sends nothing more, and still waits for an answer.
    half_closed: Option<HalfClosed>,
    backlog: Backlog,
    /// A header that has not come in completely: its bytes, and what those beyond the usual few are charged.
    head: usize,
    head_charge: Option<Charge>,
    write_closed: bool,
}

impl ConnIo {
    /// Wraps a socket.
    #[must_use]
    pub fn new(socket: Socket, conn: Arc<Conn>) -> Self {
        let lines = RequestLines::new();
        Self {
            socket,
            conn,
            ahead: Bytes::new(),
            lines,
            backlog: Backlog::default(),
            end_seen: false,
            half_closed: None,
            head: 0,
            head_charge: None,
            write_closed: false,
        }
    }

    /// Gives back bytes that were read too early.
    pub fn unread(&mut self, bytes: Bytes) {
        self.ahead = bytes;
    }

    /// The connection speaks HTTP/2, which has no request lines.
    pub(super) fn set_multiplexed(&mut self) {
        self.conn.state.set_multiplexed();
        let _ = self.conn.share.set(Share::new(self.conn.site.budgets));
        self.lines.stop();
    }

    /// Charges what a client has sent of a header. One that takes its time with a long one must not do so for nothing.
    fn note_head(&mut self, bytes: usize) -> io::Result<()> {
        if !self.conn.state.reads_head() {
            if self.head != 0 {
                (self.head, self.head_charge) = (0, None);
            }
            return Ok(());
        }
        self.head += bytes;
        if self.head > USUAL_HEAD && !self.head_charge.get_or_insert_with(|| self.conn.charge()).grow(bytes as u64) {
            return Err(io::Error::other("there is no room for the header in `http.memory`"));
        }
        Ok(())
    }

    fn take_ahead(&mut self, buf: &mut ReadBuf<'_>) {
        let n = self.ahead.len().min(buf.remaining());
        buf.put_slice(&self.ahead[..n]);
        self.ahead.advance(n);
        if self.ahead.is_empty() {
            // Gives the memory back; an emptied slice would keep it for as long as the connection lives.
            self.ahead = Bytes::new();
        }
    }

    /// The client has closed its side. While it waits for an answer, hyper is not told: it would give the request up.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.conn.state.awaits_answer() {
            // The body's last part may have gone to the request in this very turn, which takes it in the next one.
            if self.conn.state.reads_body() && !self.end_seen {
                self.end_seen = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            return Poll::Ready(Ok(()));
        }
        if self.half_closed.is_none() {
            self.half_closed = Some(HalfClosed::new(&self.socket, self.conn.clone())?);
        }
        match &mut self.half_closed {
            Some(half_closed) => half_closed.poll_gone(cx).map(Ok),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Acts on a verdict of the shard: the end of the stream, as far as hyper can see.
    fn is_over(&mut self) -> bool {
        match self.conn.state.verdict() {
            Verdict::None | Verdict::Finish => false,
            Verdict::HeaderTimeout => {
                if !self.write_closed {
                    self.write_closed = true;
                    // One try: whoever does not even take these bytes gets none.
                    let _ = self.socket.try_write(ANSWER_408);
                }
                true
            }
            Verdict::Idle | Verdict::Drop => true,
        }
    }

    /// Reads and forgets what the client still sends, so that closing does not reset the connection before the client
    /// has read the answer. Ends at the client's close; the shard ends it when it takes too long.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.conn.state.set_lingering();
        let mut scratch = [std::mem::MaybeUninit::uninit(); 8192];
        // Bounded per turn, so that one busy sender does not hold up the others.
        for _ in 0..32 {
            let mut buf = ReadBuf::uninit(&mut scratch);
            match ready!(self.socket.poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes `bufs` if there is a body from a worker's ring among them. It is out of the ring afterwards, in any case.
    fn write_straight(&mut self, bufs: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
        let Self { socket, conn, backlog, .. } = self;
        backlog.write(
            &conn.straight,
            bufs,
            || conn.charge(),
            |held, before| match socket {
                Socket::Tcp(stream) => send(&*stream, held, before),
                Socket::Unix(stream) => send(&*stream, held, before),
            },
        )
    }

    /// Ready when nothing waits that hyper takes for written.
    fn poll_backlog(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { socket, conn, backlog, .. } = self;
        backlog.poll_written(&conn.straight, cx, |cx, bytes| write_noted(socket, &conn.state, cx, bytes))
    }

    fn note_write(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.conn.state.note_write(&result);
        if let (Poll::Ready(_), Some(half_closed)) = (&result, &self.half_closed) {
            half_closed.on_written();
        }
        result
    }
}

/// Writes what hyper does not know of, and notes whether the client takes it.
fn write_noted(socket: &mut Socket, state: &ConnState, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
    let result = socket.poll_write(cx, bytes);
    state.note_write(&result);
    result
}

/// One attempt to send `before` and then a body from a worker's ring.
fn send(socket: &impl Watched, held: &HeldPayload, before: &[IoSlice<'_>]) -> io::Result<usize> {
    let offered = before.iter().map(|buf| buf.len()).sum::<usize>() + held.len();
    let mut taken = 0;
    let result = socket.try_write_io(|| {
        taken = held.send_after(before, socket.as_fd())?;
        // A short write means that the socket is full: tokio learns of it without another attempt.
        if taken < offered { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
    });
    match result {
        Err(error) if taken == 0 => Err(error),
        _ => Ok(taken),
    }
}

impl Drop for ConnIo {
    fn drop(&mut self) {
        // A request may outlive its connection, and hold what they share; its script may even go on.
        drop(self.conn.straight.take());
        self.conn.interim.end();
    }
}

impl AsyncRead for ConnIo {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.ahead.is_empty() {
            this.take_ahead(buf);
            return Poll::Ready(Ok(()));
        }
        if this.is_over() {
            return Poll::Ready(Ok(()));
        }
        if this.half_closed.is_some() {
            return this.poll_end(cx);
        }
        let before = buf.filled().len();
        ready!(this.socket.poll_read(cx, buf))?;
        let came_in = &mut buf.filled_mut()[before..];
        if came_in.is_empty() {
            return this.poll_end(cx);
        }
        let came_in = came_in.len();
        this.conn.state.on_read();
        this.note_head(came_in)?;
        let came_in = &mut buf.filled_mut()[before..];
        this.lines.look(came_in, &this.conn.targets);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.conn.straight.is_busy() {
            return self.poll_write_vectored(cx, &[IoSlice::new(buf)]);
        }
        let this = self.get_mut();
        let result = this.socket.poll_write(cx, buf);
        this.note_write(result)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.conn.straight.is_busy() {
            if let Some(result) = this.write_straight(bufs) {
                return this.note_write(Poll::Ready(result));
            }
            ready!(this.poll_backlog(cx))?;
        }
        let result = match crate::sendfile::try_write_vectored(&this.socket, cx, bufs) {
            Some(result) => result,
            None => this.socket.poll_write_vectored(cx, bufs),
        };
        this.note_write(result)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper calls this when all its bytes are written, as far as it knows: the moment for an interim answer.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_backlog(cx))?;
        let Self { socket, conn, .. } = this;
        let written = conn.interim.poll_write(|bytes| {
            // Cannot be (see `interim`). If it were, a script could write into an answer: better none at all.
            if conn.state.is_answering() {
                debug_assert!(false, "an interim answer within an answer");
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            write_noted(socket, &conn.state, cx, bytes)
        });
        if written.is_ready() {
            conn.state.on_caught_up();
        }
        written
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.conn.state.verdict() != Verdict::Drop {
            ready!(this.poll_backlog(cx))?;
        }
        if !this.conn.state.has_unread_body() || this.conn.state.verdict() == Verdict::Drop {
            // Nothing is unread, so the close that follows sends everything written before it.
            return Poll::Ready(Ok(()));
        }
        if !this.write_closed {
            this.write_closed = true;
            let result = match &mut this.socket {
                Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
                Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            };
            ready!(result)?;
        }
        this.poll_linger(cx)
    }
}

//! State of an HTTP/1 connection: the socket, its input and its output. The connection's task uses it, and so does the
//! body of the current request, in the same task. The lock is therefore never contended.

use super::half_closed::HalfClosed;
use super::incoming::{Broken, Decoder};
use super::parse::{self, Framing, Parsed, Refused};
use crate::connection::Connection;
use crate::exchange::BodyError;
use crate::out::Out;
use crate::reads::{self, READ, READS};
use crate::serial_body::BodyReader;
use crate::socket::Socket;
use crate::state::Verdict;
use bytes::{Buf, Bytes, BytesMut};
use howdah_budget::Charge;
use http::StatusCode;
use std::io::{self, IoSlice};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

/// Response to a request whose header was not complete in time.
const RESPONSE_408: &[u8] = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Bytes of a header that are not charged to a budget.
const USUAL_HEAD: usize = 8 * 1024;

/// Maximum number of bytes per read of a long body. The memory becomes part of the body without a copy.
const LONG_READ: usize = 64 * 1024;

/// The next event of a connection.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // The usual one is the large one, and is moved once.
pub(super) enum Next {
    Request(Parsed),
    /// Invalid data, or a header that is too large.
    Refused(StatusCode),
    /// The header was not complete in time; one attempt was made to send a 408.
    TimedOut,
    /// The connection has no further request.
    End,
}

/// The socket with its buffers.
pub(super) struct Io {
    pub(super) socket: Socket,
    pub(super) out: Out,
    pub(super) connection: Arc<Connection>,
    input: BytesMut,
    /// Length of `input` at the last attempt to parse a head; the head was incomplete then.
    tried_at: usize,
    /// Charge for the bytes of a header beyond `USUAL_HEAD`.
    head_charge: Option<Charge>,
    /// The present request's body, and the number of that request.
    body: Decoder,
    request: u64,
    /// The client waits for `100 Continue` before it sends the body.
    continue_is_due: bool,
    /// The client has closed its side.
    at_end: bool,
    half_closed: Option<HalfClosed>,
    /// Total of written bytes when `half_closed` was last notified.
    noted: u64,
    responding: bool,
}

impl Io {
    /// `ahead` holds the bytes that were read while the protocol was detected.
    pub(super) fn new(socket: Socket, connection: Arc<Connection>, ahead: BytesMut) -> Self {
        Self {
            socket,
            out: Out::default(),
            connection,
            input: ahead,
            tried_at: 0,
            head_charge: None,
            body: Decoder::DONE,
            request: 0,
            continue_is_due: false,
            at_end: false,
            half_closed: None,
            noted: 0,
            responding: false,
        }
    }

    /// Received bytes that no request has consumed yet.
    pub(super) fn unparsed(&self) -> &[u8] {
        &self.input
    }

    /// The next request on the connection.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Next>> {
        if !self.input.is_empty()
            && let Some(next) = self.try_parse()
        {
            return Poll::Ready(Ok(next));
        }
        loop {
            match self.connection.state.verdict() {
                Verdict::None | Verdict::LastResponse | Verdict::Finish | Verdict::Idle => {}
                Verdict::HeaderTimeout => {
                    // One attempt: the connection is closed even if the client's socket takes none of it.
                    let _ = self.socket.try_write(RESPONSE_408);
                    return Poll::Ready(Ok(Next::TimedOut));
                }
                Verdict::Drop => return Poll::Ready(Ok(Next::End)),
            }
            if self.at_end {
                return Poll::Ready(Ok(Next::End));
            }
            let next = READS.with_borrow_mut(|space| {
                let mut buf = ReadBuf::new(space);
                ready!(self.socket.poll_read(cx, &mut buf))?;
                let came = buf.filled();
                if came.is_empty() {
                    self.at_end = true;
                    return Poll::Ready(Ok(Some(Next::End)));
                }
                Poll::Ready(Ok(self.take_in(came)))
            });
            match next {
                Poll::Ready(Ok(Some(next))) => return Poll::Ready(Ok(next)),
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    // Checked only after the read: a request that has arrived by now is handled.
                    let is_idle = self.connection.state.verdict() == Verdict::Idle && self.input.is_empty();
                    if is_idle && !self.socket.has_unread() {
                        return Poll::Ready(Ok(Next::End));
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Adds bytes to the head. A request that arrives whole, as most do, is parsed in the read buffer, without a copy
    /// to `input`.
    fn take_in(&mut self, came: &[u8]) -> Option<Next> {
        if self.input.is_empty()
            && let Ok(Some((parsed, length))) = parse::parse(came)
        {
            self.input.extend_from_slice(&came[length..]);
            return Some(self.begin(parsed));
        }
        self.input.extend_from_slice(came);
        self.try_parse()
    }

    /// Tries to parse a request at the beginning of `input`.
    fn try_parse(&mut self) -> Option<Next> {
        let before = self.tried_at;
        self.tried_at = self.input.len();
        // The header timeout also applies to pipelined requests.
        self.connection.state.on_read();
        if before == 0 || parse::may_be_complete(&self.input, before) {
            match parse::parse(&self.input) {
                Ok(Some((parsed, length))) => {
                    self.input.advance(length);
                    return Some(self.begin(parsed));
                }
                Ok(None) => {}
                Err(Refused::Bad) => return Some(Next::Refused(StatusCode::BAD_REQUEST)),
                Err(Refused::TooMany) => return Some(Next::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)),
            }
        }
        if self.input.len() >= self.connection.shared.head_buffer {
            return Some(Next::Refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
        }
        // A long head is charged, so that slow clients cannot hold memory outside the budget.
        if self.input.len() > USUAL_HEAD {
            let charge = self.head_charge.get_or_insert_with(|| self.connection.charge());
            if !charge.grow((self.input.len() - before.max(USUAL_HEAD)) as u64) {
                tracing::debug!(target: "howdah::conn", "no room for the request header in `http.memory`: closing");
                return Some(Next::End);
            }
        }
        None
    }

    fn begin(&mut self, parsed: Parsed) -> Next {
        (self.tried_at, self.head_charge) = (0, None);
        if self.input.is_empty() {
            // Frees the memory, which an emptied buffer would keep.
            self.input = BytesMut::new();
        }
        self.request += 1;
        self.responding = false;
        if let Some(half_closed) = &self.half_closed {
            half_closed.on_response(false);
        }
        self.continue_is_due = parsed.expects_continue && parsed.framing != Framing::None;
        self.body = match parsed.framing {
            Framing::None => Decoder::DONE,
            Framing::Length(length) => Decoder::Length(length),
            Framing::Chunked => Decoder::chunked(),
        };
        Next::Request(parsed)
    }

    /// The present request's number.
    pub(super) fn request(&self) -> u64 {
        self.request
    }
}

impl BodyReader for Io {
    fn poll_body(&mut self, cx: &mut Context<'_>, request: u64) -> Poll<Option<Result<Bytes, BodyError>>> {
        if request != self.request || self.responding {
            return Poll::Ready(Some(Err(Broken::Over.into())));
        }
        loop {
            match self.body.take(&mut self.input) {
                Ok(Some(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(None) if self.body.is_done() => return Poll::Ready(None),
                Ok(None) => {}
                Err(broken) => return Poll::Ready(Some(Err(broken.into()))),
            }
            if self.at_end {
                self.body = Decoder::Broken(Broken::Early);
                continue;
            }
            if std::mem::take(&mut self.continue_is_due) {
                self.out.put(|out| out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n"));
            }
            if let Poll::Ready(Err(error)) = self.out.poll_flush(&mut self.socket, &self.connection, cx) {
                return Poll::Ready(Some(Err(error.into())));
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) => self.at_end = true,
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
    }
}

impl Io {
    /// Reads input while a request is being handled.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Decoder::Length(left) = &self.body
            && *left >= READ as u64
        {
            // Reads into new memory that becomes part of the body without a copy.
            let room = usize::try_from(*left).unwrap_or(LONG_READ).min(LONG_READ);
            let mut memory = BytesMut::with_capacity(room);
            let read = ready!(self.socket.poll_read_into(cx, &mut memory));
            if self.input.is_empty() {
                self.input = memory;
            } else {
                self.input.extend_from_slice(&memory);
            }
            return Poll::Ready(read);
        }
        reads::poll_read(&mut self.socket, &mut self.input, cx)
    }

    /// Called while a request is being handled or its response waits for its source. Writes pending output and checks
    /// that the client is still connected. Ready with an error once the client has gone.
    pub(super) fn poll_meanwhile(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if !self.responding {
            self.take_informational();
        }
        if (!self.out.is_empty() || self.socket.is_behind())
            && let Poll::Ready(Err(error)) = self.out.poll_flush(&mut self.socket, &self.connection, cx)
        {
            return Poll::Ready(error);
        }
        if let Some(half_closed) = &self.half_closed
            && self.noted != self.out.total()
        {
            self.noted = self.out.total();
            half_closed.on_written();
        }
        // A reader of the body will notice that the client has closed. A client that has pipelined requests is assumed
        // to be connected.
        if !self.body.is_done() || !self.input.is_empty() {
            return Poll::Pending;
        }
        if !self.at_end {
            match ready!(self.poll_read(cx)) {
                Ok(0) => self.at_end = true,
                Ok(_) => return Poll::Pending,
                Err(error) => return Poll::Ready(error),
            }
        }
        if self.half_closed.is_none() {
            match HalfClosed::new(&self.socket, self.connection.clone(), self.responding) {
                Ok(half_closed) => self.half_closed = Some(half_closed),
                Err(error) => return Poll::Ready(error),
            }
        }
        match &mut self.half_closed {
            Some(half_closed) => half_closed.poll_gone(cx).map(|()| io::ErrorKind::ConnectionReset.into()),
            None => Poll::Pending,
        }
    }

    /// Writes pending output. Ready when all of it is written.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.out.poll_flush(&mut self.socket, &self.connection, cx)
    }

    /// Reads from an upgraded connection.
    pub(super) fn poll_upgraded_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.input.is_empty() {
            return self.socket.poll_read(cx, buf);
        }
        let ahead = self.input.len().min(buf.remaining());
        buf.put_slice(&self.input.split_to(ahead));
        if self.input.is_empty() {
            // Gives the memory back.
            self.input = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }

    /// Writes to an upgraded connection.
    pub(super) fn poll_upgraded_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = self.socket.poll_write_vectored(cx, &[IoSlice::new(bytes)]);
        self.connection.state.note_write(&result);
        if let Poll::Ready(Ok(written)) = &result
            && *written == bytes.len()
            && !self.socket.is_behind()
        {
            self.connection.state.on_caught_up();
        }
        result
    }

    /// Writes what the TLS session still buffers of an upgraded connection's output.
    pub(super) fn poll_upgraded_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.socket.is_behind() {
            let result = self.socket.poll_flush(cx).map_ok(|()| 0);
            self.connection.state.note_write(&result);
            ready!(result)?;
            self.connection.state.on_caught_up();
        }
        Poll::Ready(Ok(()))
    }

    /// Moves the pending informational responses to the output.
    pub(super) fn take_informational(&mut self) {
        let Self { out, connection, .. } = self;
        if connection.informational.is_any() {
            out.put(|bytes| connection.informational.take(bytes));
        }
    }

    /// Begins the response: of the request's body, only bytes already received are consumed from now on. Returns `true`
    /// if the body is complete.
    pub(super) fn begin_response(&mut self) -> bool {
        self.responding = true;
        if let Some(half_closed) = &self.half_closed {
            half_closed.on_response(true);
        }
        while let Ok(Some(_)) = self.body.take(&mut self.input) {}
        self.body.is_done()
    }

    /// `true` if a part of the request's body may still arrive.
    pub(super) fn has_unread_body(&self) -> bool {
        !self.body.is_done()
    }

    /// `true` if the client has pipelined further requests.
    pub(super) fn has_requests_ahead(&self) -> bool {
        !self.input.is_empty() || self.socket.has_unread()
    }

    /// Lingers until the client has closed (`reads::poll_linger`).
    pub(super) fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.state.set_lingering();
        self.input = BytesMut::new();
        reads::poll_linger(&mut self.socket, cx)
    }
}

impl Socket {
    fn poll_read_into(&mut self, cx: &mut Context<'_>, memory: &mut BytesMut) -> Poll<io::Result<usize>> {
        use tokio::io::AsyncReadExt as _;
        // The future has no state.
        match self {
            Self::Tcp(stream) => pin!(stream.read_buf(memory)).poll(cx),
            Self::Unix(stream) => pin!(stream.read_buf(memory)).poll(cx),
            Self::Tls(tls) => pin!(tls.read_buf(memory)).poll(cx),
        }
    }
}

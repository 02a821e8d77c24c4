//! State of a FastCGI connection: the socket, its input and its output. The connection's task uses it, and so does the
//! body of the current request, in the same task. The lock is therefore never contended.

use super::decoder::{Decoder, Event, Malformed, RequestStart};
use super::record::{EndStatus, write_end};
use crate::connection::Connection;
use crate::exchange::BodyError;
use crate::out::Out;
use crate::reads;
use crate::serial_body::BodyReader;
use crate::socket::Socket;
use crate::state::Verdict;
use bytes::{Bytes, BytesMut};
use howdah_budget::Charge;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Bytes of variables that are not charged to a budget.
const UNCHARGED_PARAMS: usize = 8 * 1024;
/// Pending output above which nothing is read: each record may need an answer, and answers to a peer that does not read
/// would pile up.
const MAX_UNREAD_OUTPUT: usize = 64 * 1024;

/// Next item on a connection.
pub(super) enum Next {
    Request(RequestStart),
    /// The variables of the request with this number exceed the limit.
    TooLarge(u16),
    /// The input violates the protocol.
    Malformed,
    /// The request's variables were not complete in time.
    TimedOut,
    /// The connection has no further request.
    End,
}

/// Reason why the web server no longer wants the response.
pub(super) enum Interrupted {
    /// The web server sent `ABORT_REQUEST`; the connection stays open.
    Aborted,
    Error(io::Error),
}

/// The socket with its buffers.
pub(super) struct Io {
    pub(super) socket: Socket,
    pub(super) out: Out,
    pub(super) connection: Arc<Connection>,
    input: BytesMut,
    decoder: Decoder,
    params_charge: Option<Charge>,
    /// The present request's number in the protocol, and its number on this connection.
    pub(super) id: u16,
    request: u64,
    /// Bytes of the body that the script may still read, by `CONTENT_LENGTH`. As in PHP-FPM, it does not get any
    /// excess.
    body_remaining: u64,
    aborted: bool,
    at_end: bool,
    responding: bool,
    /// The last request ended before the end of its body had arrived.
    is_cut_short: bool,
}

impl Io {
    pub(super) fn new(socket: Socket, connection: Arc<Connection>) -> Self {
        let shared = &connection.shared;
        Self {
            socket,
            out: Out::default(),
            input: BytesMut::new(),
            decoder: Decoder::new(shared.head_buffer, shared.max_connections),
            connection,
            params_charge: None,
            id: 0,
            request: 0,
            body_remaining: 0,
            aborted: false,
            at_end: false,
            responding: false,
            is_cut_short: false,
        }
    }

    /// Received bytes that have not been decoded yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.input
    }

    /// Decodes the next event from `input`.
    fn decode(&mut self) -> Result<Option<Event>, Malformed> {
        let Self { decoder, input, out, .. } = self;
        let mut event = Ok(None);
        out.put(|out| event = decoder.next(input, out));
        if input.is_empty() {
            // Frees the memory, which an emptied buffer would keep.
            *input = BytesMut::new();
        }
        event
    }

    /// The next request on the connection.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Next>> {
        loop {
            match self.decode() {
                Ok(Some(Event::Request(begun))) => {
                    self.begin(&begun);
                    return Poll::Ready(Ok(Next::Request(begun)));
                }
                Ok(Some(Event::TooLarge(id))) => return Poll::Ready(Ok(Next::TooLarge(id))),
                Ok(Some(_)) => continue,
                Ok(None) => {}
                Err(_) => return Poll::Ready(Ok(Next::Malformed)),
            }
            if !self.charge_params() {
                return Poll::Ready(Ok(Next::End));
            }
            if self.decoder.is_mid_record() || !self.input.is_empty() {
                self.connection.state.on_read();
            }
            match self.connection.state.verdict() {
                Verdict::None | Verdict::LastResponse | Verdict::Finish | Verdict::Idle => {}
                Verdict::HeaderTimeout => return Poll::Ready(Ok(Next::TimedOut)),
                Verdict::Drop => return Poll::Ready(Ok(Next::End)),
            }
            if self.at_end {
                return Poll::Ready(Ok(Next::End));
            }
            if !self.out.is_empty() {
                ready!(self.poll_flush(cx))?;
            }
            match self.poll_read(cx) {
                Poll::Ready(Ok(0)) => self.at_end = true,
                Poll::Ready(Ok(_)) => {}
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

    /// Charges incomplete variables. Returns `false` if the budget has no room for them.
    fn charge_params(&mut self) -> bool {
        let kept = self.decoder.buffered_params() as u64;
        if kept <= UNCHARGED_PARAMS as u64 {
            return true;
        }
        let charge = self.params_charge.get_or_insert_with(|| self.connection.charge());
        let missing = kept.saturating_sub(charge.bytes());
        if !charge.grow(missing) {
            tracing::debug!(target: "howdah::conn", "no room for the request's variables in `http.memory`: closing");
            return false;
        }
        true
    }

    fn begin(&mut self, begun: &RequestStart) {
        self.params_charge = None;
        self.id = begun.id;
        self.request += 1;
        self.body_remaining = super::head::body_length(&begun.params).unwrap_or(u64::MAX);
        (self.aborted, self.responding) = (false, false);
    }

    /// The present request's number on this connection.
    pub(super) fn request(&self) -> u64 {
        self.request
    }

    /// `true` if the whole body has arrived, or there is none.
    pub(super) fn is_body_complete(&mut self) -> bool {
        if self.body_remaining == 0 && self.input.len() >= super::record::HEADER {
            // The next record is the body's end, or excess that the script does not get.
            let _ = self.skip_received_body();
        }
        self.decoder.is_body_complete()
    }

    /// Skips the part of the body that has arrived.
    fn skip_received_body(&mut self) -> Result<(), Malformed> {
        while !self.decoder.is_body_complete() {
            match self.decode()? {
                Some(Event::Abort) => self.aborted = true,
                Some(_) => {}
                None => break,
            }
        }
        Ok(())
    }
}

impl BodyReader for Io {
    fn poll_body(&mut self, cx: &mut Context<'_>, request: u64) -> Poll<Option<Result<Bytes, BodyError>>> {
        if request != self.request || self.responding {
            return Poll::Ready(Some(Err("the body can no longer be read: the response has begun".into())));
        }
        loop {
            if self.decoder.is_body_complete() {
                return Poll::Ready(None);
            }
            match self.decode() {
                Ok(Some(Event::Body(mut data))) => {
                    data.truncate(usize::try_from(self.body_remaining).unwrap_or(usize::MAX));
                    self.body_remaining -= data.len() as u64;
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                    continue;
                }
                Ok(Some(Event::BodyEnd)) => return Poll::Ready(None),
                Ok(Some(Event::Abort)) => {
                    self.aborted = true;
                    return Poll::Ready(Some(Err("the web server has aborted the request".into())));
                }
                Ok(Some(_)) => continue,
                Ok(None) => {}
                Err(_) => return Poll::Ready(Some(Err("the web server broke the FastCGI protocol".into()))),
            }
            if self.at_end {
                return Poll::Ready(Some(Err("the connection ended within the body".into())));
            }
            if let Err(error) = ready!(self.poll_output(cx)) {
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
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        reads::poll_read(&mut self.socket, &mut self.input, cx)
    }

    /// Called while a request is being handled or its response waits for its source. Writes pending output and checks
    /// that the response is still wanted. A web server that has closed its side is gone (specification, section 5.4).
    pub(super) fn poll_interruption(&mut self, cx: &mut Context<'_>) -> Poll<Interrupted> {
        loop {
            if self.aborted {
                return Poll::Ready(Interrupted::Aborted);
            }
            // Otherwise the reader of the body notices the end.
            if self.responding || self.decoder.is_body_complete() {
                match self.decode() {
                    Ok(Some(Event::Abort)) => {
                        self.aborted = true;
                        continue;
                    }
                    Ok(Some(_)) => continue,
                    Ok(None) => {}
                    Err(_) => return Poll::Ready(Interrupted::Error(io::ErrorKind::InvalidData.into())),
                }
            }
            if let Err(error) = ready!(self.poll_output(cx)) {
                return Poll::Ready(Interrupted::Error(error));
            }
            if !self.responding && !self.decoder.is_body_complete() {
                return Poll::Pending;
            }
            match ready!(self.poll_read(cx)) {
                Ok(0) => return Poll::Ready(Interrupted::Error(io::ErrorKind::ConnectionReset.into())),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Interrupted::Error(error)),
            }
        }
    }

    /// Writes pending output. Ready when so little of it is left that input may be read.
    fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.out.is_empty() {
            return Poll::Ready(Ok(()));
        }
        match self.poll_flush(cx) {
            Poll::Pending if self.out.waiting() <= MAX_UNREAD_OUTPUT => Poll::Ready(Ok(())),
            written => written,
        }
    }

    /// Writes pending output. Ready when all of it is written.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.out.poll_flush(&mut self.socket, &self.connection, cx)
    }

    /// Begins the response: the request's body is not read any further. Returns `true` unless a part of the announced
    /// body is missing.
    pub(super) fn begin_response(&mut self) -> bool {
        self.responding = true;
        let is_wanted = self.body_remaining > 0 && self.body_remaining != u64::MAX;
        let _ = self.skip_received_body();
        self.decoder.is_body_complete() || !is_wanted
    }

    /// Writes the request's end; the next one may begin.
    pub(super) fn end(&mut self) {
        let id = self.id;
        self.out.put(|out| write_end(out, id, EndStatus::Complete));
        self.is_cut_short = !self.decoder.is_body_complete();
        self.decoder.finish();
    }

    /// `true` if the web server may still be sending something.
    pub(super) fn has_unread(&self) -> bool {
        self.is_cut_short || !self.decoder.is_body_complete() || !self.input.is_empty() || self.socket.has_unread()
    }

    /// Lingers until the web server has closed (`reads::poll_linger`).
    pub(super) fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.connection.state.set_lingering();
        self.input = BytesMut::new();
        reads::poll_linger(&mut self.socket, cx)
    }
}

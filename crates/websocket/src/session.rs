//! A connection to one client, in the task of its HTTP connection: reads frames, passes messages to the handler one
//! after the other, sends queued messages, and closes.
//!
//! An idle connection has no buffer: data is read into a buffer of the thread. A client may be a few messages ahead of
//! the handler; beyond that its socket is not read.

use crate::close::Close;
use crate::connections::{Next, Registered};
use crate::ending::{End, Unfinished, failure};
use crate::events::{Event, Events, Sent};
use crate::frames::{Incoming, Receiver};
use crate::{MAX_MESSAGE, message};
use bytes::{Buf, Bytes};
use howdah_budget::Charge;
use howdah_observe::Metrics;
use howdah_protocol::{Upgrade, Upgraded};
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead as _, AsyncWrite as _, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Maximum bytes per read.
const READ: usize = 16 * 1024;
/// Rounds of reads and writes before the task yields to the thread's other connections.
const ROUNDS: u32 = 16;
/// Maximum number of messages, and of their bytes, that may wait for the handler.
const MAX_AHEAD: usize = 16;
const MAX_AHEAD_BYTES: usize = 64 * 1024;
/// Silence after which a client gets a ping. Less than the 30 s after which a silent QUIC connection ends.
const PING_AFTER: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(20) };
/// Silence after which a client counts as gone.
const SILENCE: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(75) };
/// Maximum time for the client to confirm a close.
const CLOSING: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(5) };
/// Maximum time over which connections are closed when the server stops, so that clients do not all reconnect at once.
const MAX_SPREAD: Duration = Duration::from_secs(10);

thread_local! {
    static READS: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into());
}

/// A connection whose handshake has been accepted.
pub struct Session {
    unfinished: Unfinished,
    deflate: bool,
    metrics: Arc<Metrics>,
    grace: Duration,
    charge: Charge,
}

impl Session {
    /// A connection with the handler of its events. `deflate`: permessage-deflate was negotiated; `grace`: the server's
    /// grace time at a shutdown; `charge`: for incoming messages.
    #[must_use]
    pub fn new(
        registered: Registered,
        events: Box<dyn Events>,
        deflate: bool,
        metrics: Arc<Metrics>,
        grace: Duration,
        charge: Charge,
    ) -> Self {
        let unfinished = Unfinished(Some(End::new(registered, events)));
        Self { unfinished, deflate, metrics, grace, charge }
    }
}

impl Upgrade for Session {
    fn run(self: Box<Self>, client: Box<dyn Upgraded>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let Self { unfinished, deflate, metrics, grace, charge } = *self;
        let mut talk = Talk {
            client,
            receiver: Receiver::new(MAX_MESSAGE, deflate),
            deflate,
            ahead: Bytes::new(),
            ahead_bytes: 0,
            charge,
            charged: 0,
            out: Bytes::new(),
            unflushed: false,
            pong: None,
            closing: Closing::No,
            metrics,
            grace,
            leaves_at: None,
            until: None,
            heard: Instant::now(),
            pinged: false,
            broken: false,
            timer: Box::pin(sleep_until(Instant::now() + PING_AFTER)),
            unfinished,
        };
        Box::pin(async move {
            let error = std::future::poll_fn(|cx| talk.poll(cx)).await.err();
            let end = talk.unfinished.0.take();
            drop(talk);
            if let Some(end) = end {
                end.finish(error).await;
            }
        })
    }
}

/// Progress of the closing handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Closing {
    No,
    /// This close frame is to be sent, or is being sent (`taken`); `confirmed`: the client has sent one.
    Sending {
        close: Close,
        confirmed: bool,
        taken: bool,
    },
    /// A close frame was sent; the client has not confirmed it yet.
    Waiting,
    /// The client violated the protocol, so a confirmation could not be recognized in its data. The server shuts down
    /// its side and drops input until the client closes: with unread input, a close could keep the close frame from the
    /// client.
    Lingering {
        ended: bool,
    },
    /// Both sides have closed.
    Over,
}

/// The open connection.
struct Talk {
    client: Box<dyn Upgraded>,
    receiver: Receiver,
    deflate: bool,
    /// Bytes that were read and not parsed yet, because too many messages wait for the handler.
    ahead: Bytes,
    /// Bytes of messages that wait for the handler.
    ahead_bytes: usize,
    /// Charge for waiting messages and for an incomplete one.
    charge: Charge,
    charged: usize,
    /// The frame that is being sent.
    out: Bytes,
    unflushed: bool,
    /// The pong that answers the last ping.
    pong: Option<Bytes>,
    closing: Closing,
    metrics: Arc<Metrics>,
    grace: Duration,
    /// Time at which the connection is closed because the server stops.
    leaves_at: Option<Instant>,
    /// Time at which a closing connection is dropped.
    until: Option<Instant>,
    /// Time of the last input.
    heard: Instant,
    pinged: bool,
    /// The client violated the protocol.
    broken: bool,
    timer: Pin<Box<Sleep>>,
    unfinished: Unfinished,
}

impl Talk {
    /// Runs the connection until its end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        for _ in 0..ROUNDS {
            self.look_at_server();
            let handled = self.poll_handler(cx);
            let written = self.poll_write(cx)?;
            if written.is_pending() {
                self.look_at_link();
            }
            if self.closing == (Closing::Lingering { ended: false }) && written.is_ready() {
                let _ = Pin::new(&mut self.client).poll_shutdown(cx);
                self.closing = Closing::Lingering { ended: true };
            }
            if self.closing == Closing::Over && written.is_ready() {
                // The client has closed, so errors of the shutdown do not matter.
                return Pin::new(&mut self.client).poll_shutdown(cx).map(|_| Ok(()));
            }
            let read = self.poll_read(cx)?;
            self.settle();
            let timed = self.poll_timer(cx)?;
            if handled.is_pending() && read.is_pending() && timed.is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Ready if a message was handled or its handling has begun.
    fn poll_handler(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(end) = &mut self.unfinished.0 else { return Poll::Pending };
        if end.handling.is_none() {
            let Some((data, binary)) = end.inbox.pop_front() else { return Poll::Pending };
            self.ahead_bytes -= data.len();
            end.begin(Event::Message(data, binary));
        }
        let Some(handling) = &mut end.handling else { return Poll::Pending };
        let status = ready!(handling.as_mut().poll(cx));
        end.handling = None;
        if let Some(close) = failure(status) {
            end.inbox.clear();
            self.ahead_bytes = 0;
            self.close(close);
        }
        Poll::Ready(())
    }

    /// Starts the closing handshake, unless it has started already.
    fn close(&mut self, close: Close) {
        if self.closing == Closing::No {
            self.note_close(&close);
            self.limit_closing();
            self.closing = Closing::Sending { close, confirmed: false, taken: false };
        }
    }

    fn limit_closing(&mut self) {
        let until = *self.until.get_or_insert_with(|| Instant::now() + CLOSING);
        self.timer.as_mut().reset(until);
    }

    /// Called while the client reads nothing: checks for a close, such as that of a client that is too slow.
    fn look_at_link(&mut self) {
        if self.closing == Closing::No
            && self.until.is_none()
            && let Some(close) = self.unfinished.0.as_ref().and_then(|end| end.registered.link.closes())
        {
            self.note_close(&close);
            self.limit_closing();
        }
    }

    fn note_close(&mut self, close: &Close) {
        if let Some(end) = &mut self.unfinished.0 {
            end.close = (close.number(), close.reason.clone());
        }
    }

    /// Ready if input was processed.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            if self.is_full() {
                return Poll::Pending;
            }
            let ahead = std::mem::take(&mut self.ahead);
            let rest = self.take(&ahead);
            self.ahead = ahead.slice(ahead.len() - rest..);
            return Poll::Ready(Ok(()));
        }
        if self.is_full() || matches!(self.closing, Closing::Over | Closing::Sending { confirmed: true, .. }) {
            return Poll::Pending;
        }
        READS.with_borrow_mut(|space| {
            let mut buf = ReadBuf::new(space);
            ready!(Pin::new(&mut self.client).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            (self.heard, self.pinged) = (Instant::now(), false);
            let rest = self.take(buf.filled());
            self.ahead = Bytes::copy_from_slice(&buf.filled()[buf.filled().len() - rest..]);
            Poll::Ready(Ok(()))
        })
    }

    /// Adjusts the charge to the memory that the client's messages use. If the budget has no room, the connection is
    /// closed.
    fn settle(&mut self) {
        let held = self.receiver.held() + self.ahead_bytes + self.ahead.len();
        if held < self.charged {
            self.charge.shrink((self.charged - held) as u64);
        } else if held > self.charged && !self.charge.grow((held - self.charged) as u64) {
            self.receiver = Receiver::new(MAX_MESSAGE, self.deflate);
            self.broken = true;
            return self.close(Close::of(Close::LATER, "the server has no memory left"));
        }
        self.charged = held;
    }

    /// `true` if reading is to pause until the handler catches up.
    fn is_full(&self) -> bool {
        let waiting = self.unfinished.0.as_ref().map_or(0, |end| end.inbox.len());
        self.closing == Closing::No && (waiting >= MAX_AHEAD || self.ahead_bytes >= MAX_AHEAD_BYTES)
    }

    /// Parses input. Returns the number of bytes left over.
    fn take(&mut self, mut input: &[u8]) -> usize {
        while !input.is_empty() && !self.is_full() {
            if self.closing != Closing::No {
                return self.await_confirmation(input);
            }
            match self.receiver.take(&mut input) {
                Ok(None) => {}
                Ok(Some(Incoming::Message(data, binary))) => {
                    self.metrics.websocket_received.inc();
                    self.ahead_bytes += data.len();
                    if let Some(end) = &mut self.unfinished.0 {
                        end.messages += 1;
                        end.inbox.push_back((data, binary));
                    }
                }
                Ok(Some(Incoming::Ping(payload))) => self.pong = Some(message::pong(&payload)),
                Ok(Some(Incoming::Pong)) => {}
                Ok(Some(Incoming::Close(close))) => {
                    self.note_close(&close);
                    self.limit_closing();
                    self.closing = Closing::Sending { close, confirmed: true, taken: false };
                    return 0;
                }
                Err((code, reason)) => {
                    self.close(Close::of(code, reason));
                    self.broken = true;
                    return 0;
                }
            }
        }
        input.len()
    }

    /// While the server closes: ignores everything from the client but its close frame.
    fn await_confirmation(&mut self, mut input: &[u8]) -> usize {
        while !self.broken {
            match self.receiver.take(&mut input) {
                Ok(None) => return 0,
                Ok(Some(Incoming::Close(_))) => {
                    match &mut self.closing {
                        Closing::Sending { confirmed, .. } => *confirmed = true,
                        closing => *closing = Closing::Over,
                    }
                    return 0;
                }
                Ok(Some(_)) => {}
                Err(_) => return 0,
            }
        }
        0
    }

    /// Writes pending output. Ready when all of it is written.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        loop {
            while !self.out.is_empty() {
                let Poll::Ready(written) = Pin::new(&mut self.client).poll_write(cx, &self.out)? else {
                    return Ok(Poll::Pending);
                };
                if written == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                self.out.advance(written);
                self.unflushed = true;
            }
            self.out = Bytes::new();
            if let Some(next) = self.next_frame(cx) {
                self.out = next;
                continue;
            }
            if self.unflushed {
                if Pin::new(&mut self.client).poll_flush(cx)?.is_pending() {
                    return Ok(Poll::Pending);
                }
                self.unflushed = false;
            }
            return Ok(Poll::Ready(()));
        }
    }

    /// The next frame to send. Called once the previous frame is written.
    fn next_frame(&mut self, cx: &mut Context<'_>) -> Option<Bytes> {
        match &mut self.closing {
            Closing::Sending { confirmed, taken: true, .. } => {
                self.closing = match (*confirmed, self.broken) {
                    (true, _) => Closing::Over,
                    (false, true) => Closing::Lingering { ended: false },
                    (false, false) => Closing::Waiting,
                };
                return None;
            }
            Closing::Sending { close, taken, .. } => {
                *taken = true;
                return Some(message::close(close));
            }
            Closing::Waiting | Closing::Lingering { .. } | Closing::Over => return None,
            Closing::No => {}
        }
        if let Some(pong) = self.pong.take() {
            return Some(pong);
        }
        match self.unfinished.0.as_ref()?.registered.link.next(cx.waker()) {
            Next::Message(update) => {
                self.metrics.websocket_sent.inc();
                Some(message::encoded(&update, self.deflate))
            }
            Next::Close(close) => {
                self.close(close);
                self.next_frame(cx)
            }
            Next::Nothing => self.next_of_application(cx),
        }
    }

    /// The next frame from an application that holds the connection itself.
    fn next_of_application(&mut self, cx: &mut Context<'_>) -> Option<Bytes> {
        loop {
            let Poll::Ready(sent) = self.unfinished.0.as_mut()?.events.poll_sent(cx) else { return None };
            match sent {
                Sent::Message(update) => {
                    self.metrics.websocket_sent.inc();
                    return Some(message::encoded(&update, self.deflate));
                }
                Sent::Close(close) => {
                    self.close(close);
                    return self.next_frame(cx);
                }
                Sent::Leave => self.leave(),
            }
        }
    }

    /// Notices that the server stops.
    fn look_at_server(&mut self) {
        if self.closing == Closing::No && self.client.is_to_end() {
            self.leave();
        }
    }

    /// Closes the connection after a random part of the grace time.
    fn leave(&mut self) {
        if self.leaves_at.is_none() {
            let spread = (self.grace / 2).min(MAX_SPREAD);
            let at = Instant::now() + spread.mul_f64(fastrand::f64());
            self.leaves_at = Some(at);
            self.timer.as_mut().reset(at);
        }
    }

    /// Ready if a timer has expired and was acted on.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.timer.as_mut().poll(cx));
        let now = Instant::now();
        if let Some(until) = self.until {
            if now >= until {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.timer.as_mut().reset(until);
            return Poll::Ready(Ok(()));
        }
        if self.leaves_at.is_some_and(|at| now >= at) {
            self.leaves_at = None;
            self.close(Close::AWAY);
            return Poll::Ready(Ok(()));
        }
        let silent = now.saturating_duration_since(self.heard);
        if silent >= SILENCE && !self.is_full() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if silent >= PING_AFTER && !self.pinged && self.closing == Closing::No {
            self.pinged = true;
            self.pong.get_or_insert_with(message::ping);
        }
        let next = if self.pinged || self.is_full() { SILENCE } else { PING_AFTER };
        let at = (self.heard + next).max(now + Duration::from_millis(10));
        self.timer.as_mut().reset(self.leaves_at.map_or(at, |leaves| at.min(leaves)));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;

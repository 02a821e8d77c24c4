//! A connection to one client, in one task: reads frames, passes messages to the handler one after the other, sends
//! queued messages, and closes.
//!
//! An idle connection has no buffer: data is read into a buffer of the thread. A client may be a few messages ahead of
//! the handler; beyond that its socket is not read.

use crate::close::Close;
use crate::connections::{Next, Registered};
use crate::ending::{Teardown, TeardownGuard, failure};
use crate::events::{Event, Events, Outgoing};
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
const READ_SIZE: usize = 16 * 1024;
/// Rounds of reads and writes before the task yields to the thread's other connections.
const MAX_ROUNDS: u32 = 16;
/// Maximum number of messages, and of their bytes, that may wait for the handler.
const MAX_QUEUED_MESSAGES: usize = 16;
const MAX_QUEUED_BYTES: usize = 64 * 1024;
/// Silence after which a client gets a ping. Less than the 30 s after which a silent QUIC connection ends.
const PING_AFTER: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(20) };
/// Silence after which a client counts as gone.
const SILENCE_TIMEOUT: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(75) };
/// Maximum time for the client to confirm a close.
const CLOSE_TIMEOUT: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(5) };
/// Maximum time over which connections are closed when the server stops, so that clients do not all reconnect at once.
const MAX_SPREAD: Duration = Duration::from_secs(10);

thread_local! {
    static READ_BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_SIZE].into());
}

/// A connection whose handshake has been accepted.
pub struct Session {
    teardown: TeardownGuard,
    deflate: bool,
    metrics: Arc<Metrics>,
    grace: Duration,
    charge: Charge,
}

impl Session {
    /// A connection with the handler of its events. `deflate`: permessage-deflate was negotiated; `grace`: the server's
    /// grace time at a shutdown; `charge`: for incoming messages.
    pub fn new(
        registered: Registered,
        events: Box<dyn Events>,
        deflate: bool,
        metrics: Arc<Metrics>,
        grace: Duration,
        charge: Charge,
    ) -> Self {
        let teardown = TeardownGuard(Some(Teardown::new(registered, events)));
        Self { teardown, deflate, metrics, grace, charge }
    }
}

impl Upgrade for Session {
    fn run(self: Box<Self>, client: Box<dyn Upgraded>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let Self { teardown, deflate, metrics, grace, charge } = *self;
        let mut task = SessionTask {
            client,
            receiver: Receiver::new(MAX_MESSAGE, deflate),
            deflate,
            unparsed: Bytes::new(),
            queued_bytes: 0,
            charge,
            charged: 0,
            out: Bytes::new(),
            unflushed: false,
            pong: None,
            closing: Closing::NotStarted,
            metrics,
            grace,
            close_at: None,
            closing_deadline: None,
            last_input: Instant::now(),
            ping_sent: false,
            broken: false,
            timer: Box::pin(sleep_until(Instant::now() + PING_AFTER)),
            teardown,
        };
        Box::pin(async move {
            let error = std::future::poll_fn(|cx| task.poll(cx)).await.err();
            let end = task.teardown.0.take();
            drop(task);
            if let Some(end) = end {
                end.finish(error).await;
            }
        })
    }
}

/// Progress of the closing handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Closing {
    NotStarted,
    /// This close frame must be sent, or is being sent (`sent`); `confirmed`: the client has sent one.
    Sending {
        close: Close,
        confirmed: bool,
        sent: bool,
    },
    /// A close frame was sent; the client has not confirmed it yet.
    AwaitingConfirmation,
    /// The client's data is no longer parsed, so a confirmation could not be recognized in it. The server shuts down
    /// its side and drops input until the client closes: with unread input, a close could keep the close frame from the
    /// client.
    Lingering {
        ended: bool,
    },
    /// Both sides have closed.
    Complete,
}

/// The open connection.
struct SessionTask {
    client: Box<dyn Upgraded>,
    receiver: Receiver,
    deflate: bool,
    /// Bytes that were read and not parsed yet, because too many messages wait for the handler.
    unparsed: Bytes,
    /// Bytes of messages that wait for the handler.
    queued_bytes: usize,
    /// Charge for waiting messages and for an incomplete one.
    charge: Charge,
    charged: usize,
    /// The frame that is being sent.
    out: Bytes,
    unflushed: bool,
    /// The pong that answers the client's last ping, or else this server's ping.
    pong: Option<Bytes>,
    closing: Closing,
    metrics: Arc<Metrics>,
    grace: Duration,
    /// Time at which the connection is closed because the server stops, or the client must connect again.
    close_at: Option<Instant>,
    /// Time at which a closing connection is dropped.
    closing_deadline: Option<Instant>,
    /// Time of the last input.
    last_input: Instant,
    ping_sent: bool,
    /// The client's data is no longer parsed: it violated the protocol, or the server has no memory for it.
    broken: bool,
    timer: Pin<Box<Sleep>>,
    teardown: TeardownGuard,
}

impl SessionTask {
    /// Runs the connection until its end.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        for _ in 0..MAX_ROUNDS {
            self.check_shutdown();
            let handled = self.poll_handler(cx);
            let written = self.poll_write(cx)?;
            if written.is_pending() {
                self.check_link();
            }
            if self.closing == (Closing::Lingering { ended: false }) && written.is_ready() {
                let _ = Pin::new(&mut self.client).poll_shutdown(cx);
                self.closing = Closing::Lingering { ended: true };
            }
            if self.closing == Closing::Complete && written.is_ready() {
                // The client has closed, so errors of the shutdown do not matter.
                return Pin::new(&mut self.client).poll_shutdown(cx).map(|_| Ok(()));
            }
            let read = self.poll_read(cx)?;
            self.update_charge();
            let timed = self.poll_timer(cx)?;
            if handled.is_pending() && read.is_pending() && timed.is_pending() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Ready if a message was handled.
    fn poll_handler(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(end) = &mut self.teardown.0 else { return Poll::Pending };
        if end.handling.is_none() {
            let Some((data, binary)) = end.inbox.pop_front() else { return Poll::Pending };
            self.queued_bytes -= data.len();
            end.begin(Event::Message(data, binary));
        }
        let Some(handling) = &mut end.handling else { return Poll::Pending };
        let status = ready!(handling.as_mut().poll(cx));
        end.handling = None;
        if let Some(close) = failure(status) {
            end.inbox.clear();
            self.queued_bytes = 0;
            self.close(close);
        }
        Poll::Ready(())
    }

    /// Starts the closing handshake, unless it has started already.
    fn close(&mut self, close: Close) {
        if self.closing == Closing::NotStarted {
            self.record_close(&close);
            self.limit_close_time();
            self.closing = Closing::Sending { close, confirmed: false, sent: false };
        }
    }

    fn limit_close_time(&mut self) {
        let closing_deadline = *self.closing_deadline.get_or_insert_with(|| Instant::now() + CLOSE_TIMEOUT);
        self.timer.as_mut().reset(closing_deadline);
    }

    /// Called while output waits for the client: checks for a close, such as that of a client that is too slow.
    fn check_link(&mut self) {
        if self.closing == Closing::NotStarted
            && self.closing_deadline.is_none()
            && let Some(close) = self.teardown.0.as_ref().and_then(|end| end.registered.link.pending_close())
        {
            self.record_close(&close);
            self.limit_close_time();
        }
    }

    fn record_close(&mut self, close: &Close) {
        if let Some(end) = &mut self.teardown.0 {
            end.close = (close.number(), close.reason.clone());
        }
    }

    /// Ready if input was processed.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.unparsed.is_empty() {
            if self.is_full() {
                return Poll::Pending;
            }
            let unparsed = std::mem::take(&mut self.unparsed);
            let rest = self.parse(&unparsed);
            self.unparsed = unparsed.slice(unparsed.len() - rest..);
            return Poll::Ready(Ok(()));
        }
        if self.is_full() || matches!(self.closing, Closing::Complete | Closing::Sending { confirmed: true, .. }) {
            return Poll::Pending;
        }
        READ_BUFFER.with_borrow_mut(|space| {
            let mut buf = ReadBuf::new(space);
            ready!(Pin::new(&mut self.client).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            (self.last_input, self.ping_sent) = (Instant::now(), false);
            let rest = self.parse(buf.filled());
            self.unparsed = Bytes::copy_from_slice(&buf.filled()[buf.filled().len() - rest..]);
            Poll::Ready(Ok(()))
        })
    }

    /// Adjusts the charge to the memory that the client's messages use. If the budget has no room, the connection is
    /// closed.
    fn update_charge(&mut self) {
        let buffered_bytes = self.receiver.buffered_bytes() + self.queued_bytes + self.unparsed.len();
        if buffered_bytes < self.charged {
            self.charge.shrink((self.charged - buffered_bytes) as u64);
        } else if buffered_bytes > self.charged && !self.charge.grow((buffered_bytes - self.charged) as u64) {
            self.receiver = Receiver::new(MAX_MESSAGE, self.deflate);
            self.broken = true;
            return self.close(Close::of(Close::TRY_AGAIN_LATER, "the server has no memory left"));
        }
        self.charged = buffered_bytes;
    }

    /// `true` if reading is to pause until the handler catches up.
    fn is_full(&self) -> bool {
        let waiting = self.teardown.0.as_ref().map_or(0, |end| end.inbox.len());
        self.closing == Closing::NotStarted && (waiting >= MAX_QUEUED_MESSAGES || self.queued_bytes >= MAX_QUEUED_BYTES)
    }

    /// Parses input. Returns the number of bytes left over.
    fn parse(&mut self, mut input: &[u8]) -> usize {
        while !input.is_empty() && !self.is_full() {
            if self.closing != Closing::NotStarted {
                return self.await_confirmation(input);
            }
            match self.receiver.take(&mut input) {
                Ok(None) => {}
                Ok(Some(Incoming::Message(data, binary))) => {
                    self.metrics.websocket_received.inc();
                    self.queued_bytes += data.len();
                    if let Some(end) = &mut self.teardown.0 {
                        end.messages += 1;
                        end.inbox.push_back((data, binary));
                    }
                }
                Ok(Some(Incoming::Ping(payload))) => self.pong = Some(message::pong(&payload)),
                Ok(Some(Incoming::Pong)) => {}
                Ok(Some(Incoming::Close(close))) => {
                    self.record_close(&close);
                    self.limit_close_time();
                    self.closing = Closing::Sending { close, confirmed: true, sent: false };
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
                        closing => *closing = Closing::Complete,
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
            Closing::Sending { confirmed, sent: true, .. } => {
                self.closing = match (*confirmed, self.broken) {
                    (true, _) => Closing::Complete,
                    (false, true) => Closing::Lingering { ended: false },
                    (false, false) => Closing::AwaitingConfirmation,
                };
                return None;
            }
            Closing::Sending { close, sent, .. } => {
                *sent = true;
                return Some(message::close(close));
            }
            Closing::AwaitingConfirmation | Closing::Lingering { .. } | Closing::Complete => return None,
            Closing::NotStarted => {}
        }
        if let Some(pong) = self.pong.take() {
            return Some(pong);
        }
        match self.teardown.0.as_ref()?.registered.link.next(cx.waker()) {
            Next::Message(update) => {
                self.metrics.websocket_sent.inc();
                Some(message::encoded(&update, self.deflate))
            }
            Next::Close(close) => {
                self.close(close);
                self.next_frame(cx)
            }
            Next::Reconnect => {
                self.schedule_close();
                self.next_frame(cx)
            }
            Next::Idle => self.next_application_frame(cx),
        }
    }

    /// The next frame from an application that holds the connection itself.
    fn next_application_frame(&mut self, cx: &mut Context<'_>) -> Option<Bytes> {
        loop {
            let Poll::Ready(sent) = self.teardown.0.as_mut()?.events.poll_outgoing(cx) else { return None };
            match sent {
                Outgoing::Message(update) => {
                    self.metrics.websocket_sent.inc();
                    return Some(message::encoded(&update, self.deflate));
                }
                Outgoing::Close(close) => {
                    self.close(close);
                    return self.next_frame(cx);
                }
                Outgoing::Reconnect => self.schedule_close(),
            }
        }
    }

    /// Notices that the server stops.
    fn check_shutdown(&mut self) {
        if self.closing == Closing::NotStarted && self.client.is_to_end() {
            self.schedule_close();
        }
    }

    /// Closes the connection after a random time of at most half the grace time and `MAX_SPREAD`.
    fn schedule_close(&mut self) {
        if self.close_at.is_none() {
            let spread = (self.grace / 2).min(MAX_SPREAD);
            let at = Instant::now() + spread.mul_f64(fastrand::f64());
            self.close_at = Some(at);
            self.timer.as_mut().reset(at);
        }
    }

    /// Ready if a timer has expired and was acted on.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.timer.as_mut().poll(cx));
        let now = Instant::now();
        if let Some(closing_deadline) = self.closing_deadline {
            if now >= closing_deadline {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.timer.as_mut().reset(closing_deadline);
            return Poll::Ready(Ok(()));
        }
        if self.close_at.is_some_and(|at| now >= at) {
            self.close_at = None;
            self.close(Close::GOING_AWAY);
            return Poll::Ready(Ok(()));
        }
        let silent = now.saturating_duration_since(self.last_input);
        if silent >= SILENCE_TIMEOUT && !self.is_full() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if silent >= PING_AFTER && !self.ping_sent && self.closing == Closing::NotStarted {
            self.ping_sent = true;
            self.pong.get_or_insert_with(message::ping);
        }
        let next = if self.ping_sent || self.is_full() { SILENCE_TIMEOUT } else { PING_AFTER };
        let at = (self.last_input + next).max(now + Duration::from_millis(10));
        self.timer.as_mut().reset(self.close_at.map_or(at, |leaves| at.min(leaves)));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;

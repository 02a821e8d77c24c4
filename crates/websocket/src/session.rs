//! A connection to one client, in the task of its HTTP connection: reads frames, has messages handled one after the other,
//! sends what waits for the client, and closes.
//!
//! While nothing moves there is no buffer: what is read lies in memory of the thread. The client may be ahead of the handler
//! by a few messages; then it is not read from.

use crate::close::Close;
use crate::connections::{Next, Registered};
use crate::ending::{End, Unfinished, failure};
use crate::events::{Event, Events};
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

/// Bytes that one read takes.
const READ: usize = 16 * 1024;
/// Reads and writes before other connections of the thread get a turn.
const ROUNDS: u32 = 16;
/// Messages, and bytes of them, that may wait for the handler.
const MAX_AHEAD: usize = 16;
const MAX_AHEAD_BYTES: usize = 64 * 1024;
/// A client that is silent for so long gets a ping.
const PING_AFTER: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(30) };
/// A client that is silent for so long has gone.
const SILENCE: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(75) };
/// Maximum time for the client to confirm a close.
const CLOSING: Duration = if cfg!(test) { Duration::from_millis(100) } else { Duration::from_secs(5) };
/// Maximum time over which connections are closed when the server stops, so that their clients do not all come back at once.
const MAX_SPREAD: Duration = Duration::from_secs(10);

thread_local! {
    static READS: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into());
}

/// A connection that was agreed on.
pub struct Session {
    unfinished: Unfinished,
    deflate: bool,
    metrics: Arc<Metrics>,
    grace: Duration,
    charge: Charge,
}

impl Session {
    /// A connection with the handler of its events. `deflate`: permessage-deflate was agreed on; `grace`: the time that the
    /// server has for its end; `charge`: for messages that come in.
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
    /// This close frame is to be sent, or was taken for sending; `confirmed`: the client has sent one.
    Sending {
        close: Close,
        confirmed: bool,
        taken: bool,
    },
    /// A close frame was sent, and the client is to confirm it.
    Waiting,
    /// The client has broken a rule, so a confirmation looks like any other bytes: the server's side is ended, and
    /// what still comes is dropped, until the client closes. With unread bytes it might not see the close frame.
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
    /// Bytes that were read and not looked at, as too many messages wait.
    ahead: Bytes,
    /// Bytes of messages that wait for the handler.
    ahead_bytes: usize,
    /// For these, and for a message that is not complete.
    charge: Charge,
    charged: usize,
    /// The frame that is being sent.
    out: Bytes,
    unflushed: bool,
    /// The answer to the last ping.
    pong: Option<Bytes>,
    closing: Closing,
    metrics: Arc<Metrics>,
    grace: Duration,
    /// When the connection is closed because the server stops.
    leaves_at: Option<Instant>,
    /// When the connection is cut, once it is to close.
    until: Option<Instant>,
    /// When something has last come.
    heard: Instant,
    pinged: bool,
    /// The client has broken a rule.
    broken: bool,
    timer: Pin<Box<Sleep>>,
    unfinished: Unfinished,
}

impl Talk {
    /// Talks until the end.
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
                // The client has closed: whether it sees the end of the stream does not matter.
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

    /// Ready if a message was handled or the next one begun.
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

    /// Begins to close, if that has not begun.
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

    /// The client takes nothing: notices that it has lost its connection by that.
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

    /// Ready if something has come.
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

    /// Charges what is kept of the client's messages. One for which there is no memory closes its connection.
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

    /// `true` if the client is to wait for the handler.
    fn is_full(&self) -> bool {
        let waiting = self.unfinished.0.as_ref().map_or(0, |end| end.inbox.len());
        self.closing == Closing::No && (waiting >= MAX_AHEAD || self.ahead_bytes >= MAX_AHEAD_BYTES)
    }

    /// Takes what has come; the number of bytes that are left.
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

    /// The server closes: all that counts of the client is its close frame.
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

    /// Writes what is there. Ready when nothing waits.
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

    /// The next frame to send; the one that was sent before has gone.
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
            Next::Nothing => None,
        }
    }

    /// Notices that the server stops.
    fn look_at_server(&mut self) {
        if self.closing == Closing::No && self.leaves_at.is_none() && self.client.is_to_end() {
            let spread = (self.grace / 2).min(MAX_SPREAD);
            let at = Instant::now() + spread.mul_f64(fastrand::f64());
            self.leaves_at = Some(at);
            self.timer.as_mut().reset(at);
        }
    }

    /// Ready if the time of something has come.
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

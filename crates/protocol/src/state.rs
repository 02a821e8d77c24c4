//! State of a connection that its timeouts and the shutdown depend on.
//!
//! These need no timers. The connection records the event it waits for and when the wait began. Its I/O thread checks
//! all its connections a few times per timeout (`io_thread`), sets a verdict where one is due, and wakes the
//! connection, which acts on it. The clock is the I/O thread's: in milliseconds, updated at each check.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::time::Duration;

/// The I/O thread's decision about a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Verdict {
    /// Go on.
    None = 0,
    /// Close after the next response: another process takes over, or room is needed. Until then HTTP/1 and FastCGI
    /// connections stay open; HTTP/2 and 3 send GOAWAY.
    LastResponse = 1,
    /// Shutdown: like `LastResponse`, and upgraded protocols end too.
    Finish = 2,
    /// Close unless a request has arrived: the idle timeout has passed, the server shuts down, or room is needed.
    Idle = 3,
    /// A request's header took too long, or room is needed: respond with 408 (HTTP/1) and close.
    HeaderTimeout = 4,
    /// Drop the connection: the client reads too slowly or does not close, room is needed, or the grace time is over.
    Drop = 5,
}

/// The timeouts of a connection, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From a request's first byte to the end of its header; also from accept to a connection's first byte.
    pub header: u64,
    /// Between two requests.
    pub idle: u64,
    /// Longest time that a write may make no progress.
    pub write: u64,
    /// Time for the client to close after a response that was sent before all of its data was read.
    pub linger: u64,
    /// Minimum rate, in bytes per second, of a client that holds up a response; averaged over `write`.
    pub min_rate: u64,
}

/// Milliseconds after accept during which a shutdown, in the first half of its grace time, does not close a connection
/// without a request. The request may still be on its way: retransmitted after packet loss, or delayed by a client that
/// waits for a processor.
const FIRST_REQUEST: u64 = 2000;

/// Milliseconds after the last response of a kept-alive connection during which a shutdown, in the first half of its
/// grace time, does not close it. An active client sends its next request soon, and the response to that announces the
/// close. HTTP/1.1 cannot rule out a close that crosses a request; this makes it rare.
const NEXT_REQUEST: u64 = 1000;

/// Milliseconds that a connection may wait for a request, or for the rest of a header, before it may be closed to make
/// room for others.
const MIN_WAIT_MS: u64 = 1000;

/// Lower limit, in milliseconds, of the write timeout while budgets are scarce.
const MIN_WRITE_MS: u64 = 2000;

impl Timeouts {
    /// The timeouts of the settings.
    pub fn new(settings: &howdah_config::HttpSettings) -> Self {
        let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        Self {
            header: ms(settings.header_timeout),
            idle: ms(settings.idle_timeout),
            write: ms(settings.client_timeout),
            linger: 2000,
            min_rate: settings.min_rate.bytes(),
        }
    }

    /// Shortens the write timeout in proportion to `pressure`, the scarcity of budgets in percent: responses to clients
    /// that do not read are what fills the budgets.
    pub fn under(self, pressure: u64) -> Self {
        let spare = self.write.saturating_sub(MIN_WRITE_MS);
        Self { write: self.write - spare / 100 * pressure.min(100), ..self }
    }

    /// `true` if a client that read `bytes` in `took` milliseconds of waiting is too slow.
    pub fn is_too_slow(&self, bytes: u64, took: u64) -> bool {
        bytes < self.min_rate.saturating_mul(took) / 1000
    }

    /// Interval at which an I/O thread checks its connections: fine enough for the shortest timeout, and rare enough to
    /// cost nothing.
    pub fn tick(&self) -> Duration {
        let shortest = self.header.min(self.idle).min(self.write).min(self.linger);
        Duration::from_millis((shortest / 8).clamp(5, 500))
    }
}

/// State of a connection. All fields are written by the connection's own thread.
#[derive(Debug)]
pub struct State {
    verdict: AtomicU8,
    /// Requests whose response has not been handed to the socket completely.
    in_flight: AtomicU32,
    /// HTTP/2 or 3, whose control frames must not look like the start of a header.
    multiplexed: AtomicBool,
    /// FastCGI, which frames bodies and therefore copies bodies that are in a worker's memory.
    copies_bodies: AtomicBool,
    /// Part of a header has arrived, and the request has not begun yet.
    reading_head: AtomicBool,
    /// No request has begun yet.
    fresh: AtomicBool,
    /// HTTP/1: the client has closed its side, and perhaps left.
    half_closed: AtomicBool,
    /// Since when the connection idles, or reads a header.
    since: AtomicU64,
    /// Start of a write's present wait; 0 if no write waits.
    write_blocked: AtomicU64,
    /// Time at which the client fell behind with reading, 0 if it has not; and the bytes that it has read since
    /// (`taken`).
    behind: AtomicU64,
    taken: AtomicU64,
    /// HTTP/2 and 3: number of responses whose body is being sent, number of these that wait for their source, and the
    /// time at which any of them last made progress. There, a client that reads nothing blocks no write of the socket.
    sending: AtomicU32,
    waiting_for_source: AtomicU32,
    moved: AtomicU64,
    /// HTTP/2 and 3: bytes of bodies that the client's window has allowed so far.
    taken_of_bodies: AtomicU64,
    /// Time since which the connection waits for the client to close; 0 if it does not wait.
    lingering: AtomicU64,
    /// The I/O thread's clock, copied here so that the connection reads only its own memory.
    now: AtomicU64,
    waker: Mutex<Option<Waker>>,
}

impl State {
    /// A connection accepted at `now`.
    pub fn new(now: u64) -> Self {
        Self {
            verdict: AtomicU8::new(Verdict::None as u8),
            in_flight: AtomicU32::new(0),
            multiplexed: AtomicBool::new(false),
            copies_bodies: AtomicBool::new(false),
            reading_head: AtomicBool::new(false),
            fresh: AtomicBool::new(true),
            half_closed: AtomicBool::new(false),
            since: AtomicU64::new(now),
            write_blocked: AtomicU64::new(0),
            behind: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            sending: AtomicU32::new(0),
            waiting_for_source: AtomicU32::new(0),
            moved: AtomicU64::new(now),
            taken_of_bodies: AtomicU64::new(0),
            lingering: AtomicU64::new(0),
            now: AtomicU64::new(now.max(1)),
            waker: Mutex::new(None),
        }
    }

    /// The I/O thread's decision.
    pub fn verdict(&self) -> Verdict {
        match self.verdict.load(Relaxed) {
            1 => Verdict::LastResponse,
            2 => Verdict::Finish,
            3 => Verdict::Idle,
            4 => Verdict::HeaderTimeout,
            5 => Verdict::Drop,
            _ => Verdict::None,
        }
    }

    /// Sets the waker of the connection's task, which is called when a verdict is set.
    pub fn set_waker(&self, waker: &Waker) {
        if let Ok(mut slot) = self.waker.lock() {
            *slot = Some(waker.clone());
        }
    }

    /// The connection speaks HTTP/2 or 3.
    pub fn set_multiplexed(&self) {
        self.multiplexed.store(true, Relaxed);
        self.reading_head.store(false, Relaxed);
    }

    /// The connection speaks FastCGI.
    pub(crate) fn set_copies_bodies(&self) {
        self.copies_bodies.store(true, Relaxed);
    }

    /// Returns `true` if a body in a worker's memory is copied before it goes to the socket.
    pub(crate) fn copies_bodies(&self) -> bool {
        self.copies_bodies.load(Relaxed) || self.is_multiplexed()
    }

    /// Called when bytes arrive: starts the header timeout if they begin a request.
    pub fn on_read(&self) {
        if self.in_flight.load(Relaxed) == 0 && !self.reading_head.load(Relaxed) && !self.multiplexed.load(Relaxed) {
            self.reading_head.store(true, Relaxed);
            self.since.store(self.now.load(Relaxed), Relaxed);
        }
    }

    /// Called after the TLS handshake: restarts the clock for the first header.
    pub fn on_handshake_over(&self) {
        self.reading_head.store(false, Relaxed);
        self.since.store(self.now.load(Relaxed), Relaxed);
    }

    /// A request begins: its header is complete.
    pub fn begin(&self) {
        self.in_flight.fetch_add(1, Relaxed);
        self.reading_head.store(false, Relaxed);
        self.fresh.store(false, Relaxed);
    }

    /// A request has ended: its response has been handed over, or given up.
    pub fn end(&self) {
        if self.in_flight.fetch_sub(1, Relaxed) == 1 {
            self.since.store(self.now.load(Relaxed), Relaxed);
        }
    }

    /// `true` if a write waits for the client.
    pub fn is_write_blocked(&self) -> bool {
        self.write_blocked.load(Relaxed) != 0
    }

    /// The client has closed its side.
    pub fn set_half_closed(&self) {
        self.half_closed.store(true, Relaxed);
    }

    /// The client has closed its side, and perhaps left.
    pub fn is_half_closed(&self) -> bool {
        self.half_closed.load(Relaxed)
    }

    /// Notes the result of a write.
    pub fn note_write(&self, result: &Poll<std::io::Result<usize>>) {
        match result {
            Poll::Pending => self.on_write_blocked(),
            Poll::Ready(written) => {
                self.on_written();
                if self.behind.load(Relaxed) != 0 {
                    let bytes = written.as_ref().map_or(0, |bytes| *bytes as u64);
                    self.taken.store(self.taken.load(Relaxed) + bytes, Relaxed);
                }
            }
        }
    }

    /// Everything that waited has been written: the client is no longer behind.
    pub fn on_caught_up(&self) {
        if self.behind.load(Relaxed) != 0 {
            self.behind.store(0, Relaxed);
        }
    }

    /// The socket buffer is full.
    fn on_write_blocked(&self) {
        if self.write_blocked.load(Relaxed) == 0 {
            self.write_blocked.store(self.now.load(Relaxed), Relaxed);
        }
        if self.behind.load(Relaxed) == 0 {
            self.behind.store(self.now.load(Relaxed), Relaxed);
            self.taken.store(0, Relaxed);
        }
    }

    /// A write made progress.
    fn on_written(&self) {
        // The written data may belong to a response that was handed over long ago: the connection idles from its last
        // byte.
        if self.write_blocked.load(Relaxed) != 0 || self.is_multiplexed() {
            self.write_blocked.store(0, Relaxed);
            self.since.store(self.now.load(Relaxed), Relaxed);
        }
    }

    /// `true` if the connection speaks HTTP/2 or 3.
    pub fn is_multiplexed(&self) -> bool {
        self.multiplexed.load(Relaxed)
    }

    /// HTTP/2 and 3: a response's body begins.
    pub fn sending_begins(&self) {
        self.sending.fetch_add(1, Relaxed);
        self.body_moved();
    }

    /// HTTP/2 and 3: a response's body has ended.
    pub fn sending_ends(&self) {
        self.sending.fetch_sub(1, Relaxed);
        self.body_moved();
    }

    /// A part of some body was fetched, or taken by the client.
    pub fn body_moved(&self) {
        self.moved.store(self.now.load(Relaxed), Relaxed);
    }

    /// HTTP/2 and 3: the client's window has allowed `bytes` more of a body.
    pub fn body_taken(&self, bytes: usize) {
        self.taken_of_bodies.store(self.taken_of_bodies().wrapping_add(bytes as u64), Relaxed);
        self.body_moved();
    }

    /// HTTP/2 and 3: bytes of all bodies that the client's window has allowed so far.
    pub fn taken_of_bodies(&self) -> u64 {
        self.taken_of_bodies.load(Relaxed)
    }

    /// A body starts or stops waiting for its source. That time does not count against the client.
    pub fn source_waits(&self, waits: bool) {
        if waits {
            self.waiting_for_source.fetch_add(1, Relaxed);
        } else {
            self.waiting_for_source.fetch_sub(1, Relaxed);
            self.body_moved();
        }
    }

    /// HTTP/2 and 3: `true` if every request in flight is a body that the client does not read.
    fn is_stalled(&self, now: u64, limit: u64) -> bool {
        let sending = self.sending.load(Relaxed);
        sending > 0
            && sending == self.in_flight.load(Relaxed)
            && self.waiting_for_source.load(Relaxed) == 0
            && now.saturating_sub(self.moved.load(Relaxed)) > limit
    }

    /// `true` if the client reads so slowly that it could hold a response for ever. Measured over intervals of
    /// `timeouts.write`.
    fn is_too_slow(&self, now: u64, timeouts: &Timeouts) -> bool {
        let behind = self.behind.load(Relaxed);
        let took = now.saturating_sub(behind);
        if behind == 0 || took <= timeouts.write {
            return false;
        }
        self.behind.store(now, Relaxed);
        timeouts.is_too_slow(self.taken.swap(0, Relaxed), took)
    }

    /// Start of the wait for a request of which no byte has arrived; `None` before `MIN_WAIT_MS`.
    pub fn unused_since(&self, now: u64) -> Option<u64> {
        let since = self.since.load(Relaxed);
        let busy = self.is_busy() || now.saturating_sub(since) < MIN_WAIT_MS;
        (!busy && self.verdict() <= Verdict::LastResponse).then_some(since)
    }

    /// Start of the present phase of a connection that has had a request and would be kept open; `u64::MAX` while it
    /// is busy, so that idle connections sort first.
    pub fn used_since(&self) -> Option<u64> {
        let since = if self.is_busy() { u64::MAX } else { self.since.load(Relaxed) };
        (!self.fresh.load(Relaxed) && self.verdict() == Verdict::None).then_some(since)
    }

    fn is_busy(&self) -> bool {
        self.in_flight.load(Relaxed) > 0 || self.write_blocked.load(Relaxed) != 0 || self.reading_head.load(Relaxed)
    }

    /// Start of a header that is still incomplete after `MIN_WAIT_MS`.
    pub fn slow_header_since(&self, now: u64) -> Option<u64> {
        let since = self.since.load(Relaxed);
        let slow = self.reading_head.load(Relaxed)
            && self.in_flight.load(Relaxed) == 0
            && now.saturating_sub(since) >= MIN_WAIT_MS;
        (slow && self.verdict() == Verdict::None).then_some(since)
    }

    /// The response is out, and the connection waits for the client to close.
    pub fn set_lingering(&self) {
        if self.lingering.load(Relaxed) == 0 {
            self.lingering.store(self.now.load(Relaxed), Relaxed);
        }
    }

    /// Called by the I/O thread at each check: updates the clock and decides. Wakes the connection if the verdict is
    /// new.
    pub fn check(&self, now: u64, timeouts: &Timeouts) {
        self.now.store(now, Relaxed);
        let verdict = self.decide(now, timeouts);
        if verdict as u8 > self.verdict.load(Relaxed) {
            self.give(verdict);
        }
    }

    fn decide(&self, now: u64, timeouts: &Timeouts) -> Verdict {
        let late = |since: u64, limit: u64| since != 0 && now.saturating_sub(since) > limit;
        if late(self.write_blocked.load(Relaxed), timeouts.write) || late(self.lingering.load(Relaxed), timeouts.linger)
        {
            return Verdict::Drop;
        }
        if self.is_stalled(now, timeouts.write) || self.is_too_slow(now, timeouts) {
            return Verdict::Drop;
        }
        if self.in_flight.load(Relaxed) > 0 || self.write_blocked.load(Relaxed) != 0 {
            return Verdict::None;
        }
        let since = self.since.load(Relaxed);
        let limit = match (self.reading_head.load(Relaxed), self.fresh.load(Relaxed)) {
            (true, _) if now.saturating_sub(since) > timeouts.header => return Verdict::HeaderTimeout,
            (true, _) => return Verdict::None,
            (false, true) => timeouts.header.min(timeouts.idle),
            (false, false) => timeouts.idle,
        };
        match now.saturating_sub(since) {
            // The connection has not acted on its verdict for this long and will not.
            waited if waited > limit.saturating_mul(2).saturating_add(1000) => Verdict::Drop,
            waited if waited > limit => Verdict::Idle,
            _ => Verdict::None,
        }
    }

    /// Gives a verdict and wakes the connection.
    pub fn give(&self, verdict: Verdict) {
        self.verdict.fetch_max(verdict as u8, Relaxed);
        self.wake();
    }

    /// Wakes the connection's task.
    pub fn wake(&self) {
        let waker = self.waker.lock().ok().and_then(|slot| slot.clone());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// `true` if a shutdown need not wait for the connection's next request: `until` has passed, or none is likely to
    /// be on its way any more.
    pub fn waited_too_long(&self, now: u64, until: u64) -> bool {
        let busy = self.in_flight.load(Relaxed) > 0 || self.is_write_blocked() || self.reading_head.load(Relaxed);
        let patience = if self.fresh.load(Relaxed) { FIRST_REQUEST } else { NEXT_REQUEST };
        !busy && (now >= until || now.saturating_sub(self.since.load(Relaxed)) > patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts { header: 100, idle: 1000, write: 500, linger: 200, min_rate: 1000 };

    fn after(prepare: impl Fn(&State), now: u64) -> Verdict {
        let state = State::new(10);
        prepare(&state);
        state.check(now, &TIMEOUTS);
        state.verdict()
    }

    #[test]
    fn a_connection_without_a_request_is_closed_and_an_incomplete_header_gets_408() {
        assert_eq!(after(|_| (), 100), Verdict::None);
        assert_eq!(after(|_| (), 111), Verdict::Idle);
        assert_eq!(after(State::on_read, 110), Verdict::None);
        assert_eq!(after(State::on_read, 111), Verdict::HeaderTimeout);
    }

    #[test]
    fn a_running_request_has_no_connection_timeout_and_keep_alive_has_its_own() {
        let asked = |s: &State| {
            s.on_read();
            s.begin();
        };
        assert_eq!(after(asked, 100_000), Verdict::None);
        let answered = |s: &State| {
            asked(s);
            s.end();
        };
        assert_eq!(after(answered, 1000), Verdict::None);
        assert_eq!(after(answered, 1011), Verdict::Idle);
    }

    #[test]
    fn a_shutdown_waits_for_requests_that_may_be_on_their_way_and_for_no_others() {
        let state = State::new(10);
        let in_vain = |now| state.waited_too_long(now, u64::MAX);
        assert_eq!([11, 10 + FIRST_REQUEST, 11 + FIRST_REQUEST].map(in_vain), [false, false, true]);
        assert!(state.waited_too_long(12, 12), "the grace time is shorter");
        state.on_read();
        assert!(!state.waited_too_long(100_000, 12), "its header must come to its end");
        state.on_handshake_over();
        state.check(5000, &TIMEOUTS.under(0));
        state.begin();
        assert!(!in_vain(100_000));
        state.end();
        assert_eq!([5000 + NEXT_REQUEST, 5001 + NEXT_REQUEST].map(in_vain), [false, true]);
    }

    #[test]
    fn a_client_that_reads_nothing_is_dropped_unless_it_resumes() {
        let blocked = |s: &State| {
            s.begin();
            s.on_write_blocked();
        };
        assert_eq!(after(blocked, 510), Verdict::None);
        assert_eq!(after(blocked, 511), Verdict::Drop);
        let goes_on = |s: &State| {
            blocked(s);
            s.note_write(&Poll::Ready(Ok(1)));
            s.on_caught_up();
        };
        assert_eq!(after(goes_on, 100_000), Verdict::None);
    }

    #[test]
    fn a_client_that_reads_a_byte_now_and_then_is_dropped_and_a_slow_one_is_not() {
        let dropped = |bytes: usize| {
            let state = State::new(10);
            state.begin();
            (10..3000).step_by(50).any(|now| {
                state.check(now, &TIMEOUTS);
                state.note_write(&Poll::Ready(Ok(bytes)));
                state.note_write(&Poll::Pending);
                state.verdict() == Verdict::Drop
            })
        };
        assert!(dropped(1) && !dropped(100));
        let state = State::new(10);
        for now in (10..3000).step_by(50) {
            state.check(now, &TIMEOUTS);
            state.note_write(&Poll::Pending);
            state.note_write(&Poll::Ready(Ok(1)));
            state.on_caught_up();
        }
        assert_eq!(state.verdict(), Verdict::None, "there was no more to read");
    }

    #[test]
    fn scarce_budgets_shorten_the_write_timeout() {
        let timeouts = Timeouts { write: 60_000, ..TIMEOUTS };
        assert_eq!([0, 50, 100].map(|pressure| timeouts.under(pressure).write), [60_000, 31_000, 2_000]);
        assert_eq!(TIMEOUTS.under(100).write, 500);
    }

    #[test]
    fn an_http_2_client_that_reads_no_body_is_dropped_unless_php_is_slow() {
        let sending = |s: &State| {
            s.set_multiplexed();
            s.begin();
            s.sending_begins();
        };
        assert_eq!(after(sending, 510), Verdict::None);
        assert_eq!(after(sending, 511), Verdict::Drop);
        let waiting = |s: &State| {
            sending(s);
            s.source_waits(true);
        };
        assert_eq!(after(waiting, 100_000), Verdict::None);
        let second_request = |s: &State| {
            sending(s);
            s.begin();
        };
        assert_eq!(after(second_request, 100_000), Verdict::None);
    }
}

//! The lane of a worker that runs one request at a time, in order. So a request's expected wait is the sum of the
//! estimates before it.

use crate::lane::clock::Clock;
use crate::lane::precedence;
use crate::lane::requests::LaneRequests;
use howdah_transport::RequestSender;
use std::time::{Duration, Instant};

/// Time within which a sleeping worker is expected to begin a request.
const SLOW_START: Duration = Duration::from_millis(1);

/// State of serial lanes only.
#[derive(Debug)]
pub(crate) struct SerialLane {
    /// The worker's nice value may be raised.
    pub(crate) gives_way: bool,
    /// Converts to the clock of the worker's time stamps.
    pub(crate) clock: Clock,
}

/// Microseconds from `since` to `now`.
fn micros(now: Instant, since: Instant) -> u64 {
    now.saturating_duration_since(since).as_micros() as u64
}

impl SerialLane {
    pub(super) fn new() -> Self {
        Self { gives_way: false, clock: Clock::system() }
    }

    /// Notes that a request with these flags was sent. If it is taken back before it begins, `gives_way` stays set
    /// until a request that restores the nice value is done.
    pub(super) fn note_sent(&mut self, flags: u32) {
        self.gives_way |= precedence::ordered(flags) == Some(true);
    }

    /// A request with these flags is done.
    pub(super) fn note_done(&mut self, flags: u32) {
        self.gives_way = precedence::ordered(flags).unwrap_or(self.gives_way);
    }

    /// Expected wait of a further request in this lane, in microseconds. `None` if the running request has exceeded its
    /// estimate, or the worker takes too long to begin.
    pub(super) fn expected_wait(&self, requests: &LaneRequests, sender: &RequestSender, now: Instant) -> Option<u64> {
        let Some(front) = requests.front() else { return Some(0) };
        let ran = micros(now, front.since);
        // While the request is within its estimate, the server's own data suffices.
        if ran <= u64::from(front.pending.expected.mean) {
            return Some(requests.expected_us() - ran);
        }
        self.look_at_progress(requests, sender, now)
    }

    /// Expected wait according to the worker's time stamps. Reading them costs cache misses.
    fn look_at_progress(&self, requests: &LaneRequests, sender: &RequestSender, now: Instant) -> Option<u64> {
        let mut ahead = 0;
        for request in requests.iter().rev() {
            if request.is_begun(sender) {
                // The worker's stamp is only a claim: a request cannot have begun before it was sent, nor in the
                // future.
                let ran = sender
                    .ran_us(request.slot, self.clock.micros(now))
                    .map_or(u64::MAX, u64::from)
                    .min(micros(now, request.since));
                return request.pending.expected.remaining(ran).map(|remaining| ahead + remaining);
            }
            ahead += u64::from(request.pending.expected.mean);
        }
        // The worker is asleep or waking up, unless that takes too long.
        (requests.front_age(now) <= SLOW_START).then_some(ahead)
    }
}

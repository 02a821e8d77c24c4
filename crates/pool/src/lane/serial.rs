//! The lane of a worker that runs one request at a time, in their order in the lane: so a request's wait follows from
//! the expectations for those before it.

use crate::lane::clock::Clock;
use crate::lane::precedence;
use crate::lane::requests::LaneRequests;
use howdah_transport::RequestSender;
use std::time::{Duration, Instant};

/// A worker that has not begun anything after this time does not only wake up slowly.
const SLOW_START: Duration = Duration::from_millis(1);

/// State of serial lanes only.
#[derive(Debug)]
pub(crate) struct SerialLane {
    /// Its worker's nice value may be higher than its own.
    pub(crate) gives_way: bool,
    /// By which its worker says when it began a request.
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

    /// A request with these flags was sent. Taken back before it is begun, it leaves its claim behind, and the next
    /// request that gives way to none clears it.
    pub(super) fn note_sent(&mut self, flags: u32) {
        self.gives_way |= precedence::ordered(flags) == Some(true);
    }

    /// A request with these flags is done.
    pub(super) fn note_done(&mut self, flags: u32) {
        self.gives_way = precedence::ordered(flags).unwrap_or(self.gives_way);
    }

    /// Expected wait of a request after those in the lane, in microseconds. `None` if the running one has exceeded its
    /// expectation.
    pub(super) fn expected_wait(&self, requests: &LaneRequests, sender: &RequestSender, now: Instant) -> Option<u64> {
        let Some(front) = requests.front() else { return Some(0) };
        let ran = micros(now, front.since);
        // The server's own data suffices as long as things go as expected.
        if ran <= u64::from(front.pending.expected.mean) {
            return Some(requests.expected_us() - ran);
        }
        self.look_at_progress(requests, sender, now)
    }

    /// Expected wait by the worker's own progress. Costs cache misses.
    fn look_at_progress(&self, requests: &LaneRequests, sender: &RequestSender, now: Instant) -> Option<u64> {
        let mut ahead = 0;
        for request in requests.iter().rev() {
            if request.is_begun(sender) {
                // A claim of the worker's. It can have begun the request neither before that was sent nor in the future.
                let ran = sender
                    .ran_us(request.slot, self.clock.micros(now))
                    .map_or(u64::MAX, u64::from)
                    .min(micros(now, request.since));
                return request.pending.expected.remaining(ran).map(|remaining| ahead + remaining);
            }
            ahead += u64::from(request.pending.expected.mean);
        }
        // The worker sleeps, or is on its way: unless that takes too long.
        (requests.front_age(now) <= SLOW_START).then_some(ahead)
    }
}

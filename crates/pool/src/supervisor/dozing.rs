//! The supervisor checks a pool without requests once a second instead of ten times, so that the processor of an idle
//! server can sleep. The next request wakes the supervisor: its time limits are enforced as precisely as before.

use super::{Supervisor, TICK};
use std::time::{Duration, Instant};

/// Time between two ticks of an idle pool, and thus the precision of `shrink_after` and `max_pool_memory` there.
const IDLE_TICK: Duration = Duration::from_secs(1);

/// Time without a request after which a pool counts as idle, so that requests every few milliseconds need not wake it.
const IDLE_AFTER: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Time until the next tick.
    pub(super) fn pause(&mut self) -> Duration {
        if !self.is_calm() {
            return TICK;
        }
        let mut scheduler = self.pool.lock();
        let accepted = scheduler.tally.accepted;
        let (at, since) = *self.idle_since.get_or_insert((accepted, Instant::now()));
        if at != accepted {
            self.idle_since = None;
            return TICK;
        }
        let is_idle = scheduler.queue.is_empty()
            && scheduler.quarantine.is_empty()
            && scheduler.down.is_none()
            && scheduler.lanes.iter().flatten().all(|lane| lane.state.is_serving() && lane.in_flight.is_empty());
        if !is_idle || since.elapsed() < IDLE_AFTER {
            return TICK;
        }
        scheduler.supervisor_dozes = true;
        IDLE_TICK
    }

    /// `true` if no process is starting or ending, and none has failed.
    fn is_calm(&self) -> bool {
        let is_booted = match &self.current {
            Some(current) => current.booted && current.ordered.is_empty(),
            None => self.rests,
        };
        let is_unchanging = self.next.is_none() && self.old.is_empty() && self.stop.is_none() && self.profile.is_none();
        is_booted && is_unchanging && !self.waits_for_order && self.failures == 0 && self.not_before.is_none()
    }
}

//! A fallback pool that nothing has needed for a long time gives up its zygote, which holds some 10 MB, and starts it
//! again for the next request. That request waits for PHP's start and finds OPcache empty.

use super::Supervisor;
use std::time::Instant;

/// Multiple of `shrink_after` without a worker: ten minutes by default, so that a site with a request every second or
/// two keeps the zygote for its comparisons.
const REST_AFTER: u32 = 60;

impl Supervisor {
    /// Called once per tick.
    pub(super) fn rest(&mut self) {
        if !self.is_at_rest() {
            self.unneeded_since = None;
            return;
        }
        let idle = self.unneeded_since.get_or_insert_with(Instant::now).elapsed();
        if idle < self.pool.config().settings.shrink_after.saturating_mul(REST_AFTER) {
            return;
        }
        tracing::info!(pool = self.pool.name(), "idle for {idle:?}: stopping PHP until the next request");
        self.old.extend(self.current.take());
        self.rests = true;
        if self.pool.lock().ask_for_workers(true) {
            self.wake();
        }
        self.drop_finished_generations();
    }

    /// `true` if the pool serves only what another pool cannot, and no work is pending or under way.
    fn is_at_rest(&self) -> bool {
        let Some(current) = self.current.as_ref().filter(|current| current.booted && current.ordered.is_empty()) else {
            return false;
        };
        let is_free = self.pool.is_fallback() && self.target == 0;
        let is_calm = self.next.is_none() && self.stop.is_none() && !self.waits_for_order && self.profile.is_none();
        if !is_free || !is_calm {
            return false;
        }
        let scheduler = self.pool.lock();
        scheduler.queue.is_empty() && !scheduler.lanes.iter().flatten().any(|lane| lane.generation == current.number)
    }

    /// Starts the zygote again if requests wait. Returns `true` if the pool was at rest.
    pub(super) fn wake(&mut self) -> bool {
        let rests = self.rests;
        if rests && !self.pool.lock().queue.is_empty() {
            tracing::info!(pool = self.pool.name(), "requests are waiting: starting PHP and a worker");
            self.rests = false;
            self.target = 1;
        }
        rests
    }
}

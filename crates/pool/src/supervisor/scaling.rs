//! How many workers there are: more while requests wait, fewer when some are idle, another one in time for each that
//! has nearly done its requests.

use super::Supervisor;
use crate::lane::Lane;
use crate::worker_state::WorkerState;
use std::time::{Duration, Instant};

/// A pool grows when requests have waited this long, by as many workers as there are such requests.
pub(super) const GROW_AFTER: Duration = Duration::from_millis(5);

impl Supervisor {
    /// Starts a worker for each request that waits and has none on its way, up to the pool's limit.
    pub(super) fn grow(&mut self) {
        self.grow_at = None;
        let max = self.pool.config().max_workers;
        let Some(generation) = self.current.as_ref().filter(|_| self.target < max) else { return };
        let pool = self.pool.clone();
        let mut scheduler = pool.lock();
        let starting = scheduler.count(generation.number, WorkerState::is_starting) + generation.ordered.len();
        let wanted = scheduler.waiting_longer_than(GROW_AFTER, Instant::now()).saturating_sub(starting);
        let more = wanted.min(max - self.target);
        if more < wanted {
            pool.counters.limit_reached.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        if more > 0 {
            self.target += more;
            tracing::info!(pool = self.pool.name(), workers = self.target, "requests wait: {more} more");
        }
        if scheduler.ask_for_workers(self.target < max) {
            self.grow_at = Some(Instant::now() + GROW_AFTER);
        }
    }

    /// Lets workers go that have nearly done their requests, as far as others stand ready in their place. They must not
    /// wait for their last requests: idle workers are taken by who was used last, and theirs might never come.
    pub(super) fn retire_used_up(&mut self) {
        let Some(generation) = self.current.as_ref().map(|generation| generation.number) else { return };
        let config = self.pool.config();
        let mut scheduler = self.pool.lock();
        let spare = scheduler.count(generation, WorkerState::is_serving).saturating_sub(self.target);
        let used_up = |lane: &&Lane| {
            lane.generation == generation && lane.state.is_serving() && config.retires_soon(lane.requests)
        };
        let used_up: Vec<_> = scheduler.lanes.iter().flatten().filter(used_up).map(|lane| lane.worker).collect();
        for worker in used_up.into_iter().take(spare) {
            scheduler.drain_lane(worker as usize, Instant::now());
        }
    }

    /// Lets the worker go that has been idle for longest, if that is long enough.
    pub(super) fn shrink(&mut self) {
        let config = self.pool.config();
        let mut scheduler = self.pool.lock();
        if self.target > config.min_workers
            && let Some((index, idle)) = scheduler.idle_longest()
            && idle > config.shrink_after
        {
            self.target -= 1;
            scheduler.ask_for_workers(true);
            scheduler.drain_lane(index, Instant::now());
            tracing::info!(pool = self.pool.name(), workers = self.target, "a worker was idle for {idle:?}: one less");
        }
    }
}

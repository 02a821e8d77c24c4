//! Controls the number of workers: more while requests wait, fewer when some are idle, and a timely successor for each
//! worker that has nearly served its maximum number of requests.

use super::Supervisor;
use crate::lane::Lane;
use crate::process::worker_state::WorkerState;
use std::time::{Duration, Instant};

/// A pool grows when requests have waited this long, by as many workers as there are such requests.
pub(super) const GROW_AFTER: Duration = Duration::from_millis(5);

/// Interval at which workers are stopped because more than `spare_workers.max` are idle or memory is short; also the
/// idle time required if memory is short.
const SHRINK_STEP: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Starts a worker for each waiting request that has none starting for it, up to the pool's limit. A pool without
    /// workers does not wait for `GROW_AFTER`: no worker could become free meanwhile.
    pub(super) fn grow(&mut self) {
        self.grow_at = None;
        if self.wake() {
            return;
        }
        let max = self.most_workers();
        let Some(generation) = self.current.as_ref().filter(|_| self.target < max) else { return };
        let pool = self.pool.clone();
        let mut scheduler = pool.lock();
        let coming = self.target.saturating_sub(scheduler.count(generation.number, WorkerState::is_serving));
        let waiting = scheduler.waiting_longer_than(GROW_AFTER, Instant::now());
        let first = usize::from(self.target == 0 && !scheduler.queue.is_empty());
        let wanted = waiting.saturating_sub(coming).max(first);
        let more = wanted.min(max - self.target);
        if more < wanted {
            pool.counters.limit_reached.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        if more > 0 {
            self.target += more;
            tracing::info!(
                pool = self.pool.name(),
                workers = self.target,
                "requests are waiting: starting {more} workers"
            );
        }
        if scheduler.ask_for_workers(self.target < max) {
            self.grow_at = Some(Instant::now() + GROW_AFTER);
        }
    }

    /// Starts workers until `spare_workers.min` are idle.
    pub(super) fn keep_spare(&mut self) {
        let least = self.pool.config().settings.spare_workers.min as usize;
        let Some(generation) = self.current.as_ref().filter(|generation| generation.booted && self.failures == 0)
        else {
            return;
        };
        if least == 0 || self.target >= self.most_workers() || self.pool.memory_is_short() {
            return;
        }
        let scheduler = self.pool.lock();
        let coming = self.target.saturating_sub(scheduler.count(generation.number, WorkerState::is_serving));
        let missing = least.saturating_sub(scheduler.spare() + coming);
        drop(scheduler);
        let more = missing.min(self.most_workers() - self.target);
        if more > 0 {
            self.target += more;
            tracing::info!(
                pool = self.pool.name(),
                workers = self.target,
                "fewer than `spare_workers` are idle: starting {more} workers"
            );
        }
    }

    /// Drains workers that have nearly served their maximum number of requests, as far as others are ready to replace
    /// them. The rest of their requests might never come: the most recently used idle worker is picked first.
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

    /// Stops the worker that has been idle longest: after `shrink_after` if others are ready, because more than
    /// `spare_workers.max` are idle, or because memory is short.
    pub(super) fn shrink(&mut self) {
        let config = self.pool.config();
        if self.target <= config.min_workers() {
            return;
        }
        let mut scheduler = self.pool.lock();
        let Some((index, idle)) = scheduler.idle_longest() else { return };
        let spare = scheduler.spare();
        let is_time = self.shrunk_at.is_none_or(|last| last.elapsed() >= SHRINK_STEP);
        let wanted = config.settings.spare_workers;
        let usual = match wanted.max {
            Some(most) => spare > most as usize && is_time,
            None => idle > config.settings.shrink_after && spare > wanted.min as usize,
        };
        let relieves = !usual && self.pool.memory_is_short() && idle >= SHRINK_STEP && is_time;
        let goes = usual || relieves;
        if !goes {
            return;
        }
        self.target -= 1;
        self.shrunk_at = Some(Instant::now());
        // Requests that arrived just now found no worker and sent no notification.
        if scheduler.ask_for_workers(true) {
            self.grow_at = Some(Instant::now());
        }
        scheduler.drain_lane(index, Instant::now());
        let (pool, workers) = (self.pool.name(), self.target);
        if relieves {
            self.pool.metrics().workers_relieved.inc();
            tracing::info!(pool, workers, "memory is short: stopping a worker idle for {idle:?}");
        } else {
            tracing::info!(pool, workers, "stopping a worker idle for {idle:?}");
        }
    }
}

//! Handles zygotes and templates that do not carry out orders, and workers that do not end: stopped or hanging
//! processes.

use super::Supervisor;
use crate::process::worker_state::{KillReason, WorkerState};
use crate::supervisor::generation::Generation;
use std::time::{Duration, Instant};

/// Maximum time for a zygote or its template to carry out an order to fork.
const ORDER_TIMEOUT: Duration = Duration::from_secs(10);

impl Supervisor {
    /// Replaces generations whose zygote or template no longer forks: it is stopped, or in a system call that does not
    /// return.
    pub(super) fn replace_stuck(&mut self) {
        // Orders have to wait while a shared boot is under way, and for the next attempt after a failed boot.
        let pauses = self.stop.is_some() || self.not_before.is_some_and(|time| time > Instant::now());
        let limit = self.pool.config().settings.boot_timeout.min(ORDER_TIMEOUT);
        let pool = self.pool.clone();
        let is_stuck = |generation: &mut Generation| {
            let boots = || {
                let scheduler = pool.lock();
                scheduler.lanes.iter().flatten().any(|l| l.generation == generation.number && l.state.is_starting())
            };
            if pauses || generation.ordered.is_empty() || boots() {
                generation.waits_since = None;
                return false;
            }
            generation.waits_since.get_or_insert_with(Instant::now).elapsed() > limit
        };
        let why = || format!("the zygote has forked no worker for {limit:?}: it or its template hangs");
        if let Some(mut generation) = self.current.take_if(is_stuck) {
            let why = why();
            tracing::error!(pool = pool.name(), generation = generation.number, "{why}: starting another");
            pool.update_about(|about| about.last_error = Some(why));
            // The workers finish their requests. If the zygote carries out an order after all, the other end of that
            // worker's sockets is closed.
            generation.ordered.clear();
            generation.zygote.kill_when_dropped();
            let mut scheduler = pool.lock();
            for index in 0..scheduler.lanes.len() {
                if scheduler.lanes[index].as_ref().is_some_and(|lane| lane.generation == generation.number) {
                    scheduler.drain_lane(index, Instant::now());
                }
            }
            drop(scheduler);
            self.old.push(generation);
            self.drop_finished_generations();
        }
        if let Some((generation, _)) = &mut self.next
            && is_stuck(generation)
        {
            generation.zygote.kill_when_dropped();
            self.fail_reload(why());
        }
    }

    /// Kills draining workers without a request that still run after `boot_timeout`.
    pub(super) fn kill_lingering(&mut self) {
        let limit = self.pool.config().settings.boot_timeout;
        for lane in self.pool.lock().lanes.iter_mut().flatten() {
            if lane.state != WorkerState::Draining || !lane.in_flight.is_empty() {
                lane.ends_since = None;
            } else if lane.ends_since.get_or_insert_with(Instant::now).elapsed() > limit {
                tracing::error!(
                    pool = self.pool.name(),
                    pid = lane.pid,
                    "worker did not end within {limit:?} (boot_timeout): killing it"
                );
                lane.kill(KillReason::Stuck);
            }
        }
    }
}

//! A reload: a new generation boots while the old one serves, takes over when all its workers serve, or is given up.

use super::Supervisor;
use crate::process::event::ReloadWaiter;
use crate::process::worker_state::{KillReason, WorkerState};
use crate::supervisor::generation::Generation;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl Supervisor {
    pub(super) fn reload(&mut self, waiter: ReloadWaiter) {
        if self.stop.is_some() {
            let _ = waiter.send(Err("the server is stopping".into()));
            return;
        }
        // A learned generation may have begun before the change that this reload is for.
        self.abandon_learnt();
        if let Some((_, waiters)) = self.next.as_mut() {
            waiters.push(waiter);
            return;
        }
        // The operator has changed something: retry now.
        self.not_before = None;
        match self.start_generation() {
            Ok(generation) => {
                tracing::info!(pool = self.pool.name(), generation = generation.number, "reload: starting new workers");
                self.next = Some((generation, vec![waiter]));
            }
            Err(error) => {
                let _ = waiter.send(Err(error.to_string()));
            }
        }
    }

    /// Number of workers of a new generation that must serve before it takes over: at least one, even if the pool has
    /// none now. A zygote that starts does not prove that the application boots.
    pub(super) const fn reload_target(&self) -> usize {
        if self.target == 0 { 1 } else { self.target }
    }

    pub(super) fn fail_reload(&mut self, why: String) {
        let Some((generation, waiters)) = self.next.take() else { return };
        let stays = self.forgets_learnt() || !self.pool.config().yields();
        if stays {
            tracing::error!(pool = self.pool.name(), "reload failed, keeping the old workers: {why}");
        }
        self.give_up(generation);
        for waiter in waiters {
            let _ = waiter.send(Err(why.clone()));
        }
        if !stays {
            self.yield_after_reload(why);
        }
        self.drop_finished_generations();
    }

    /// Ends a generation that does not serve.
    pub(super) fn give_up(&mut self, generation: Generation) {
        for lane in self.pool.lock().lanes.iter_mut().flatten().filter(|l| l.generation == generation.number) {
            lane.kill(KillReason::Stopping);
        }
        self.old.push(generation);
    }

    /// Switches over once all workers of the next generation serve; the old ones finish their requests.
    pub(super) fn finish_reload_if_ready(&mut self) {
        let Some((next, _)) = &self.next else { return };
        let number = next.number;
        let needed = self.reload_target();
        if self.pool.lock().count(number, WorkerState::is_serving) < needed {
            return;
        }
        let Some((next, waiters)) = self.next.take() else { return };
        self.next_is_learnt = false;
        self.pool.update_about(|about| {
            about.generation = number;
            about.boots = next.boots.clone();
            about.warm_up = next.warm_up.clone();
        });
        // An on-demand pool's worker that only verified the boot ends after its idle timeout.
        self.target = needed;
        self.waits_for_order = false;
        self.rests = false;
        self.old.extend(self.current.replace(next));
        let mut scheduler = self.pool.lock();
        for index in 0..scheduler.lanes.len() {
            if scheduler.lanes[index].as_ref().is_some_and(|l| l.generation != number) {
                scheduler.drain_lane(index, Instant::now());
            }
        }
        drop(scheduler);
        if let Some(demotions) = self.pool.demotions.get() {
            demotions.restore_slow();
        }
        self.failures = 0;
        self.pool.counters.reloads.fetch_add(1, Ordering::Relaxed);
        tracing::info!(pool = self.pool.name(), generation = number, "reload: new workers serve");
        for waiter in waiters {
            let _ = waiter.send(Ok(()));
        }
        self.drop_finished_generations();
    }

    /// Drops old generations without workers, which ends their zygotes.
    pub(super) fn drop_finished_generations(&mut self) {
        let scheduler = self.pool.lock();
        let alive = |number: u64| scheduler.lanes.iter().flatten().any(|l| l.generation == number);
        self.old.retain(|g| alive(g.number));
    }
}

//! A recipe's pool, which has a fallback: the fallback pool serves requests that this one cannot. So no request waits
//! for a boot that fails, and the next attempt can be delayed.

use super::Supervisor;
use crate::process::worker_state::WorkerState;
use howdah_transport::zygote_protocol::Finding;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Pause after a failed boot: the first, and the maximum.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_secs(600);
/// Maximum time that a request waits here while no worker serves.
const MAX_WAIT: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Handles a failed start: the fallback pool serves until the next attempt.
    pub(super) fn yield_after(&mut self, why: String) {
        let now = Instant::now();
        if self.not_before.is_some_and(|t| t > now) {
            // Workers that were started together fail together, which counts as one attempt.
            tracing::debug!(pool = self.pool.name(), "{why}");
            return;
        }
        let pause = FIRST_PAUSE.saturating_mul(2u32.saturating_pow(self.failures.min(10))).min(MAX_BACKOFF);
        self.failures += 1;
        self.not_before = Some(now + pause);
        self.pool.update_about(|about| about.last_error = Some(why.clone()));
        let is_known = self.was_logged(&why, Duration::MAX);
        let name = self.pool.name();
        if is_known {
            tracing::debug!(pool = name, "the application still does not boot, next attempt in {pause:?}");
        } else {
            let other = self.pool.fallback_pool().map(|other| other.name().to_owned()).unwrap_or_default();
            let gain = self.pool.config().settings.gain();
            let cost = gain.map(|gain| format!(", which takes {gain} times the processor time")).unwrap_or_default();
            tracing::warn!(
                pool = name,
                "the application does not boot: {why}; the pool {other} serves in classic mode{cost}; next attempt in {pause:?}"
            );
        }
        let mut scheduler = self.pool.lock();
        if !scheduler.serves() {
            // Until a worker is ready.
            scheduler.down = Some(why);
        }
        drop(scheduler);
        self.hand_over(Duration::ZERO);
    }

    /// Moves waiting requests to the fallback pool, if no worker of this pool serves and a request has waited for
    /// `patience`.
    pub(super) fn hand_over(&self, patience: Duration) {
        let Some(other) = self.pool.fallback_pool() else { return };
        let now = Instant::now();
        let mut scheduler = self.pool.lock();
        if scheduler.serves()
            || scheduler.queue.is_empty()
            || scheduler.oldest_wait(now).is_none_or(|wait| wait < patience)
        {
            return;
        }
        let waiting = scheduler.queue.drain();
        drop(scheduler);
        let (name, requests) = (self.pool.name(), waiting.len());
        tracing::info!(pool = name, requests, "no worker serves: moving waiting requests to pool {}", other.name());
        waiting.into_iter().for_each(|pending| other.run_instead(pending, now));
    }

    /// Moves requests that wait too long, and learns from the traffic. Called once per tick.
    pub(super) fn tick_fallback(&mut self) {
        if self.pool.config().yields() {
            self.hand_over(MAX_WAIT);
        }
        self.pool.learned.tick();
        self.learn();
    }

    /// Handles a failed reload: this pool's workers run the old application, so they are given up, and the fallback
    /// pool serves the current one.
    pub(super) fn yield_after_reload(&mut self, why: String) {
        self.waits_for_order = false;
        if let Some(generation) = self.current.take() {
            let mut scheduler = self.pool.lock();
            for index in 0..scheduler.lanes.len() {
                if scheduler.lanes[index].as_ref().is_some_and(|lane| lane.generation == generation.number) {
                    scheduler.drain_lane(index, Instant::now());
                }
            }
            drop(scheduler);
            self.old.push(generation);
        }
        self.yield_after(why);
    }

    /// Handles a warm-up's findings against the boot or against the learned paths: an error in a page, or values that
    /// visitors would share. Returns `true` if the generation is given up.
    pub(super) fn yields_to_findings(&mut self, number: u64, refused: bool, findings: &[Finding]) -> bool {
        let error = findings.iter().find(|finding| finding.is_error);
        let is_next = self.next.as_ref().is_some_and(|(next, _)| next.number == number);
        let gives_up = self.pool.config().yields() || (is_next && self.next_is_learnt);
        if !(refused || error.is_some()) {
            return false;
        }
        if !gives_up {
            self.pool.learned.discard_kept_plan();
            return false;
        }
        let why = format!("warm-up: {}", error.map_or("it was refused", |finding| &finding.text));
        // The next attempt does not use the learned paths, and need not wait.
        let had_learnt = self.pool.learned.refuse();
        if is_next {
            self.fail_reload(why);
        } else if self.current.as_ref().is_some_and(|current| current.number == number)
            && let Some(generation) = self.current.take()
        {
            generation.zygote.kill();
            self.old.push(generation);
            self.yield_after(why);
        }
        if had_learnt {
            self.not_before = None;
        }
        true
    }

    /// Starts a new generation that is warmed up with paths learned from the traffic.
    fn learn(&mut self) {
        let config = self.pool.config();
        let is_calm = self.next.is_none() && self.stop.is_none() && self.failures == 0 && !self.waits_for_order;
        let Some(number) = self.current.as_ref().filter(|current| current.proven).map(|current| current.number) else {
            return;
        };
        let all_serve = self.pool.lock().count(number, WorkerState::is_serving) >= self.target;
        if !config.learns() || !is_calm || !all_serve {
            return;
        }
        let Some((paths, requests)) = self.pool.learned.new_plan(config.warmup()) else { return };
        tracing::info!(
            pool = self.pool.name(),
            requests,
            "warm-up: learned {} from traffic; starting new workers with it",
            paths.join(" ")
        );
        self.reload(oneshot::channel().0);
        self.next_is_learnt = self.next.is_some();
    }

    /// Gives up a generation that was started only for learned paths: the reload's generation has them too.
    pub(super) fn abandon_learnt(&mut self) {
        if std::mem::take(&mut self.next_is_learnt)
            && let Some((generation, _)) = self.next.take()
        {
            self.give_up(generation);
            self.drop_finished_generations();
        }
    }

    /// Handles learned paths that do not work: the serving generation stays. Returns `false` if it was another kind of
    /// reload.
    pub(super) fn forgets_learnt(&mut self) -> bool {
        let was = std::mem::take(&mut self.next_is_learnt);
        if was {
            self.pool.learned.refuse();
        }
        was
    }
}

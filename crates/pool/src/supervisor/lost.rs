//! Handles processes that ended unexpectedly. Requests wait for new processes. They are refused after repeated
//! failed boots, but not because of kills from outside.

use super::Supervisor;
use crate::lane_reader::worker_log::log_error;
use crate::process::end::{Death, End};
use crate::process::worker_state::KillReason;
use crate::supervisor::generation::Generation;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Pause before a process that was killed while booting is started again: the first one, and the maximum. The first
/// kill causes no pause.
const KILLED_PAUSE: Duration = Duration::from_millis(10);
const MAX_KILLED_PAUSE: Duration = Duration::from_millis(200);

impl Supervisor {
    /// Handles the loss of the serving zygote and its workers: another one is started.
    pub(super) fn zygote_lost(&mut self, generation: Generation, end: &End) {
        let pool = self.pool.name();
        if generation.proven {
            tracing::error!(pool, "zygote exited unexpectedly ({end}): starting another");
        } else if end.is_from_outside() && !generation.too_slow {
            self.note_killed(&format!("PHP was killed while it started ({end})"));
        } else if self.not_before.is_none_or(|t| t <= Instant::now()) {
            self.note_failure(boot_failure(end, &generation.zygote.last_output()));
        }
    }

    /// Counts a worker's death, and judges its boot if the worker never served usefully. Unless the server killed the
    /// worker, its zygote reports the cause.
    pub(super) fn worker_gone(&mut self, death: Death) {
        let pool = self.pool.name();
        let Death { worker, pid, generation, lived, ref reason, .. } = death;
        tracing::debug!(pool, worker, pid, generation, ?lived, ?reason, "worker gone");
        self.pool.counters.restarts.fetch_add(1, Ordering::Relaxed);
        self.pool.metrics().restarts.inc(reason.as_ref().map_or("ended", KillReason::label));
        let is_judged = death.counts_against_boot() && self.stop.is_none();
        if let Some(boot_error) = death.boot_error.as_ref().filter(|_| !is_judged) {
            log_error(pool, pid, boot_error);
        }
        let Some(of) = self.generation_mut(generation) else { return };
        if !is_judged || reason.is_some() {
            of.deaths.settled(pid);
            if is_judged {
                self.failed(generation, death.what());
            }
        } else if let Some((death, end)) = of.deaths.useless(death, Instant::now()) {
            self.judge(generation, &death, &end);
        }
    }

    /// Decides whether a worker's death counts against its boot.
    pub(super) fn judge(&mut self, number: u64, death: &Death, end: &End) {
        if !end.is_from_outside() {
            self.failed(number, death.what());
        } else if !death.was_ready && self.current.as_ref().is_some_and(|g| g.number == number) {
            let said = death.boot_error.as_ref().map(|said| format!(": {said}")).unwrap_or_default();
            self.note_killed(&format!("worker {} was killed while it booted ({end}){said}", death.pid));
        }
    }

    /// Gives up waiting for causes of deaths: the zygote is stuck. If the zygote is dead itself, these deaths are part
    /// of its end.
    pub(super) fn give_up_causes(&mut self) {
        for number in self.current.iter().chain(self.next.iter().map(|(g, _)| g)).map(|g| g.number).collect::<Vec<_>>()
        {
            while let Some(generation) = self.generation_mut(number)
                && let Some(death) = generation.deaths.given_up(Instant::now())
            {
                if !generation.zygote.has_hung_up() {
                    self.failed(number, death.what());
                }
            }
        }
    }

    /// Handles a booting process that was killed from outside. This is not a failed boot: requests wait in the queue.
    pub(super) fn note_killed(&mut self, what: &str) {
        let now = Instant::now();
        if self.not_before.is_some_and(|t| t > now) {
            tracing::warn!(pool = self.pool.name(), "{what}");
            return;
        }
        let pause = match self.killed {
            0 => Duration::ZERO,
            times => (KILLED_PAUSE * 2u32.pow(times.min(8) - 1)).min(MAX_KILLED_PAUSE),
        };
        self.killed += 1;
        self.not_before = Some(now + pause);
        tracing::warn!(pool = self.pool.name(), times = self.killed, "{what}; next attempt in {pause:?}");
        self.pool.update_about(|about| about.last_error = Some(what.to_owned()));
    }
}

/// Explains the end of a booting zygote, for the log and the status.
pub(super) fn boot_failure(end: &End, said: &str) -> String {
    if said.is_empty() {
        return format!("PHP did not start ({end}) and printed nothing; is the program of `--php` a howdah-php?");
    }
    format!("PHP did not start ({end}): {said}{}", crate::process::php_host::advice(said))
}

//! Failed boots: a cause is logged as an error once per `REPEAT_AFTER` (once, if there is a fallback), however many
//! workers fail because of it.

use super::Supervisor;
use crate::fault::{Fault, FaultKind};
use std::time::{Duration, Instant};

/// Longest pause between two attempts to start PHP.
const MAX_BACKOFF: Duration = Duration::from_secs(5);
/// Consecutive failed starts after which requests are refused at once while no worker serves, instead of waiting in the
/// queue.
const FAILURES_UNTIL_DOWN: u32 = 3;
/// The log repeats a cause after this time, so its last lines show that the pool is still down.
const REPEAT_AFTER: Duration = Duration::from_secs(60);

impl Supervisor {
    /// Handles a failed start. Without a fallback, requests wait for the next attempt, and are refused after
    /// `FAILURES_UNTIL_DOWN` of them.
    pub(super) fn note_failure(&mut self, why: String) {
        if self.pool.config().yields() {
            return self.yield_after(why);
        }
        let now = Instant::now();
        let (pool, failures) = (self.pool.name(), self.failures + 1);
        if self.not_before.is_some_and(|t| t > now) {
            // Workers that were started together fail together, which counts as one attempt.
            tracing::debug!(pool, failures, "{why}");
            return;
        }
        self.failures = failures;
        let pause = Duration::from_millis(100 * u64::from(failures).pow(2)).min(MAX_BACKOFF);
        self.not_before = Some(now + pause);
        if self.was_logged(&why, REPEAT_AFTER) {
            tracing::debug!(pool = self.pool.name(), failures, "{why}; next attempt in {pause:?}");
        } else {
            tracing::error!(pool = self.pool.name(), failures, "{why}; next attempt in {pause:?}");
        }
        let mut scheduler = self.pool.lock();
        if !scheduler.serves() && self.failures >= FAILURES_UNTIL_DOWN {
            let fault = Fault::with(FaultKind::PoolDown, why.as_str());
            scheduler.fail_queue(&fault);
            scheduler.down = Some(why.clone());
        }
        drop(scheduler);
        // Shown by `status` from the first failure on, while requests still wait for the next attempt.
        self.pool.update_about(|about| about.last_error = Some(why));
    }

    /// `true` if the last failed boot that was logged had this cause, less than `lately` ago. Otherwise remembers it.
    pub(super) fn was_logged(&mut self, why: &str, lately: Duration) -> bool {
        let known =
            self.failure_logged.as_ref().is_some_and(|(at, last)| at.elapsed() < lately && is_same_cause(last, why));
        if !known {
            self.failure_logged = Some((Instant::now(), why.to_owned()));
        }
        known
    }
}

/// `true` if two reasons for failed boots differ only in numbers: each attempt has another process id.
fn is_same_cause(one: &str, other: &str) -> bool {
    let words = |text: &str| {
        text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    words(one) == words(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_differ_only_in_numbers_are_one_cause() {
        assert!(is_same_cause("worker 4711 ended: index.php:1 has $_GET", "worker 9 ended: index.php:1 has $_GET"));
        assert!(!is_same_cause("worker 4711 ended: index.php:1 has $_GET", "worker 9 ended: index.php:1 has $_POST"));
    }
}

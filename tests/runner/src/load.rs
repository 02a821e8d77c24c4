//! Decides when the next test may start: as long as the cores have room, other programs included.
//!
//! Most tests wait for a process, a timer or a socket for most of their time, others compute. The runner need not know
//! which do what: it polls the machine's number of runnable threads and starts tests while it is low.

use std::time::{Duration, Instant};

/// Interval between two polls of the load.
pub(crate) const INTERVAL: Duration = Duration::from_millis(15);

/// Weight of the newest poll in the moving average, which covers about ten polls.
const WEIGHT: f64 = 0.15;

/// Maximum number of concurrent tests, as memory and ports are limited too.
const MAX_TESTS: usize = 24;

/// The moving average of runnable threads, and its limit.
#[derive(Debug)]
pub(crate) struct Load {
    cores: usize,
    max_tests: usize,
    average: f64,
    last_look: Instant,
}

impl Load {
    /// With `threads`, this many tests run at once, whatever the load.
    pub(crate) fn new(threads: Option<usize>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let (least, most) = threads.map_or((cores, MAX_TESTS.max(cores)), |n| (n, n));
        Self { cores: least, max_tests: most, average: 0.0, last_look: Instant::now() }
    }

    /// True if one more test may start in addition to `running` ones. Counts it as one runnable thread until the next
    /// polls show its actual load.
    pub(crate) fn admit(&mut self, running: usize) -> bool {
        self.poll();
        let room = running < self.cores || (running < self.max_tests && self.average < self.bound());
        if room {
            self.average += 0.5;
        }
        room
    }

    /// Half a thread more than cores: a core that is never idle has a waiting thread now and then.
    fn bound(&self) -> f64 {
        f64::from(u32::try_from(self.cores).unwrap_or(u32::MAX)) + 0.5
    }

    fn poll(&mut self) {
        if self.last_look.elapsed() < INTERVAL {
            return;
        }
        self.last_look = Instant::now();
        let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        if let Some(runnable) = runnable(&text) {
            self.average += WEIGHT * (runnable - self.average);
        }
    }
}

/// Runnable threads without this one: the fourth field of `/proc/loadavg` is `runnable/all` (proc(5)).
fn runnable(loadavg: &str) -> Option<f64> {
    let all: u32 = loadavg.split_ascii_whitespace().nth(3)?.split('/').next()?.parse().ok()?;
    Some(f64::from(all.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::{Load, runnable};

    #[test]
    fn the_runner_does_not_count_itself() {
        assert_eq!(runnable("0.20 0.18 0.12 3/80 11206\n"), Some(2.0));
        assert_eq!(runnable("nonsense"), None);
    }

    #[test]
    fn a_given_number_of_tests_is_kept() {
        let mut load = Load::new(Some(2));
        assert!(load.admit(0) && load.admit(1) && !load.admit(2));
    }
}

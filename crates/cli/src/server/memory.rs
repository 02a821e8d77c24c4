//! Watches memory pressure while a revision serves. When memory is short, the pools end idle workers, before the
//! kernel's OOM killer has to choose a process.

use crate::server::pools::Pools;
use howdah_budget::MemoryPressure;
use howdah_observe::Metrics;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Interval of checks. The kernel updates the pressure average every two seconds.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Percentage of time that processes wait for memory (Linux PSI, ten-second average) from which memory counts as short.
const LIMIT: u32 = 10;

/// Memory counts as short from the limit on until pressure falls below half of it: the hysteresis prevents repeated
/// reports.
#[derive(Debug)]
struct MemoryWatch {
    pressure: MemoryPressure,
    is_short: bool,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MemorySample {
    percent: u32,
    is_short: bool,
    changed: bool,
}

impl MemoryWatch {
    fn sample(&mut self) -> MemorySample {
        let percent = self.pressure.percent();
        let is_short = if self.is_short { percent * 2 >= LIMIT } else { percent >= LIMIT };
        let changed = std::mem::replace(&mut self.is_short, is_short) != is_short;
        MemorySample { percent, is_short, changed }
    }
}

/// Starts the task, which ends when the returned set is dropped.
pub(crate) fn start(pools: &Arc<Pools>, metrics: &Arc<Metrics>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let Some(pressure) = MemoryPressure::here() else {
        tracing::debug!(
            "the kernel reports no memory pressure (PSI): idle workers are not stopped when memory is short"
        );
        return tasks;
    };
    tasks.spawn(run(MemoryWatch { pressure, is_short: false }, pools.clone(), metrics.clone()));
    tasks
}

async fn run(mut watch: MemoryWatch, pools: Arc<Pools>, metrics: Arc<Metrics>) {
    let mut look = interval(POLL_INTERVAL);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let MemorySample { percent, is_short, changed } = watch.sample();
        metrics.memory_pressure.set(i64::from(percent));
        if !changed {
            continue;
        }
        let by = watch.pressure.path().display();
        if is_short {
            tracing::warn!(
                "memory is short: processes waited for it {percent} % of the time ({by}); stopping idle workers"
            );
        } else {
            tracing::info!("memory is no longer short ({by})");
        }
        pools.iter().for_each(|pool| pool.set_memory_short(is_short));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn memory_is_short_from_the_limit_until_half_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("proc/pressure/memory");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let says = |percent: u32| fs::write(&file, format!("some avg10={percent}.50 avg60=0.00\n")).unwrap();
        says(0);
        let pressure = MemoryPressure::below(dir.path()).unwrap();
        let mut watch = MemoryWatch { pressure, is_short: false };
        let mut look = |percent| {
            says(percent);
            let seen = watch.sample();
            assert_eq!(seen.percent, percent);
            (seen.is_short, seen.changed)
        };
        assert_eq!(look(9), (false, false));
        assert_eq!(look(10), (true, true));
        assert_eq!(look(40), (true, false));
        assert_eq!(look(5), (true, false));
        assert_eq!(look(4), (false, true));
        assert_eq!(look(9), (false, false));
    }
}

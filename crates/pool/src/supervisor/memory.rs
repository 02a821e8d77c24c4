//! Limits the memory of a pool's workers to `max_pool_memory`, as far as the minimum number of workers allows: measures
//! them periodically, starts no more workers than have room, and retires the largest after their requests.

use super::Supervisor;
use crate::lane::Lane;
use howdah_config::ByteSize;
use std::time::{Duration, Instant};

/// Interval of measurements. Each makes the kernel walk all pages of a worker: some milliseconds per 100 MB.
const INTERVAL: Duration = Duration::from_secs(5);

/// A worker younger than this is not replaced for its size: its successor would be as large.
const MIN_AGE: Duration = Duration::from_secs(60);

const MIB: u64 = 1 << 20;

/// The last measurement of the workers' memory.
#[derive(Debug, Default)]
pub(super) struct MemoryCheck {
    asked: Option<Instant>,
    /// Number of workers that have room; `None`: as many as the pool may have.
    workers: Option<usize>,
    /// The log has the warning that the minimum number of workers does not fit.
    complained: bool,
}

/// Consequence of a measurement.
#[derive(Debug, PartialEq, Eq)]
struct Plan {
    /// Number of workers that have room.
    workers: usize,
    /// Workers to retire with their bytes, the largest first.
    leave: Vec<(u32, u64)>,
}

/// `sizes`: workers with their bytes. `least`: minimum of `Plan::workers`.
fn plan(limit: u64, least: usize, mut sizes: Vec<(u32, u64)>) -> Plan {
    let mut sum: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    let each = (sum / sizes.len().max(1) as u64).max(1);
    let workers = usize::try_from(limit / each).unwrap_or(usize::MAX).max(least).max(1);
    sizes.sort_unstable_by_key(|&(worker, bytes)| (std::cmp::Reverse(bytes), worker));
    let too_much = |&(_, bytes): &(u32, u64)| {
        let is_over = sum > limit;
        sum -= bytes;
        is_over
    };
    Plan { workers, leave: sizes.into_iter().take_while(too_much).collect() }
}

impl Supervisor {
    /// Asks the zygote for the workers' sizes, once per `INTERVAL`.
    pub(super) fn measure(&mut self) {
        let is_time = self.room.asked.is_none_or(|asked| asked.elapsed() >= INTERVAL);
        if self.pool.config().settings.max_pool_memory.is_none() || !is_time || self.stop.is_some() {
            return;
        }
        self.room.asked = Some(Instant::now());
        if let Some(generation) = self.current.as_ref().filter(|generation| generation.booted) {
            // If the zygote is gone, that is reported elsewhere.
            let _ = generation.zygote.measure();
        }
    }

    /// Current maximum number of workers.
    pub(super) fn most_workers(&self) -> usize {
        let most = self.pool.config().max_workers();
        self.room.workers.map_or(most, |room| room.min(most))
    }

    /// Handles a zygote's measurement of its workers and template.
    pub(super) fn measured(&mut self, number: u64, sizes: &[(u32, u64)]) {
        let pool = self.pool.clone();
        let Some(limit) = pool.config().settings.max_pool_memory.map(ByteSize::bytes) else { return };
        if self.current.as_ref().is_none_or(|generation| generation.number != number) {
            return;
        }
        let all: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
        pool.metrics().memory.set(i64::try_from(all).unwrap_or(i64::MAX));
        let mut scheduler = pool.lock();
        let is_ours = |lane: &&Lane| lane.generation == number && lane.state.is_serving();
        let serving = scheduler.lanes.iter().flatten().filter(is_ours);
        let known = serving.filter_map(|lane| {
            let (_, bytes) = sizes.iter().find(|(pid, _)| *pid == lane.pid)?;
            Some((lane.worker, *bytes))
        });
        let known: Vec<(u32, u64)> = known.collect();
        if known.is_empty() {
            return;
        }
        // Workers that finish their last requests are ending anyway; the template of a snapshot stays.
        let least = pool.config().min_workers().max(1);
        let plan = plan(limit, least, known);
        let young: Vec<u32> = scheduler
            .lanes
            .iter()
            .flatten()
            .filter(|lane| lane.started.elapsed() < MIN_AGE)
            .map(|lane| lane.worker)
            .collect();
        let is_young = |worker| young.contains(&worker);
        self.room.workers = Some(plan.workers);
        self.room.complained &= !plan.leave.is_empty();
        for (worker, bytes) in plan.leave {
            let (name, mib, all) = (pool.name(), bytes / MIB, all / MIB);
            if self.target > least {
                self.target -= 1;
                tracing::info!(
                    pool = name,
                    workers = self.target,
                    "workers use {all} MiB, more than `max_pool_memory`: stopping one of {mib} MiB"
                );
            } else if bytes > limit / least as u64 && !is_young(worker) {
                tracing::info!(
                    pool = name,
                    "workers use {all} MiB, more than `max_pool_memory`: replacing one of {mib} MiB"
                );
            } else {
                if !std::mem::replace(&mut self.room.complained, true) {
                    tracing::warn!(
                        pool = name,
                        workers = self.target,
                        "workers use {all} MiB, more than `max_pool_memory`, even with the minimum number of workers: raise it or lower `workers`"
                    );
                }
                return;
            }
            scheduler.drain_lane(worker as usize, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_entries_are_dropped_until_the_rest_fits() {
        let sizes = vec![(0, 30), (1, 80), (2, 50), (3, 40)];
        assert_eq!(plan(200, 1, sizes.clone()), Plan { workers: 4, leave: Vec::new() });
        assert_eq!(plan(199, 1, sizes.clone()), Plan { workers: 3, leave: vec![(1, 80)] });
        assert_eq!(plan(100, 1, sizes.clone()), Plan { workers: 2, leave: vec![(1, 80), (2, 50)] });
        assert_eq!(plan(1, 3, sizes).workers, 3, "the minimum");
        assert_eq!(plan(100, 0, vec![(0, 500)]), Plan { workers: 1, leave: vec![(0, 500)] });
    }
}

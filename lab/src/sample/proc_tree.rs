//! The process tree of a system, read from `/proc`.
//!
//! Processor time comes from the scheduler's counters in nanoseconds (`schedstat` of every thread), because the clock
//! ticks of `stat` would lose up to a hundredth of a second in each of a hundred processes. It is the sum over the tree
//! of a process's own time and the time of its children that have ended. All systems run below a guard that adopts
//! orphans, so the time of a worker that died during the run is not lost.

use procfs::process::{self, Process, Stat};
use std::collections::BTreeMap;

use crate::record::{Memory, Role, Switches};

/// Returns the role of a process by its name.
pub type Classify<'a> = &'a dyn Fn(&str) -> Role;

/// Returns the needed facts of all current processes.
fn all_processes() -> Vec<Stat> {
    let processes = process::all_processes().into_iter().flatten().flatten();
    processes.filter_map(|process| process.stat().ok()).collect()
}

fn below(all: &[Stat], root: u32) -> Vec<&Stat> {
    let mut found: Vec<&Stat> = Vec::new();
    let mut parents = vec![root.cast_signed()];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.ppid == parent) {
            found.push(process);
            parents.push(process.pid);
        }
    }
    found
}

/// Returns all live processes below `root`, without `root` itself.
pub fn descendants(root: u32) -> Vec<u32> {
    let all = all_processes();
    below(&all, root).into_iter().map(|process| process.pid.cast_unsigned()).collect()
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / procfs::ticks_per_second() as f64
}

fn own(stat: &Stat) -> f64 {
    seconds(stat.utime + stat.stime)
}

fn ended_children(stat: &Stat) -> f64 {
    seconds((stat.cutime + stat.cstime).unsigned_abs())
}

fn of_this_process(figure: fn(&Stat) -> f64) -> f64 {
    Process::myself().and_then(|process| process.stat()).map_or(0.0, |stat| figure(&stat))
}

/// Returns the processor time of the lab's own children that have ended: of the load generator, right after it was
/// waited for.
pub fn own_ended_children_seconds() -> f64 {
    of_this_process(ended_children)
}

/// Returns the processor time of the lab's own threads.
pub fn own_seconds() -> f64 {
    of_this_process(own)
}

/// One reading of the trees below some guards.
#[derive(Debug, Clone, Default)]
pub struct TreeReading {
    by_role: BTreeMap<Role, f64>,
    by_process: BTreeMap<String, f64>,
    switches: Switches,
}

impl TreeReading {
    /// Reads the processes below each root; the roots themselves are guards and cost only what they reaped.
    pub fn take(roots: &[u32], classify: Classify<'_>) -> Self {
        let all = all_processes();
        let mut reading = Self::default();
        for root in roots {
            let tree = below(&all, *root);
            // A process that a guard reaped was adopted or was the main process: it has the same role as the rest of
            // its tree, or both.
            let reaped_role = tree.first().map_or(Role::Both, |process| classify(&process.comm));
            if let Some(guard) = all.iter().find(|process| process.pid == root.cast_signed()) {
                reading.add(reaped_role, "(ended)", ended_children(guard));
            }
            for process in tree {
                let role = classify(&process.comm);
                let threads = ThreadTotals::of(process.pid);
                // Threads that have ended count in the ticks only, and fractions of a tick in the counters only.
                let own = own(process).max(threads.seconds);
                reading.add(role, &process.comm, own + ended_children(process));
                reading.switches.voluntary += threads.voluntary;
                reading.switches.involuntary += threads.involuntary;
            }
        }
        reading
    }

    fn add(&mut self, role: Role, name: &str, seconds: f64) {
        *self.by_role.entry(role).or_default() += seconds;
        *self.by_process.entry(name.to_owned()).or_default() += seconds;
    }

    /// Returns the processor time of the whole tree since its start.
    pub fn seconds(&self) -> f64 {
        self.by_role.values().sum()
    }

    /// Returns the processor time by role and by process name since an earlier reading.
    pub fn since(&self, before: &Self) -> (BTreeMap<Role, f64>, BTreeMap<String, f64>) {
        (subtract(&self.by_role, &before.by_role), subtract(&self.by_process, &before.by_process))
    }

    /// Returns the context switches since an earlier reading, without those of processes that have ended in between.
    pub fn switches_since(&self, before: &Self) -> Switches {
        Switches {
            voluntary: self.switches.voluntary.saturating_sub(before.switches.voluntary),
            involuntary: self.switches.involuntary.saturating_sub(before.switches.involuntary),
        }
    }
}

fn subtract<K: Ord + Clone>(after: &BTreeMap<K, f64>, before: &BTreeMap<K, f64>) -> BTreeMap<K, f64> {
    after
        .iter()
        .map(|(key, value)| (key.clone(), (value - before.get(key).copied().unwrap_or(0.0)).max(0.0)))
        .filter(|(_, value)| *value > 0.0)
        .collect()
}

/// Sums over the live threads of a process.
#[derive(Debug, Default)]
struct ThreadTotals {
    seconds: f64,
    voluntary: u64,
    involuntary: u64,
}

impl ThreadTotals {
    fn of(pid: i32) -> Self {
        let mut totals = Self::default();
        let tasks = Process::new(pid).and_then(|process| process.tasks()).into_iter().flatten();
        for task in tasks.flatten() {
            if let Ok(scheduler) = task.schedstat() {
                totals.seconds += scheduler.sum_exec_runtime as f64 / 1e9;
            }
            if let Ok(status) = task.status() {
                totals.voluntary += status.voluntary_ctxt_switches.unwrap_or(0);
                totals.involuntary += status.nonvoluntary_ctxt_switches.unwrap_or(0);
            }
        }
        totals
    }
}

/// Returns the memory of the processes below the roots.
pub fn memory(roots: &[u32]) -> Memory {
    let all = all_processes();
    let mut memory = Memory::default();
    for process in roots.iter().flat_map(|root| below(&all, *root)) {
        memory.processes += 1;
        memory.threads += u32::try_from(process.num_threads).unwrap_or(0);
        let Ok(maps) = Process::new(process.pid).and_then(|process| process.smaps_rollup()) else { continue };
        for map in maps.memory_map_rollup {
            let bytes = |name: &str| map.extension.map.get(name).copied().unwrap_or(0);
            memory.pss_bytes += bytes("Pss");
            memory.rss_bytes += bytes("Rss");
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::FromRead;

    #[test]
    fn tree_is_found_through_every_generation() {
        // The name is in parentheses and may itself contain spaces and parentheses.
        let process = |pid: i32, parent: i32| {
            let zeros = "0 ".repeat(45);
            Stat::from_read(format!("{pid} (php-fpm: (pool) w) S {parent} 1 1 0 -1 {zeros}").as_bytes()).unwrap()
        };
        let all = [process(2, 1), process(3, 2), process(4, 3), process(5, 1)];
        assert_eq!(all[0].comm, "php-fpm: (pool) w");
        let mut pids: Vec<i32> = below(&all, 2).iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [3, 4]);
    }

    #[test]
    fn a_living_child_costs_memory_and_is_counted() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pids = descendants(std::process::id());
        let memory = memory(&[std::process::id()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(pids.contains(&child.id()));
        assert!(memory.pss_bytes > 10_000, "{memory:?}");
        assert!(memory.processes >= 1);
    }

    #[test]
    fn processor_time_of_a_child_is_measured_below_a_clock_tick() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read x; sleep 60"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut seconds = 0.0;
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while seconds == 0.0 && std::time::Instant::now() < patience {
            seconds = ThreadTotals::of(child.id().cast_signed()).seconds;
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seconds > 0.0);
    }
}

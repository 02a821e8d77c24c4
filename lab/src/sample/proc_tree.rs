//! The process tree of a system, read from `/proc`.
//!
//! Processor time comes from the scheduler's counters in nanoseconds (`schedstat` of every thread), because the clock
//! ticks of `stat` would lose up to a hundredth of a second in each of a hundred processes. It is the sum over the tree
//! of a process's own time and the time of its children that have ended. All systems run below a guard that adopts
//! orphans, so the time of a worker that died during the run is not lost.

use std::collections::BTreeMap;
use std::fs;

use crate::record::{Memory, Role, Switches};

/// Decides from a process's name what it is for.
pub type Classify<'a> = &'a dyn Fn(&str) -> Role;

#[derive(Debug, Clone, PartialEq)]
struct Stat {
    pid: u32,
    name: String,
    parent: u32,
    own_ticks: u64,
    ended_children_ticks: u64,
    threads: u32,
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name is in parentheses and may itself contain spaces and parentheses.
    let (head, rest) = text.rsplit_once(") ")?;
    let (pid, name) = head.split_once(" (")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok());
    Some(Stat {
        pid: pid.parse().ok()?,
        name: name.to_owned(),
        parent: u32::try_from(number(1)?).ok()?,
        own_ticks: number(11)? + number(12)?,
        ended_children_ticks: number(13)? + number(14)?,
        threads: u32::try_from(number(17)?).ok()?,
    })
}

fn all_processes() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit())))
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .filter_map(|text| parse_stat(&text))
        .collect()
}

fn below(all: &[Stat], root: u32) -> Vec<&Stat> {
    let mut found: Vec<&Stat> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for process in all.iter().filter(|process| process.parent == parent) {
            found.push(process);
            parents.push(process.pid);
        }
    }
    found
}

/// All live processes below `root`, without `root` itself.
pub fn descendants(root: u32) -> Vec<u32> {
    let all = all_processes();
    below(&all, root).into_iter().map(|process| process.pid).collect()
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Processor time of the lab's own children that have ended: the load generator, right after it was waited for.
pub fn own_ended_children_seconds() -> f64 {
    fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|text| parse_stat(&text))
        .map_or(0.0, |stat| seconds(stat.ended_children_ticks))
}

/// Processor time of the lab's own threads.
pub fn own_seconds() -> f64 {
    fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|text| parse_stat(&text))
        .map_or(0.0, |stat| seconds(stat.own_ticks))
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
            // What a guard reaped was adopted or was the main process: same role as the rest of its tree, or both.
            let reaped_role = tree.first().map_or(Role::Both, |process| classify(&process.name));
            if let Some(guard) = all.iter().find(|process| process.pid == *root) {
                reading.add(reaped_role, "(ended)", seconds(guard.ended_children_ticks));
            }
            for process in tree {
                let role = classify(&process.name);
                let threads = ThreadTotals::of(process.pid);
                // Threads that have ended are in the ticks only, and fractions of a tick are in the counters only.
                let own = seconds(process.own_ticks).max(threads.seconds);
                reading.add(role, &process.name, own + seconds(process.ended_children_ticks));
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

    /// Processor time of the whole tree since its start.
    pub fn seconds(&self) -> f64 {
        self.by_role.values().sum()
    }

    /// Processor time by role and by process name since an earlier reading.
    pub fn since(&self, before: &Self) -> (BTreeMap<Role, f64>, BTreeMap<String, f64>) {
        (subtract(&self.by_role, &before.by_role), subtract(&self.by_process, &before.by_process))
    }

    /// Context switches since an earlier reading. A process that ended in between takes its count with it.
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
    fn of(pid: u32) -> Self {
        let mut totals = Self::default();
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return totals };
        for task in tasks.flatten() {
            if let Ok(text) = fs::read_to_string(task.path().join("schedstat")) {
                let nanoseconds =
                    text.split_whitespace().next().and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
                totals.seconds += nanoseconds as f64 / 1e9;
            }
            if let Ok(text) = fs::read_to_string(task.path().join("status")) {
                totals.voluntary += field(&text, "voluntary_ctxt_switches:");
                totals.involuntary += field(&text, "nonvoluntary_ctxt_switches:");
            }
        }
        totals
    }
}

fn field(text: &str, name: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

/// Memory of the processes below the roots.
pub fn memory(roots: &[u32]) -> Memory {
    let all = all_processes();
    let mut memory = Memory::default();
    for process in roots.iter().flat_map(|root| below(&all, *root)) {
        memory.processes += 1;
        memory.threads += process.threads;
        if let Ok(text) = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)) {
            memory.pss_bytes += field(&text, "Pss:") * 1024;
            memory.rss_bytes += field(&text, "Rss:") * 1024;
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_line_with_an_awkward_name() {
        let line = "4711 (php-fpm: (pool) w) S 99 4711 4711 0 -1 4194560 1 2 3 4 150 50 7 3 20 0 5 0 100 200 300";
        let stat = parse_stat(line).unwrap();
        assert_eq!(
            stat,
            Stat {
                pid: 4711,
                name: "php-fpm: (pool) w".into(),
                parent: 99,
                own_ticks: 200,
                ended_children_ticks: 10,
                threads: 5
            }
        );
        assert_eq!(parse_stat("garbage"), None);
    }

    #[test]
    fn tree_is_found_through_every_generation() {
        let process =
            |pid, parent| Stat { pid, name: String::new(), parent, own_ticks: 0, ended_children_ticks: 0, threads: 1 };
        let all = [process(2, 1), process(3, 2), process(4, 3), process(5, 1)];
        let mut pids: Vec<u32> = below(&all, 2).iter().map(|process| process.pid).collect();
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
    fn processor_time_of_a_child_is_seen_below_a_clock_tick() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read x; sleep 60"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut seconds = 0.0;
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while seconds == 0.0 && std::time::Instant::now() < patience {
            seconds = ThreadTotals::of(child.id()).seconds;
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(seconds > 0.0);
    }

    #[test]
    fn status_fields_are_found_by_exact_name() {
        let text = "Pss_Dirty:\t 9 kB\nPss:\t 42 kB\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(field(text, "Pss:"), 42);
        assert_eq!(field(text, "voluntary_ctxt_switches:"), 5);
        assert_eq!(field(text, "nonvoluntary_ctxt_switches:"), 3);
        assert_eq!(field(text, "absent:"), 0);
    }
}

//! Processes seen through `/proc`: trees, descriptors, and processes left after an end.

use crate::patience;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// Time that a test waits for expected events. It is so long that only events that never come are missed, however
/// little processor time the machine has, and however long a process is stopped meanwhile.
pub const PATIENCE: Duration = Duration::from_secs(45);

/// Identifies a process; distinguishes it from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    pub pid: u32,
    start: u64,
}

#[derive(Debug)]
struct Stat {
    identity: Identity,
    parent: u32,
    group: u32,
    state: char,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain spaces and parentheses itself.
    let rest = &text[text.rfind(')')? + 2..];
    let fields: Vec<&str> = rest.split(' ').collect();
    Some(Stat {
        identity: Identity { pid, start: fields.get(19)?.parse().ok()? },
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        state: fields.first()?.chars().next()?,
    })
}

fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).filter_map(stat).collect()
}

/// The process and all its descendants.
pub fn tree(root: u32) -> BTreeSet<Identity> {
    let processes = all();
    let mut found: BTreeSet<Identity> =
        processes.iter().filter(|p| p.identity.pid == root).map(|p| p.identity).collect();
    loop {
        let pids: BTreeSet<u32> = found.iter().map(|i| i.pid).collect();
        let before = found.len();
        found.extend(processes.iter().filter(|p| pids.contains(&p.parent)).map(|p| p.identity));
        if found.len() == before {
            return found;
        }
    }
}

/// The process that currently has this number.
pub fn identity(pid: u32) -> Option<Identity> {
    stat(pid).map(|stat| stat.identity)
}

/// The direct children of a process.
pub fn children(parent: u32) -> Vec<u32> {
    all().iter().filter(|p| p.parent == parent && p.state != 'Z').map(|p| p.identity.pid).collect()
}

/// Unreaped descendants. Excludes the root itself, which its parent has to reap.
pub fn zombies(root: u32) -> Vec<u32> {
    let members: BTreeSet<u32> = tree(root).iter().map(|i| i.pid).filter(|pid| *pid != root).collect();
    all().iter().filter(|p| p.state == 'Z' && members.contains(&p.identity.pid)).map(|p| p.identity.pid).collect()
}

/// True while the process exists and is not a zombie.
pub fn alive(identity: Identity) -> bool {
    stat(identity.pid).is_some_and(|s| s.identity == identity && s.state != 'Z')
}

/// Living processes among the known ones, and among all with `mark` in their environment or in this process group.
pub fn left_over(known: &BTreeSet<Identity>, mark: &str, group: u32) -> Vec<String> {
    let marked = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|b| *b == 0).any(|entry| entry == mark.as_bytes())
    };
    all()
        .iter()
        .filter(|p| p.state != 'Z' && p.identity.pid != std::process::id())
        .filter(|p| known.contains(&p.identity) || p.group == group || marked(p.identity.pid))
        .map(|p| {
            let line = fs::read(format!("/proc/{}/cmdline", p.identity.pid)).unwrap_or_default();
            format!("{} {}", p.identity.pid, String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

/// Waits until a process is idle: after its response has arrived, a worker still has work, such as restoring its
/// memory. A process that only waits for the processor is not idle.
pub fn wait_until_asleep(pid: u32) {
    let mut seen = 0;
    let asleep = eventually(PATIENCE, || {
        seen = if stat(pid).is_some_and(|s| s.state == 'S') { seen + 1 } else { 0 };
        seen == 4
    });
    assert!(asleep, "process {pid} does not become idle");
}

/// Open descriptors of a process, by kind. Names that differ only in a number count as one kind.
pub fn descriptors(pid: u32) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return kinds };
    for entry in entries.flatten() {
        // A descriptor may be closed between the listing and this call.
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let target = target.to_string_lossy();
        let kind: String = target.chars().filter(|c| !c.is_ascii_digit()).collect();
        *kinds.entry(kind).or_insert(0) += 1;
    }
    kinds
}

/// Sends a signal to a process started by this harness.
pub fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).unwrap_or_else(|| panic!("bad pid {pid}"));
    // The process may have ended already.
    let _ = kill_process(pid, signal);
}

/// Polls `condition` until it is true; returns false after `limit` (see [`patience`]).
pub fn eventually(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience(limit);
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn wait_for_exit(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let mut status = None;
    let _ = eventually(limit, || {
        status = child.try_wait().unwrap_or_else(|e| panic!("wait: {e}"));
        status.is_some()
    });
    status
}

//! Processes of a running test, seen through `/proc`.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::time::Duration;

/// Clock ticks per second in `/proc/PID/stat`: `USER_HZ`, 100 on every architecture of Linux.
const TICKS: u64 = 100;

/// The fields of `/proc/PID/stat` after the name, the state first (proc(5): field 3).
fn stat(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let behind_name = text.get(text.rfind(')')? + 2..)?;
    Some(behind_name.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Processor time of a process and of all its descendants that were waited for.
pub(crate) fn processor_time(pid: i32) -> Duration {
    // utime, stime, cutime, cstime: fields 14 to 17.
    let ticks = stat(pid)
        .map_or(0, |fields| fields.iter().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>());
    Duration::from_millis(ticks * 1000 / TICKS)
}

/// The descendants of a process, parents before their children; without the process itself.
pub(crate) fn descendants(root: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let parents: Vec<(i32, i32)> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, stat(pid)?.get(1)?.parse().ok()?)))
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.remove(0);
    found
}

/// Sends a signal; a process that has ended meanwhile does not matter.
pub(crate) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// True while the process exists and is not a zombie.
pub(crate) fn runs(pid: i32) -> bool {
    stat(pid).and_then(|fields| fields.first().map(|state| state != "Z")).unwrap_or(false)
}

/// True while the process is stopped by a signal.
pub(crate) fn is_stopped(pid: i32) -> bool {
    stat(pid).and_then(|fields| fields.first().map(|state| state == "T")).unwrap_or(false)
}

/// The command line of a process, at most 200 characters.
pub(crate) fn command_line(pid: i32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ").chars().take(200).collect()
}

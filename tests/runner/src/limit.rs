//! Time limits of tests: 60 seconds, or the limit that a test declares by a line `time limit: N s, …` of its output
//! (`howdah_tests::time_limit`). A test that exceeds it is killed with all its processes.

use crate::processes::{command_line, descendants, runs, signal};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The limit of a test that declares none.
pub(crate) const DEFAULT: Duration = Duration::from_secs(60);

/// Time for a test to fail after its servers were killed: its own message says more.
const FAIL_TIMEOUT: Duration = Duration::from_secs(5);

/// Number of final lines of each server's log in a report.
const LOG_LINES: usize = 60;

/// The limit that a test has declared in its output so far.
pub(crate) fn of_output(output: &str) -> Duration {
    let declared = output.lines().rev().find_map(|line| {
        let number = line.split_once("time limit: ")?.1.split_once(" s")?.0;
        number.parse().ok()
    });
    declared.map_or(DEFAULT, Duration::from_secs)
}

/// Appends a report about a test's processes to its output, and kills them.
pub(crate) fn end(test: i32, output: &Path, limit: Duration) {
    let servers = descendants(test);
    let mut report = format!("\nexceeded its time limit of {} s; its processes:\n", limit.as_secs());
    for pid in std::iter::once(&test).chain(&servers) {
        report.push_str(&describe(*pid));
    }
    for log in servers.iter().filter_map(|pid| log_of(*pid)).collect::<BTreeSet<_>>() {
        if log != output {
            report.push_str(&last_lines(&log));
        }
    }
    append(output, &report);
    servers.iter().for_each(|pid| signal(*pid, Signal::KILL));
    let killed = Instant::now();
    while runs(test) && killed.elapsed() < FAIL_TIMEOUT {
        std::thread::sleep(Duration::from_millis(20));
    }
    descendants(test).iter().for_each(|pid| signal(*pid, Signal::KILL));
    signal(test, Signal::KILL);
}

/// Description of a process: its threads' stacks if gdb is installed, else the kernel's information about it.
fn describe(pid: i32) -> String {
    let stacks = Command::new("timeout")
        .args(["--kill-after", "1", "10", "gdb", "-batch", "-nx", "-ex", "thread apply all backtrace 15", "-p"])
        .arg(pid.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let stacks = stacks.ok().filter(|output| output.status.success());
    let stacks = stacks.map_or_else(
        || {
            let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
            format!("waits in {}\n{}", read("wchan"), read("stack"))
        },
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    );
    let lines: Vec<&str> =
        stacks.lines().filter(|line| line.starts_with(['#', 'T', 'w', '['])).take(LOG_LINES).collect();
    format!("process {pid}: {}\n    {}\n", command_line(pid), lines.join("\n    "))
}

/// The file that a process logs to: its standard error output.
fn log_of(pid: i32) -> Option<PathBuf> {
    let file = fs::read_link(format!("/proc/{pid}/fd/2")).ok()?;
    file.is_file().then_some(file)
}

fn last_lines(log: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    format!("end of {}:\n    {}\n", log.display(), last.join("\n    "))
}

fn append(output: &Path, text: &str) {
    let written = File::options().append(true).open(output).and_then(|mut file| file.write_all(text.as_bytes()));
    if written.is_err() {
        eprintln!("{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT, of_output};
    use std::time::Duration;

    #[test]
    fn a_test_declares_its_limit_in_its_output() {
        assert_eq!(of_output("running 1 test\n"), DEFAULT);
        assert_eq!(of_output("running 1 test\ntime limit: 300 s, it builds Symfony\nmore\n"), Duration::from_secs(300));
    }
}

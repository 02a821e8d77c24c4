//! Processes that scripts have started and left behind: `exec('cmd &')` and the like, with all their forks and in any
//! session. When their own parents have ended, the kernel makes them children of the zygote, which is their subreaper.
//! They may run as long as the zygote; it reaps them, and kills all of them when it ends, unless it is killed itself.
//!
//! A script's own forks (`pcntl_fork()`, `proc_open()`) already end with their worker: see `shim/process/fork.c`.

use howdah_transport::descendants::{ChildTermination, has_ended};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Time after which an ended, unannounced child cannot be a worker that the template has just forked.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);
/// Maximum time to wait for killed processes; only a process stuck in the kernel takes longer.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// The zygote's children that are not workers.
pub(crate) struct AdoptedChildren {
    /// Readable when a child has ended.
    signals: OwnedFd,
    /// Processes that have ended and are not reaped yet, each with the time when that was noticed.
    ended: Vec<(Pid, Instant)>,
}

/// Blocks or unblocks SIGCHLD, which only the zygote reads, through its descriptor.
fn mask_child_signal(how: libc::c_int) -> io::Result<libc::sigset_t> {
    // SAFETY: all zeros is a valid set, and the functions get valid pointers.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        if libc::sigprocmask(how, &raw const set, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(set)
    }
}

/// Called in a worker: unblocks the signal, which its scripts expect.
pub(crate) fn forked() {
    let _ = mask_child_signal(libc::SIG_UNBLOCK);
}

impl AdoptedChildren {
    /// Makes this process the subreaper of their processes.
    pub(crate) fn new() -> io::Result<Self> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let set = mask_child_signal(libc::SIG_BLOCK)?;
        // SAFETY: a valid set; the result is checked.
        let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor without another owner.
        Ok(Self { signals: unsafe { OwnedFd::from_raw_fd(fd) }, ended: Vec::new() })
    }

    /// The descriptor to wait on.
    pub(crate) fn signals(&self) -> &OwnedFd {
        &self.signals
    }

    /// In a fork: closes this process's copy of the descriptor, which is not used again.
    pub(crate) fn close_copy(&self) {
        // SAFETY: the value is neither used nor dropped in this process after this.
        unsafe { libc::close(self.signals.as_raw_fd()) };
    }

    /// Time after which to check again even if no signal arrives.
    pub(crate) fn recheck_after(&self) -> Option<Duration> {
        (!self.ended.is_empty()).then_some(UNKNOWN_FOR)
    }

    /// Reaps adopted children that have ended. `known` is true for workers; one forked just now becomes known soon.
    pub(crate) fn reap(&mut self, known: impl Fn(Pid) -> bool) {
        let (mut drained, mut signalled) = ([0u8; 128], false);
        while matches!(rustix::io::read(&self.signals, &mut drained), Ok(1..)) {
            signalled = true;
        }
        // Each end raises a signal, even that of a process that ended before it was reparented. A profile calls this a
        // hundred times a second, and listing the children is expensive.
        if !signalled && self.ended.is_empty() {
            return;
        }
        self.ended.retain(|&(pid, _)| !known(pid));
        for pid in children().into_iter().filter(|&pid| !known(pid) && has_ended(pid)) {
            match self.ended.iter().position(|&(ended, _)| ended == pid) {
                None => self.ended.push((pid, Instant::now())),
                Some(at) if self.ended[at].1.elapsed() >= UNKNOWN_FOR => {
                    self.ended.swap_remove(at);
                    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
                }
                Some(_) => {}
            }
        }
    }
}

/// Kills all children, in any session or group. Their own children become this process's, and are killed too.
pub(crate) fn end_all() {
    let begun = Instant::now();
    let mut ending = ChildTermination::default();
    while !ending.round(&children()) {
        if begun.elapsed() >= LAST_WAIT {
            eprintln!(
                "howdah-php: {} processes of scripts did not end within {LAST_WAIT:?}; giving up",
                children().len()
            );
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// This process's children, including those that have ended.
fn children() -> Vec<Pid> {
    let listed = std::fs::read_to_string("/proc/thread-self/children");
    let pids = match listed {
        Ok(text) => text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        // A kernel without this file.
        Err(_) => children_of(std::process::id()),
    };
    pids.into_iter().filter_map(Pid::from_raw).collect()
}

/// The processes with this parent, from `/proc/PID/stat`.
fn children_of(parent: u32) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |pid: &i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // After the name, which may contain anything: the state, then the parent.
        let rest = text.rfind(')').map_or("", |at| &text[at + 1..]);
        rest.split_ascii_whitespace().nth(1).is_some_and(|of| of.parse() == Ok(parent))
    };
    pids.filter(is_child).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_find_children_find_them() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id() as i32;
        assert!(children_of(std::process::id()).contains(&pid));
        assert!(children().iter().any(|child| child.as_raw_nonzero().get() == pid));
        assert!(!has_ended(Pid::from_raw(pid).unwrap()));
        child.kill().unwrap();
        while !has_ended(Pid::from_raw(pid).unwrap()) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}

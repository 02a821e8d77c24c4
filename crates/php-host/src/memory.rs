//! Gives the zygote access to its workers' memory, and its size: each worker opens its own (`/proc/self/mem` and
//! `smaps_rollup`, for reading) when it starts, and hands the descriptors over. From then on no system call needs
//! rights over the worker, so this works under any user, with Yama and in a sandbox, and the worker notices nothing of
//! it.
//!
//! The file belongs to root while the process is not dumpable, as every worker is. For the moment of opening it the process
//! is dumpable; other processes of its user could take hold of it in that moment (SECURITY.md).
//!
//! Scripts could send something on that socket as well, so a descriptor counts only if the kernel says that it is the memory
//! of a process, and of which.

use howdah_transport::control_socket;
use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// The workers' end of the socket, or -1. They and the template inherit it from the zygote.
static TO_ZYGOTE: AtomicI32 = AtomicI32::new(-1);

/// Messages that are taken in one after the other before the zygote does something else.
const BATCH_LEN: usize = 64;

/// Descriptors that are kept for processes of which the zygote has not heard yet.
const MAX_UNCLAIMED: usize = 128;

/// Content of a process that a descriptor shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    Content,
    Size,
}

/// The zygote's end.
pub(crate) struct Memories {
    socket: OwnedFd,
    /// Of processes that are no children, or not yet: a template announces those it forks on another socket.
    unclaimed: Vec<((i32, Shows), OwnedFd)>,
}

impl Memories {
    /// In the zygote, before its first fork.
    pub(crate) fn new() -> io::Result<Self> {
        let (socket, theirs) = control_socket::pair()?;
        TO_ZYGOTE.store(theirs.into_raw_fd(), Ordering::Relaxed);
        Ok(Self { socket, unclaimed: Vec::new() })
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes in what has come.
    pub(crate) fn receive(&mut self) {
        for _ in 0..BATCH_LEN {
            let Ok(Some((_, fds))) = control_socket::receive(&self.socket, true) else { break };
            self.unclaimed.extend(fds.into_iter().filter_map(|fd| Some((whose(&fd)?, fd))));
        }
        let too_many = self.unclaimed.len().saturating_sub(MAX_UNCLAIMED);
        self.unclaimed.drain(..too_many);
    }

    /// The descriptor that shows this of this process, if it was handed over; once.
    pub(crate) fn claim(&mut self, pid: i32, shows: Shows) -> Option<OwnedFd> {
        let at = self.unclaimed.iter().rposition(|(of, _)| *of == (pid, shows))?;
        Some(self.unclaimed.swap_remove(at).1)
    }
}

/// Bytes of memory that the process has, of which those that it shares count in parts (PSS).
pub(crate) fn size(of: &OwnedFd) -> Option<u64> {
    let mut text = [0; 4096];
    let length = rustix::io::pread(of, &mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The process whose memory a descriptor shows, if any, and the part of it.
fn whose(fd: &OwnedFd) -> Option<(i32, Shows)> {
    /// `PROC_SUPER_MAGIC`: not a file of the same name on a file system that may hang.
    const PROC: libc::c_long = 0x9fa0;
    if rustix::fs::fstatfs(fd).ok()?.f_type != PROC {
        return None;
    }
    let path = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    process_of(path.to_str()?)
}

fn process_of(path: &str) -> Option<(i32, Shows)> {
    let (pid, file) = path.strip_prefix("/proc/")?.split_once('/')?;
    let shows = match file {
        "mem" => Shows::Content,
        "smaps_rollup" => Shows::Size,
        _ => return None,
    };
    Some((pid.parse().ok()?, shows))
}

/// Opens this process's memory and hands it to the zygote. Where that fails, its stacks cannot be read.
pub(crate) fn offer() {
    let socket = TO_ZYGOTE.load(Ordering::Relaxed);
    if socket >= 0
        && let Ok(memory) = open_own()
    {
        // SAFETY: open until `forget`, which takes it out first. One thread.
        let socket = unsafe { BorrowedFd::borrow_raw(socket) };
        // Kernels without it (before 4.14) are not supported otherwise either; all can read their own.
        let size = rustix::fs::open("/proc/self/smaps_rollup", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let fds: Vec<BorrowedFd<'_>> =
            [Some(memory.as_fd()), size.as_ref().ok().map(AsFd::as_fd)].into_iter().flatten().collect();
        // Never waits: a worker must start whatever the zygote does.
        let _ = control_socket::send(socket, b"memory", &fds, true);
    }
}

/// Closes this process's copy of the socket: nothing more is to be handed over, or it is a script's child, which has nothing
/// to say to the zygote.
pub(crate) fn forget() {
    let socket = TO_ZYGOTE.swap(-1, Ordering::Relaxed);
    if socket >= 0 {
        // SAFETY: it was made in this process or inherited, and has no other user now.
        drop(unsafe { OwnedFd::from_raw_fd(socket) });
    }
}

fn open_own() -> io::Result<OwnedFd> {
    let open = || rustix::fs::open("/proc/self/mem", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    match open() {
        Err(rustix::io::Errno::ACCESS) if dumpable_behavior()? == DumpableBehavior::NotDumpable => {
            set_dumpable_behavior(DumpableBehavior::Dumpable)?;
            let opened = open();
            set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
            Ok(opened?)
        }
        opened => Ok(opened?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_memory_of_a_process_counts() {
        let own = open_own().unwrap();
        let pid = i32::try_from(std::process::id()).unwrap();
        assert_eq!(whose(&own), Some((pid, Shows::Content)));
        let rollup = std::fs::File::open("/proc/self/smaps_rollup").unwrap().into();
        assert_eq!(whose(&rollup), Some((pid, Shows::Size)));
        let held = vec![1_u8; 64 << 20];
        assert!(size(&rollup).unwrap() > held.len() as u64 && size(&own).is_none());
        for other in ["/proc/self/maps", "/proc/self/status", "/dev/null", "/etc/passwd"] {
            let file = std::fs::File::open(other).unwrap();
            assert_eq!(whose(&file.into()), None, "{other}");
        }
        assert_eq!(process_of("/proc/12/task/13/mem"), None);
        assert_eq!(process_of("/proc/12/mem (deleted)"), None);
    }

    #[test]
    fn it_reads_what_stands_there() {
        let (own, text) = (open_own().unwrap(), *b"a text");
        let mut read = [0; 6];
        rustix::io::pread(&own, &mut read, (&raw const text).addr() as u64).unwrap();
        assert_eq!(read, text);
    }
}

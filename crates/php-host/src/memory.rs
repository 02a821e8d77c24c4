//! Gives the zygote access to its workers' memory, and its size. Each worker opens its own memory (`/proc/self/mem` and
//! `smaps_rollup`, for reading) when it starts, and sends the descriptors to the zygote. After that no system call
//! needs rights over the worker, so this works under any user, with Yama and in a sandbox, and the worker does not
//! notice when its memory is read.
//!
//! The files belong to root while the process is not dumpable, which is the normal state of workers. So the process is
//! dumpable while it opens them; in that moment other processes of its user could gain access to it (SECURITY.md).
//!
//! Scripts could also send messages on that socket. So a descriptor counts only if the kernel confirms that it is the
//! memory of a process, and of which one.

use howdah_transport::control_socket;
use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

/// The workers' end of the socket, or -1. They and the template inherit it from the zygote.
static TO_ZYGOTE: AtomicI32 = AtomicI32::new(-1);

/// Maximum number of messages that are received in a row before the zygote continues with other work.
const BATCH_LEN: usize = 64;

/// Maximum number of descriptors that are kept for processes that the zygote does not know yet.
const MAX_UNCLAIMED: usize = 128;

/// The kind of file that a descriptor refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryFile {
    Content,
    Size,
}

/// The zygote's end of the socket.
pub(crate) struct WorkerMemory {
    socket: OwnedFd,
    /// Descriptors of processes that are not (yet) known as children: a template announces its forks on another socket.
    unclaimed: Vec<((i32, MemoryFile), OwnedFd)>,
}

impl WorkerMemory {
    /// Creates the socket. Called in the zygote, before its first fork.
    pub(crate) fn new() -> io::Result<Self> {
        let (socket, theirs) = control_socket::pair()?;
        TO_ZYGOTE.store(theirs.into_raw_fd(), Ordering::Relaxed);
        Ok(Self { socket, unclaimed: Vec::new() })
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Receives pending descriptors.
    pub(crate) fn receive(&mut self) {
        for _ in 0..BATCH_LEN {
            let Ok(Some((_, fds))) = control_socket::receive(&self.socket, true) else { break };
            self.unclaimed.extend(fds.into_iter().filter_map(|fd| Some((owner(&fd)?, fd))));
        }
        let too_many = self.unclaimed.len().saturating_sub(MAX_UNCLAIMED);
        self.unclaimed.drain(..too_many);
    }

    /// Returns this descriptor of this process, if it was sent; once.
    pub(crate) fn claim(&mut self, pid: i32, shows: MemoryFile) -> Option<OwnedFd> {
        let at = self.unclaimed.iter().rposition(|(of, _)| *of == (pid, shows))?;
        Some(self.unclaimed.swap_remove(at).1)
    }
}

/// Memory of the process in bytes; shared pages count proportionally (PSS).
pub(crate) fn size(of: &OwnedFd) -> Option<u64> {
    let mut text = [0; 4096];
    let length = rustix::io::pread(of, &mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Process and kind of the memory file behind a descriptor, if it is one.
fn owner(fd: &OwnedFd) -> Option<(i32, MemoryFile)> {
    /// `PROC_SUPER_MAGIC`: rules out a file of the same name on a file system that may hang.
    const PROC: libc::c_long = 0x9fa0;
    if rustix::fs::fstatfs(fd).ok()?.f_type != PROC {
        return None;
    }
    let path = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    process_of(path.to_str()?)
}

fn process_of(path: &str) -> Option<(i32, MemoryFile)> {
    let (pid, file) = path.strip_prefix("/proc/")?.split_once('/')?;
    let shows = match file {
        "mem" => MemoryFile::Content,
        "smaps_rollup" => MemoryFile::Size,
        _ => return None,
    };
    Some((pid.parse().ok()?, shows))
}

/// Opens this process's memory and sends it to the zygote. If that fails, its stacks cannot be read.
pub(crate) fn offer() {
    let socket = TO_ZYGOTE.load(Ordering::Relaxed);
    if socket >= 0
        && let Ok(memory) = open_own()
    {
        // SAFETY: open until `forget`, which resets the number first. One thread.
        let socket = unsafe { BorrowedFd::borrow_raw(socket) };
        // Kernels without this file (before 4.14) are not supported anyway; every process can read its own.
        let size = rustix::fs::open("/proc/self/smaps_rollup", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let fds: Vec<BorrowedFd<'_>> =
            [Some(memory.as_fd()), size.as_ref().ok().map(AsFd::as_fd)].into_iter().flatten().collect();
        // Never blocks: a worker must start, whatever state the zygote is in.
        let _ = control_socket::send(socket, b"memory", &fds, true);
    }
}

/// Closes this process's copy of the socket, because it has nothing more to send or is a script's child, which must not
/// send anything to the zygote.
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
        assert_eq!(owner(&own), Some((pid, MemoryFile::Content)));
        let rollup = std::fs::File::open("/proc/self/smaps_rollup").unwrap().into();
        assert_eq!(owner(&rollup), Some((pid, MemoryFile::Size)));
        let held = vec![1_u8; 64 << 20];
        assert!(size(&rollup).unwrap() > held.len() as u64 && size(&own).is_none());
        for other in ["/proc/self/maps", "/proc/self/status", "/dev/null", "/etc/passwd"] {
            let file = std::fs::File::open(other).unwrap();
            assert_eq!(owner(&file.into()), None, "{other}");
        }
        assert_eq!(process_of("/proc/12/task/13/mem"), None);
        assert_eq!(process_of("/proc/12/mem (deleted)"), None);
    }

    #[test]
    fn memory_is_read_through_the_descriptor() {
        let (own, text) = (open_own().unwrap(), *b"a text");
        let mut read = [0; 6];
        rustix::io::pread(&own, &mut read, (&raw const text).addr() as u64).unwrap();
        assert_eq!(read, text);
    }
}

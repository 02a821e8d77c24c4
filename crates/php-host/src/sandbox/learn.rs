//! A learning sandbox: workers may do everything; needs that the profile `app` would refuse are recorded.
//!
//! Each worker has a filter that notifies a separate process before system calls with paths and ports. That process
//! reads the arguments from the worker's memory, reports new needs to the zygote, and lets the call continue. This is
//! slow, but it sees the calls of libraries, of programs that scripts run, and of what these run. It must never be used
//! as a defense against a hostile worker, which could change the memory after it was read; it decides nothing.

use super::application;
use super::profile::{Access, Profile};
use super::system_calls::{self, Group, Program};
use crate::child;
use howdah_transport::control_socket;
use howdah_transport::zygote_protocol::Need;
use libc::{c_int, c_long};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Pid;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Maximum number of reported needs: an application that keeps opening new files must not fill the server's memory.
const MAX_NEEDS: usize = 2000;

/// The kernel does not accept longer paths either.
const MAX_PATH_LEN: usize = 4096;

/// The zygote's end.
pub(crate) struct Learner {
    pid: Pid,
    socket: OwnedFd,
}

impl Learner {
    /// Forks the process. Also returns the socket on which workers register.
    #[expect(clippy::disallowed_methods, reason = "the zygote has one thread")]
    pub(super) fn start(profile: Profile, groups: Vec<&'static Group>) -> io::Result<(Self, OwnedFd)> {
        let (told, tells) = control_socket::pair()?;
        let (registered, register) = control_socket::pair()?;
        let zygote = rustix::process::getpid();
        // SAFETY: this process has one thread, so the child is a complete copy and may go on running ordinary code.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop((told, register));
                child::die_with(zygote);
                Notes { profile, groups, tells, known: BTreeSet::new() }.take(&registered);
                child::exit(0)
            }
            pid => {
                let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("fork returned no process"))?;
                Ok((Self { pid, socket: told }, register))
            }
        }
    }

    /// The socket to wait on.
    pub(crate) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Returns newly learned needs, if any. An error if the process has ended: workers cannot continue without it.
    pub(crate) fn receive(&self) -> io::Result<Option<Vec<Need>>> {
        match control_socket::receive(&self.socket, true) {
            Ok(Some((bytes, _))) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Ok(None) => Err(io::Error::other("the sandbox's learner has ended: its workers cannot continue")),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn end(&self) {
        let _ = rustix::process::kill_process(self.pid, rustix::process::Signal::KILL);
        let _ = rustix::process::waitpid(Some(self.pid), rustix::process::WaitOptions::empty());
    }
}

/// Has the kernel notify the learner of this worker's system calls.
pub(super) fn enter(calls: &Program, learner: &OwnedFd) -> Result<(), String> {
    let fail = |what: &str| format!("{what}: {}", io::Error::last_os_error());
    enter_sibling()?;
    let program = libc::sock_fprog { len: calls.len() as u16, filter: calls.as_ptr().cast_mut().cast() };
    // SAFETY: plain system calls; the program outlives them, and its instructions have the kernel's layout.
    let listener = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(fail("no_new_privs"));
        }
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    let listener = c_int::try_from(listener).ok().filter(|fd| *fd >= 0).ok_or_else(|| fail("seccomp listener"))?;
    // SAFETY: the call has just returned this descriptor, which has no other owner.
    let listener = unsafe { OwnedFd::from_raw_fd(listener) };
    control_socket::send(learner, b"worker", &[listener.as_fd()], false)
        .map_err(|error| format!("cannot register with the learner: {error}"))
}

/// Allows the learner, which is not an ancestor, to read this process's memory if the kernel requires that (Yama).
pub(super) fn enter_sibling() -> Result<(), String> {
    // SAFETY: a plain system call. Without Yama it fails, and is not needed.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::MAX, 0, 0, 0) };
    Ok(())
}

/// `struct seccomp_notif` of linux/seccomp.h.
#[repr(C)]
#[derive(Default)]
struct SeccompNotification {
    id: u64,
    pid: u32,
    flags: u32,
    call: c_int,
    arch: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct SeccompReply {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const RECEIVE: libc::c_ulong = 0xc050_2100;
const SEND: libc::c_ulong = 0xc018_2101;
/// Flag of an answer: the call continues unchanged.
const CONTINUE: u32 = 1;

/// State of the learning process.
struct Notes {
    profile: Profile,
    groups: Vec<&'static Group>,
    tells: OwnedFd,
    known: BTreeSet<Need>,
}

impl Notes {
    /// Answers notifications until no more workers can register.
    fn take(mut self, registered: &OwnedFd) {
        let mut listeners: Vec<OwnedFd> = Vec::new();
        loop {
            let mut waited = vec![PollFd::new(registered, PollFlags::IN)];
            waited.extend(listeners.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
            match poll(&mut waited, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
            let events: Vec<PollFlags> = waited.iter().map(PollFd::revents).collect();
            for (at, event) in events.iter().enumerate().skip(1).rev() {
                if event.contains(PollFlags::IN) {
                    self.answer(&listeners[at - 1]);
                } else if !event.is_empty() {
                    // All processes with this filter have ended.
                    listeners.swap_remove(at - 1);
                }
            }
            if !events[0].is_empty() {
                match control_socket::receive(registered, true) {
                    Ok(Some((_, fds))) => listeners.extend(fds),
                    Ok(None) => return,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        }
    }

    fn answer(&mut self, listener: &OwnedFd) {
        let mut question = SeccompNotification::default();
        // SAFETY: the kernel fills the structure, which has its layout and is zeroed as required.
        if unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE, &raw mut question) } != 0 {
            return;
        }
        let mut needs = needs(&question, &self.profile, &self.groups);
        let answer = SeccompReply { id: question.id, value: 0, error: 0, flags: CONTINUE };
        // SAFETY: the kernel only reads the structure. A process that has ended in the meantime needs no answer.
        unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw const answer) };
        needs.retain(|need| self.known.len() < MAX_NEEDS && self.known.insert(need.clone()));
        if !needs.is_empty() {
            let _ = serde_json::to_vec(&needs).map(|bytes| control_socket::send(&self.tells, &bytes, &[], false));
        }
    }
}

/// Needs that a call shows and that the profile does not cover.
fn needs(question: &SeccompNotification, profile: &Profile, groups: &[&'static Group]) -> Vec<Need> {
    let call = c_long::from(question.call);
    let a = &question.arguments;
    let at = |directory: u64, path: u64| resolve(question.pid, directory as c_int, path);
    let here = |path: u64| resolve(question.pid, libc::AT_FDCWD, path);
    let written = |path: Option<PathBuf>| path.and_then(|path| writing(&path, profile)).into_iter().collect();
    #[cfg(target_arch = "x86_64")]
    match call {
        libc::SYS_open => return opened(here(a[0]), a[1], profile),
        libc::SYS_creat | libc::SYS_mkdir | libc::SYS_rmdir | libc::SYS_unlink => return written(here(a[0])),
        libc::SYS_rename | libc::SYS_link => {
            return [here(a[0]), here(a[1])].into_iter().flat_map(written).collect();
        }
        _ => {}
    }
    match call {
        libc::SYS_openat => opened(at(a[0], a[1]), a[2], profile),
        libc::SYS_openat2 => {
            let flags = read_memory(question.pid, a[2], 8).and_then(|bytes| bytes.try_into().ok());
            opened(at(a[0], a[1]), flags.map_or(0, u64::from_ne_bytes), profile)
        }
        libc::SYS_truncate => written(here(a[0])),
        libc::SYS_mkdirat | libc::SYS_unlinkat => written(at(a[0], a[1])),
        libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_linkat => {
            [at(a[0], a[1]), at(a[2], a[3])].into_iter().flat_map(written).collect()
        }
        libc::SYS_connect | libc::SYS_bind => port(question, profile).into_iter().collect(),
        libc::SYS_execve => run(here(a[0]), profile),
        libc::SYS_execveat => run(at(a[0], a[1]), profile),
        _ => system_calls::group_of(groups, call, a).map(|name| Need::Allow(name.to_owned())).into_iter().collect(),
    }
}

/// Reads memory of another process; returns fewer bytes if the mapping ends.
fn read_memory(pid: u32, address: u64, length: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0u8; length];
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
    // SAFETY: the kernel writes into the buffer, at most its length; the other address belongs to the other process.
    let read = unsafe { libc::process_vm_readv(pid as i32, &raw const local, 1, &raw const remote, 1, 0) };
    bytes.truncate(usize::try_from(read).ok()?);
    Some(bytes)
}

/// Resolves a path of another process: absolute and without symbolic links, as far as it exists.
fn resolve(pid: u32, directory: c_int, address: u64) -> Option<PathBuf> {
    // First up to the end of the page: the next one may not be mapped.
    let first = MAX_PATH_LEN - (address as usize % MAX_PATH_LEN);
    let mut bytes = read_memory(pid, address, first)?;
    if !bytes.contains(&0) {
        bytes.extend(read_memory(pid, address + first as u64, MAX_PATH_LEN - first).unwrap_or_default());
    }
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let path = PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&bytes[..end]));
    let base = match directory {
        _ if path.is_absolute() => PathBuf::new(),
        libc::AT_FDCWD => std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?,
        descriptor => std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?,
    };
    let full = base.join(path);
    full.canonicalize().ok().or_else(|| {
        let name = full.file_name()?;
        Some(full.parent()?.canonicalize().ok()?.join(name))
    })
}

fn opened(path: Option<PathBuf>, flags: u64, profile: &Profile) -> Vec<Need> {
    let Some(path) = path else { return Vec::new() };
    let flags = flags as c_int;
    if flags & libc::O_PATH != 0 {
        return Vec::new();
    }
    let creates = flags & libc::O_TMPFILE == libc::O_TMPFILE || flags & libc::O_CREAT != 0;
    let mut found = Vec::new();
    if creates || flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0 {
        found.extend(writing(&path, profile));
    }
    found.extend(reading(&path, profile));
    found
}

/// A process's own directory in /proc has a number that the profile cannot contain.
fn is_of_process(path: &Path) -> bool {
    path.starts_with("/proc")
        && path.components().nth(2).is_some_and(|part| part.as_os_str().as_encoded_bytes()[0].is_ascii_digit())
}

fn reading(path: &Path, profile: &Profile) -> Option<Need> {
    const READABLE: &[Access] =
        &[Access::Read, Access::ReadFiles, Access::Append, Access::Write, Access::WriteCode, Access::Execute];
    // Missing files are missing with or without a sandbox, so they do not count as needs.
    let needed = path.exists() && !profile.covers(path, READABLE) && !is_of_process(path);
    needed.then(|| Need::Read(text(path)))
}

/// Writing requires the directory. A PHP file makes it a directory for code.
fn writing(path: &Path, profile: &Profile) -> Option<Need> {
    if profile.covers(path, &[Access::Append]) || is_of_process(path) {
        return None;
    }
    let directory = if path.is_dir() { path } else { path.parent()? };
    let is_code = path.extension().is_some_and(|extension| extension == "php");
    if is_code {
        let needed = !profile.covers(path, &[Access::WriteCode]);
        return needed.then(|| Need::WriteCode(text(directory)));
    }
    let needed = directory.is_dir() && !profile.covers(path, &[Access::Write, Access::WriteCode]);
    needed.then(|| Need::Write(text(directory)))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A program and its interpreter.
fn run(path: Option<PathBuf>, profile: &Profile) -> Vec<Need> {
    let Some(path) = path.filter(|path| path.is_file()) else { return Vec::new() };
    let mut found = vec![path.clone()];
    found.extend(application::interpreter(&path));
    found.retain(|path| !profile.covers(path, &[Access::Execute]));
    found.iter().map(|path| Need::Execute(text(path))).collect()
}

/// The need of connect() or bind() for a TCP port that the profile refuses.
fn port(question: &SeccompNotification, profile: &Profile) -> Option<Need> {
    let address = read_memory(question.pid, question.arguments[1], 8)?;
    let family = u16::from_ne_bytes([*address.first()?, *address.get(1)?]);
    if i32::from(family) != libc::AF_INET && i32::from(family) != libc::AF_INET6 {
        return None;
    }
    let port = u16::from_be_bytes([*address.get(2)?, *address.get(3)?]);
    if port == 0 || !is_stream(question.pid, question.arguments[0] as c_int) {
        return None;
    }
    match c_long::from(question.call) {
        libc::SYS_connect => (!profile.connect.contains(&port)).then_some(Need::Connect(port)),
        _ => (!profile.bind.contains(&port)).then_some(Need::Bind(port)),
    }
}

/// `true` if another process's socket is a stream socket, or if its type cannot be determined.
fn is_stream(pid: u32, descriptor: c_int) -> bool {
    // SAFETY: plain system calls; each descriptor belongs to this function and is closed by its owner.
    let copy = unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if process < 0 {
            return true;
        }
        let process = OwnedFd::from_raw_fd(process as c_int);
        let copy = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0);
        if copy < 0 {
            return true;
        }
        OwnedFd::from_raw_fd(copy as c_int)
    };
    match rustix::net::sockopt::socket_type(&copy) {
        Ok(kind) => kind == rustix::net::SocketType::STREAM,
        Err(_) => true,
    }
}

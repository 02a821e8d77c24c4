//! Descriptors that the parent process left open for this one: from number 3 on the sockets of a unit, as systemd
//! passes them (sd_listen_fds(3)), and any others that the parent did not close.

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of the first descriptor.
const FIRST: RawFd = 3;

/// More than any real unit has.
const MAX_DESCRIPTORS: usize = 1024;

/// Takes the descriptors and makes them close-on-exec. Call it before the process opens anything: otherwise a promised
/// descriptor that is missing could be one that the process opened itself.
///
/// # Errors
/// A descriptor is not open, there are too many, or they were taken before.
pub fn take(count: usize) -> io::Result<Vec<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if count > MAX_DESCRIPTORS {
        return Err(io::Error::other(format!("{count} descriptors exceed the maximum of {MAX_DESCRIPTORS}")));
    }
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Err(io::Error::other("the descriptors were already taken"));
    }
    (FIRST..).take(count).map(take_one).collect()
}

fn close_on_exec(number: RawFd) -> io::Result<()> {
    // SAFETY: the borrow ends with this function, which first checks that the descriptor is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let missing = |_| io::Error::other(format!("descriptor {number} is not open"));
    let flags = fcntl_getfd(borrowed).map_err(missing)?;
    Ok(fcntl_setfd(borrowed, flags | FdFlags::CLOEXEC)?)
}

fn take_one(number: RawFd) -> io::Result<OwnedFd> {
    close_on_exec(number)?;
    // SAFETY: the descriptor is open and has no other owner: the parent left it for this process, `take` returns each
    // number once, and its caller has opened nothing before.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Makes all descriptors from number 3 on close-on-exec, so that the processes that this one starts do not inherit
/// them: a script could use such a descriptor, and a lock on one would outlive its owner.
///
/// # Errors
/// The kernel is older than Linux 5.11 and `/proc/self/fd` cannot be read.
pub fn keep_from_children() -> io::Result<()> {
    // SAFETY: this changes a flag of open descriptors and closes none.
    let done = unsafe { libc::close_range(FIRST.unsigned_abs(), u32::MAX, libc::CLOSE_RANGE_CLOEXEC.cast_signed()) };
    if done == 0 {
        return Ok(());
    }
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()) else { continue };
        if number >= FIRST {
            close_on_exec(number)?;
        }
    }
    Ok(())
}

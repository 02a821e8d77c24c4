//! Where a path or a descriptor really leads, with all links resolved.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

/// The kernel's suffix for the name of a deleted file.
pub(super) const DELETED: &[u8] = b" (deleted)";

/// Where a path leads, all links resolved: the kernel walks it once, where the C library would look at each part of it.
pub(crate) fn real_path_of(path: &Path) -> io::Result<PathBuf> {
    let target = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    match real_path(target.as_fd()) {
        Ok(real) if real.is_absolute() && !real.as_os_str().as_bytes().ends_with(DELETED) => Ok(real),
        // Without /proc; or a name that only looks so.
        _ => std::fs::canonicalize(path),
    }
}

/// `true` if no descriptor was left, which says nothing about the file.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Where a descriptor leads, by the kernel's own word.
pub(super) fn real_path(file: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let target = readlinkat(CWD, link, Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(target.into_bytes())))
}

//! Resolves paths and descriptors to real paths, with all links resolved.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

/// The kernel's suffix for the name of a deleted file.
pub(super) const DELETED: &[u8] = b" (deleted)";

/// Resolves all links of a path. The kernel walks it once, while `realpath` of the C library checks each component.
pub(crate) fn real_path_of(path: &Path) -> io::Result<PathBuf> {
    let target = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    match real_path(target.as_fd()) {
        Ok(real) if real.is_absolute() && !real.as_os_str().as_bytes().ends_with(DELETED) => Ok(real),
        // No /proc, or a file whose name really ends like that of a deleted one.
        _ => std::fs::canonicalize(path),
    }
}

/// `true` if the process or the system is out of descriptors. The file may well exist.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// Returns the real path of a descriptor, as the kernel reports it.
pub(super) fn real_path(file: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    let target = readlinkat(CWD, link, Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(target.into_bytes())))
}

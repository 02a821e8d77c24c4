//! Opens log files, and creates missing ones readable by their owner and group only. While the server still runs as
//! root, other users with write access to the directory cannot redirect root's writes.

use rustix::fs::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOwner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

static OWNER: OnceLock<LogOwner> = OnceLock::new();

/// Sets the user that this root process will switch to. Log files are opened with that user's rights where these
/// suffice; otherwise root opens them and changes their owner.
pub fn will_belong_to(owner: LogOwner) {
    let _ = OWNER.set(owner);
}

/// Opens a log for appending, and creates it if necessary.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    match OWNER.get().filter(|_| rustix::process::geteuid().is_root()) {
        Some(owner) => open_as_root(path, owner),
        None => plainly(path),
    }
}

fn plainly(path: &Path) -> io::Result<File> {
    // Opening a FIFO for writing alone blocks until a reader opens it; opening it for reading and writing does not.
    let is_pipe = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    OpenOptions::new().read(is_pipe).append(true).create(true).mode(0o640).open(path)
}

fn open_as_root(path: &Path, owner: &LogOwner) -> io::Result<File> {
    match as_user(owner, || plainly(path)) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
        opened => return opened,
    }
    // The user's rights do not suffice. A user with write access to the directory could redirect root's writes to any
    // file by a symbolic link.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = parent.canonicalize()?;
    for part in directory.ancestors() {
        let found = std::fs::metadata(part)?;
        let sticky = found.mode() & 0o1000 != 0 && part != directory;
        if found.uid() != 0 || (found.mode() & 0o022 != 0 && !sticky) {
            let why = format!("users other than root may change {}, but the log's user may not", part.display());
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
    }
    let file = plainly(path)?;
    if file.metadata()?.is_file() {
        rustix::fs::fchown(&file, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))?;
    }
    Ok(file)
}

/// Runs `act` with a user's rights. Uses per-thread system calls, so that other threads keep root's rights.
fn as_user<T>(owner: &LogOwner, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    let groups: Vec<Gid> = owner.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    let (own_groups, own_gid) = (rustix::process::getgroups()?, rustix::process::getegid());
    let enter = || {
        set_thread_groups(&groups)?;
        set_thread_res_gid(None, Some(gid), None)?;
        set_thread_res_uid(None, Some(uid), None)
    };
    let entered: rustix::io::Result<()> = enter();
    let result = if entered.is_ok() { act() } else { Err(ErrorKind::PermissionDenied.into()) };
    // In reverse order: restoring the user restores root's rights.
    set_thread_res_uid(None, Some(Uid::ROOT), None)?;
    set_thread_res_gid(None, Some(own_gid), None)?;
    set_thread_groups(&own_groups)?;
    result
}

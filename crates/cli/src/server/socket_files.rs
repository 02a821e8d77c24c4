//! Files of Unix sockets: those that the server must remove, and their directories.

use howdah_config::{ListenAddr, MissingDirectory, SocketPlace};
use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Socket files that the server must not remove, because their creator does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    pub(crate) others: Vec<PathBuf>,
}

impl Files {
    /// Returns the files of these addresses that the server must remove.
    pub(crate) fn own<'a>(&self, addresses: impl IntoIterator<Item = &'a ListenAddr>) -> Vec<PathBuf> {
        let paths = addresses.into_iter().filter_map(file_of).map(Path::to_owned);
        paths.filter(|path| !self.others.contains(path)).collect()
    }

    /// `true` if the address has a file that the server must remove.
    pub(crate) fn owns(&self, addr: &ListenAddr) -> bool {
        file_of(addr).is_some_and(|path| !self.others.iter().any(|other| other == path))
    }
}

/// The file of a Unix socket.
pub(crate) fn file_of(addr: &ListenAddr) -> Option<&Path> {
    match addr.place() {
        SocketPlace::Unix(path) => Some(path),
        SocketPlace::Tcp(_) => None,
    }
}

/// Mode that systemd gives to directories of services (`RuntimeDirectoryMode=`).
const RUNTIME_MODE: u32 = 0o755;

/// `true` if the server creates this directory at its start. Root does so in `/run`, which is empty after each boot, as
/// systemd does for a service.
pub(crate) fn is_made_at_start(missing: &MissingDirectory) -> bool {
    rustix::process::geteuid().is_root() && missing.path().parent() == Some(Path::new("/run"))
}

/// Creates the missing directories of these sockets that are the server's to create. Failures are reported when the
/// socket is bound.
pub(crate) fn make_directories<'a>(addresses: impl IntoIterator<Item = &'a ListenAddr>) {
    let missing = addresses.into_iter().filter_map(file_of).filter_map(MissingDirectory::of).filter(is_made_at_start);
    for missing in missing {
        let path = missing.path();
        if DirBuilder::new().mode(RUNTIME_MODE).create(path).is_ok() {
            // Independent of the umask.
            let _ = std::fs::set_permissions(path, Permissions::from_mode(RUNTIME_MODE));
        }
    }
}

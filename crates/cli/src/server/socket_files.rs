//! Files of Unix sockets: which of them are the server's to remove, and the directories that they are in.

use howdah_config::{ListenAddr, NoDirectory, SocketPlace};
use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Files of Unix sockets that are not the server's: their creator removes them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    pub(crate) others: Vec<PathBuf>,
}

impl Files {
    /// Those that are the server's to remove, of these.
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

/// The mode of directories that systemd makes for services (`RuntimeDirectoryMode=`).
const RUNTIME_MODE: u32 = 0o755;

/// `true` if the server makes this directory at its start: root does in `/run`, which is empty after each boot, as
/// systemd does for the service.
pub(crate) fn is_made_at_start(missing: &NoDirectory) -> bool {
    rustix::process::geteuid().is_root() && missing.path().parent() == Some(Path::new("/run"))
}

/// Makes the directories of these sockets that the server makes itself. What cannot be made is reported by the socket.
pub(crate) fn make_directories<'a>(addresses: impl IntoIterator<Item = &'a ListenAddr>) {
    let missing = addresses.into_iter().filter_map(file_of).filter_map(NoDirectory::of).filter(is_made_at_start);
    for missing in missing {
        let path = missing.path();
        if DirBuilder::new().mode(RUNTIME_MODE).create(path).is_ok() {
            // Whatever the umask was.
            let _ = std::fs::set_permissions(path, Permissions::from_mode(RUNTIME_MODE));
        }
    }
}

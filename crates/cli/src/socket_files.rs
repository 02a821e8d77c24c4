//! Files of Unix sockets: which of them are the server's to remove.

use howdah_config::ListenAddr;
use std::path::{Path, PathBuf};

/// Files of Unix sockets that are not the server's: whoever made them removes them.
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

    /// Whether the address has a file that is the server's to remove.
    pub(crate) fn owns(&self, addr: &ListenAddr) -> bool {
        file_of(addr).is_some_and(|path| !self.others.iter().any(|other| other == path))
    }
}

/// The file of a Unix socket.
pub(crate) fn file_of(addr: &ListenAddr) -> Option<&Path> {
    match addr {
        ListenAddr::Unix(path) => Some(path),
        ListenAddr::Tcp(_) | ListenAddr::Https(_) => None,
    }
}

//! A value that depends on the target of a link, which a deployment switches. The link is checked at the beginning of
//! each request, and the first check after a switch makes a value for the new target. Requests that began earlier keep
//! the old value, so no request sees two releases.
//!
//! A check is one system call. The value must keep its directory open, so that the kernel cannot reuse its inode number
//! for another directory.

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Device and inode of a directory.
type Identity = (u64, u64);

/// The current release behind a link.
#[derive(Debug)]
pub(crate) struct Releases<T> {
    link: PathBuf,
    /// The link's last known target and the value for it; `None` for the first value, which the caller keeps.
    now: ArcSwap<(Option<Identity>, Option<Arc<T>>)>,
    /// Held while the next value is made. Other requests wait, because they must use it too.
    making: Mutex<()>,
}

impl<T> Releases<T> {
    /// Starts with the current target of this link.
    pub(crate) fn new(link: &Path) -> Self {
        let now = ArcSwap::from_pointee((identity(link), None));
        Self { link: link.to_path_buf(), now, making: Mutex::new(()) }
    }

    /// Returns the current value. `first` is the value for the link's first target. `make` makes the value for a new
    /// target from the previous value. If it fails, the previous value stays until the link is switched again.
    pub(crate) fn now(&self, first: &Arc<T>, make: impl FnOnce(&T, PathBuf) -> Option<T>) -> Arc<T> {
        let site = |known: &(_, Option<Arc<T>>)| known.1.as_ref().unwrap_or(first).clone();
        // In the middle of a deployment the link may be missing.
        let is_there = |known: &(Option<Identity>, _)| {
            let found = identity(&self.link);
            found.is_none() || found == known.0
        };
        let known = self.now.load();
        if is_there(&known) {
            return site(&known);
        }
        let _making = self.making.lock();
        let known = self.now.load();
        if is_there(&known) {
            return site(&known);
        }
        let before = site(&known);
        let Ok(place) = self.link.canonicalize() else { return before };
        let found = identity(&place);
        let next = make(&before, place).map_or(before, Arc::new);
        self.now.store(Arc::new((found, Some(next.clone()))));
        next
    }
}

fn identity(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

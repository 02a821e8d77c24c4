//! The value made for the target of a link that a deployment moves, checked at the beginning of each request: the first
//! check after a move makes a new one for the new target. Requests that began earlier keep the old one, so no request
//! sees two releases.
//!
//! A check is one system call. The value must hold its directory open, so that no other directory can be mistaken for
//! it.

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory, whatever its name.
type Identity = (u64, u64);

/// The current release behind a link.
#[derive(Debug)]
pub(crate) struct Releases<T> {
    link: PathBuf,
    /// Where the link led, and what was made for that place; none for what there was at first.
    now: ArcSwap<(Option<Identity>, Option<Arc<T>>)>,
    /// Held while the next one is made. Other requests wait, because they must run on it too.
    making: Mutex<()>,
}

impl<T> Releases<T> {
    /// Those that this link leads to.
    pub(crate) fn new(link: &Path) -> Self {
        let now = ArcSwap::from_pointee((identity(link), None));
        Self { link: link.to_path_buf(), now, making: Mutex::new(()) }
    }

    /// The current one. `first` was made for the link's first target; `make` makes the next one for another target,
    /// from the previous one. If it fails, the previous one stays until the link moves again.
    pub(crate) fn now(&self, first: &Arc<T>, make: impl FnOnce(&T, PathBuf) -> Option<T>) -> Arc<T> {
        let site = |known: &(_, Option<Arc<T>>)| known.1.as_ref().unwrap_or(first).clone();
        // Between two steps of a deployment there may be no link.
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

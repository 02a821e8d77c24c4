//! What a link leads to that a deployment moves, for those who look at the beginning of each request: from the first look
//! after it was moved there is another one of what was made for the place that it led to. Who began before goes on with that
//! of before, so no request sees two releases.
//!
//! A look is one system call. The directory that is in use must be held open by what is made, so that no other directory can
//! be taken for it.

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory, whatever its name.
type Identity = (u64, u64);

/// See above.
#[derive(Debug)]
pub(crate) struct Releases<T> {
    link: PathBuf,
    /// Where the link led, and what was made for that place; none for what there was at first.
    now: ArcSwap<(Option<Identity>, Option<Arc<T>>)>,
    /// Held by whoever makes the next one. The others wait: what they respond with is to be the next one, too.
    making: Mutex<()>,
}

impl<T> Releases<T> {
    /// Those that this link leads to.
    pub(crate) fn new(link: &Path) -> Self {
        let now = ArcSwap::from_pointee((identity(link), None));
        Self { link: link.to_path_buf(), now, making: Mutex::new(()) }
    }

    /// What there is now. `first` was made where the link led at first; `make` makes the next one for another place, from
    /// the one of before. If it cannot, that one stays until the link is moved again.
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

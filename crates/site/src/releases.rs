//! The releases of a site whose root is a link that is followed for each request: a deployment moves the link, and from the
//! next request on the site is another one, made of the same settings. Who began before goes on with the one of before, so no
//! request sees two releases.
//!
//! A look at the link is one system call. The directory of a site that is in use is held open, so no other can be taken for
//! it.

use crate::site::Site;
use arc_swap::ArcSwap;
use howdah_config::SiteSettings;
use parking_lot::Mutex;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory, whatever its name.
type Identity = (u64, u64);

/// See above.
#[derive(Debug)]
pub(crate) struct Releases {
    link: PathBuf,
    now: ArcSwap<(Option<Identity>, Option<Arc<Site>>)>,
    /// Held by whoever makes the next one.
    making: Mutex<()>,
}

impl Releases {
    /// Those that this link leads to. The first is the site itself that has this.
    pub(crate) fn new(link: &Path) -> Self {
        let now = ArcSwap::from_pointee((identity(link), None));
        Self { link: link.to_path_buf(), now, making: Mutex::new(()) }
    }

    /// The site as it is now; `first` is the one that was made with the settings.
    pub(crate) fn now(&self, first: &Arc<Site>) -> Arc<Site> {
        let known = self.now.load();
        let site = || known.1.as_ref().unwrap_or(first).clone();
        let found = identity(&self.link);
        // Between two steps of a deployment there may be no link.
        if found == known.0 || found.is_none() {
            return site();
        }
        let Some(_making) = self.making.try_lock() else { return site() };
        let before = site();
        let root = match self.link.canonicalize() {
            Ok(root) if root != before.root => root,
            _ => return before,
        };
        let settings = SiteSettings { root, ..before.settings.clone() };
        match Site::release(&before, settings) {
            Ok(next) => {
                let next = Arc::new(next);
                tracing::info!(target: "howdah::site", site = next.settings.name, root = %next.root.display(), "the root leads elsewhere");
                self.now.store(Arc::new((identity(&next.root), Some(next.clone()))));
                next
            }
            Err(why) => {
                tracing::error!(target: "howdah::site", site = before.settings.name, "{why}; the release of before stays");
                // Not tried again before it leads elsewhere.
                self.now.store(Arc::new((found, Some(before.clone()))));
                before
            }
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

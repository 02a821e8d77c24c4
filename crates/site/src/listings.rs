//! Cache of directory listings: a large directory takes tens of milliseconds to read.

use bytes::Bytes;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

/// Time for which a listing is reused if its directory has not changed. Sizes and times of its files may have changed.
const CACHE_TIME: Duration = Duration::from_secs(5);
/// Maximum number of cached listings per site, and their total size in bytes.
const MAX_PAGES: usize = 64;
const MAX_BYTES: usize = 4 << 20;

/// A directory, and the path under which it was requested.
pub(crate) type Key = (PathBuf, Vec<u8>);

/// The cached listings of a site.
#[derive(Debug, Default)]
pub(crate) struct Listings(Mutex<Vec<Page>>);

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) key: Key,
    /// The directory's modification time.
    pub(crate) changed: SystemTime,
    pub(crate) made: Instant,
    pub(crate) text: Bytes,
}

impl Listings {
    pub(crate) fn get(&self, key: &Key, changed: SystemTime) -> Option<Bytes> {
        let mut pages = self.0.lock();
        pages.retain(|page| page.made.elapsed() < CACHE_TIME);
        pages.iter().find(|page| page.key == *key && page.changed == changed).map(|page| page.text.clone())
    }

    pub(crate) fn keep(&self, page: Page) {
        let mut pages = self.0.lock();
        pages.retain(|other| other.key != page.key);
        let mut bytes = pages.iter().map(|page| page.text.len()).sum::<usize>() + page.text.len();
        while !pages.is_empty() && (pages.len() >= MAX_PAGES || bytes > MAX_BYTES) {
            bytes -= pages.remove(0).text.len();
        }
        if bytes <= MAX_BYTES {
            pages.push(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_cached_while_their_directory_is_unchanged_within_limits() {
        let listings = Listings::default();
        let (now, changed) = (Instant::now(), SystemTime::UNIX_EPOCH);
        let key = |number: usize| (PathBuf::from(format!("/{number}")), b"/".to_vec());
        let page = |number, length| Page { key: key(number), changed, made: now, text: vec![0; length].into() };
        listings.keep(page(1, 10));
        assert!(listings.get(&key(1), changed).is_some());
        assert!(listings.get(&key(1), changed + Duration::from_secs(1)).is_none(), "the directory has changed");
        assert!(listings.get(&key(2), changed).is_none());
        listings.keep(page(1, MAX_BYTES + 1));
        assert!(listings.get(&key(1), changed).is_none(), "too long to be kept");
        (0..1000).for_each(|number| listings.keep(page(number, 100)));
        assert_eq!(listings.0.lock().len(), MAX_PAGES);
        (0..1000).for_each(|number| listings.keep(page(number, MAX_BYTES / 3)));
        assert_eq!(listings.0.lock().len(), 3);
        if let Some(old) = now.checked_sub(CACHE_TIME) {
            listings.keep(Page { made: old, ..page(2000, 1) });
            assert!(listings.get(&key(2000), changed).is_none(), "sizes on it may be old");
        }
    }
}

//! The cache of open files: bounded and sharded. Entries are revalidated on each use, or once they are older than
//! `static.revalidate_after`.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::coding::Coding;
use super::content::Content;

const SHARDS: usize = 16;

/// A file with its precompressed twins.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) plain: Arc<Content>,
    /// Twins that are not older than the file, smallest first.
    pub(super) twins: Vec<Arc<Content>>,
    /// Time of the last revalidation, in milliseconds of the owner's clock.
    pub(super) checked: AtomicU64,
    /// Time of the last search for new twins, on the same clock.
    pub(super) twins_checked: AtomicU64,
    /// `true` if a write right after loading could leave the timestamps unchanged. The file is then reloaded at the
    /// next revalidation.
    pub(super) loaded_within_a_tick: bool,
    /// Used since the eviction last considered the entry.
    used: AtomicBool,
}

impl Opened {
    pub(super) fn new(plain: Content, twins: Vec<Arc<Content>>, now: u64, loaded_within_a_tick: bool) -> Self {
        Self {
            plain: Arc::new(plain),
            twins,
            checked: AtomicU64::new(now),
            twins_checked: AtomicU64::new(now),
            loaded_within_a_tick,
            used: AtomicBool::new(false),
        }
    }

    pub(super) fn twin(&self, coding: Coding) -> Option<&Arc<Content>> {
        self.twins.iter().find(|twin| twin.coding == Some(coding))
    }

    /// Number of descriptors that it holds.
    fn cost(&self) -> usize {
        1 + self.twins.len()
    }
}

#[derive(Debug, Default)]
struct Shard {
    files: HashMap<Box<Path>, Arc<Opened>>,
    /// Each key of `files` once, in the order of eviction.
    order: VecDeque<Box<Path>>,
    cost: usize,
}

/// Open files by path.
#[derive(Debug)]
pub(super) struct Cache {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    /// Maximum number of descriptors per shard.
    capacity: usize,
}

impl Cache {
    /// Creates a cache for about `capacity` descriptors; 0 disables it.
    pub(super) fn new(capacity: usize) -> Self {
        Self { shards: Default::default(), hasher: RandomState::new(), capacity: capacity.div_ceil(SHARDS) }
    }

    fn shard(&self, path: &Path) -> MutexGuard<'_, Shard> {
        #[allow(clippy::cast_possible_truncation)]
        let at = self.hasher.hash_one(path.as_os_str()) as usize % SHARDS;
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, path: &Path) -> Option<Arc<Opened>> {
        let shard = self.shard(path);
        let opened = shard.files.get(path)?;
        if !opened.used.load(Ordering::Relaxed) {
            opened.used.store(true, Ordering::Relaxed);
        }
        Some(Arc::clone(opened))
    }

    pub(super) fn insert(&self, path: &Path, opened: &Arc<Opened>) {
        if self.capacity == 0 {
            return;
        }
        // Closed after the lock is released.
        let mut evicted = Vec::new();
        let mut shard = self.shard(path);
        shard.cost += opened.cost();
        match shard.files.insert(path.into(), Arc::clone(opened)) {
            Some(old) => {
                shard.cost -= old.cost();
                evicted.push(old);
            }
            None => shard.order.push_back(path.into()),
        }
        // Second chance: evict the oldest entry unless it was used since it was last considered. Each other entry is
        // spared at most once, so the loop ends. An insertion never evicts its own entry.
        let mut chances = shard.order.len();
        while shard.cost > self.capacity && shard.order.len() > 1 {
            let Some(oldest) = shard.order.pop_front() else { break };
            let spared = *oldest == *path
                || (chances > 0
                    && shard.files.get(&oldest).is_some_and(|file| file.used.swap(false, Ordering::Relaxed)));
            chances = chances.saturating_sub(1);
            if spared {
                shard.order.push_back(oldest);
            } else if let Some(old) = shard.files.remove(&oldest) {
                shard.cost -= old.cost();
                evicted.push(old);
            }
        }
    }

    pub(super) fn remove(&self, path: &Path) {
        let mut shard = self.shard(path);
        if let Some(old) = shard.files.remove(path) {
            shard.cost -= old.cost();
            shard.order.retain(|key| **key != *path);
        }
    }

    pub(super) fn clear(&self) {
        for shard in &self.shards {
            let old = std::mem::take(&mut *shard.lock().unwrap_or_else(PoisonError::into_inner));
            drop(old);
        }
    }

    /// Number of descriptors held.
    pub(super) fn descriptors(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).cost).sum()
    }
}

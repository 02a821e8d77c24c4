//! Bodies that were compressed before: found by a hash of their bytes, verified by comparing the bytes themselves.
//!
//! A page that PHP generates anew for each request is often identical to the last byte. A cache hit then costs one
//! comparison, while compressing takes 100 to 1000 µs. The hash only finds a candidate. A cached body is used only if
//! all bytes equal the stored original's, so a hash collision, deliberate or not, costs no more than a comparison. The
//! body may lie in memory that its worker can still change; the bytes that were compared were equal. Results for files
//! are stored with the file's identity in place of an original.
//!
//! *Two hashes.* As all bytes are compared anyway, the first hash samples only the two ends of a body and pieces in
//! between, 3 KB in total. Bodies that differ only elsewhere (a token in the middle of a page) share this hash, and the
//! first one stored takes its slot. If another body holds the slot, or before a body is stored, the hash of all bytes
//! is computed. Bodies are found under that hash as well, so pages that differ in a few bytes do not evict each other.
//!
//! *Shared, not one per thread.* A lookup holds a lock for about 50 ns, to find an entry and increment two reference
//! counts. Hashing, comparing and compressing happen outside the lock. With 64 threads and 10 000 lookups a second
//! each, a single lock would be held 3 % of the time, and there are several. A cache per thread would avoid that, but
//! compress each body once per thread and have only a fraction of the memory.
//!
//! *Second sighting.* The first time a body is seen, only its key (the hash of all bytes) is recorded, in a table of
//! fixed size in which new keys overwrite old ones. Bodies that contain a nonce or a time are never seen again, so they
//! neither use memory nor evict others.
//!
//! *Originals are copied*, although the body could be shared: it may be a slice of a mapped file, whose bytes change
//! with the file, or of a larger buffer, which it would keep alive without being counted. The copy is made once per
//! entry, before compression, and costs a twentieth of the compression.
//!
//! Eviction is CLOCK, by bytes, within a shard.

use super::Coding;
use bytes::Bytes;
use howdah_protocol::Whole;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hashes a body. Tests use weaker functions.
pub type Hasher = fn(&[u8]) -> u64;

/// Minimum size of a shard in bytes, if there are several. A cache of less than twice this size has one shard.
const SHARD_BYTES: usize = 4 * 1024 * 1024;
const MAX_SHARDS: usize = 16;
/// Keys that a shard remembers after one sighting (8 KB).
const SEEN: usize = 1024;
/// Bytes at each end of a body that the first hash reads.
const ENDS: usize = 512;
/// Number of pieces between the ends that the first hash reads, and their length in bytes.
const SAMPLES: usize = 32;
const SAMPLE_LEN: usize = 64;
/// Total number of bytes that the first hash reads. It reads a body of this length or less completely.
const SAMPLE: usize = 2 * ENDS + SAMPLES * SAMPLE_LEN;

/// Cost of an entry in addition to its two bodies: key, slot, index, two reference counts.
const OVERHEAD: usize = 256;

/// Cache of compressed bodies, keyed by their originals. Clones share the same cache.
#[derive(Debug, Clone)]
pub struct Cache {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    hasher: Hasher,
    shards: Box<[Mutex<Shard>]>,
    /// Bytes that one shard may hold.
    budget: usize,
}

/// Result of a lookup that records the body as seen.
#[derive(Debug)]
pub enum CacheLookup {
    /// Cached: the encoded body, or `None` if encoding it is known to be useless.
    Hit(Option<Bytes>),
    /// Seen recently, so it should be stored once it is compressed.
    Again(Admission),
    /// Not seen before, too large, or the cache is disabled.
    New,
}

/// Result of the first hash.
#[derive(Debug)]
pub enum Found {
    /// Cached, as in `CacheLookup::Hit`.
    Hit(Option<Bytes>),
    /// Another body with the same first hash holds the slot.
    Other,
    /// No body has this first hash, or the body is too large to be cached.
    Nothing,
}

/// A body to look up, wherever its bytes are stored.
pub trait Original {
    fn length(&self) -> usize;
    /// Fills `to` with the bytes from position `from`.
    fn copy_to(&self, from: usize, to: &mut [u8]);
    /// `true` if the body equals `other`.
    fn equals(&self, other: &[u8]) -> bool;
}

impl Original for [u8] {
    fn length(&self) -> usize {
        self.len()
    }
    fn copy_to(&self, from: usize, to: &mut [u8]) {
        to.copy_from_slice(&self[from..from + to.len()]);
    }
    fn equals(&self, other: &[u8]) -> bool {
        self == other
    }
}

impl Original for Whole {
    fn length(&self) -> usize {
        self.len()
    }
    fn copy_to(&self, from: usize, to: &mut [u8]) {
        Self::copy_to(self, from, to);
    }
    fn equals(&self, other: &[u8]) -> bool {
        Self::equals(self, other)
    }
}

/// A body to store once it is compressed.
#[derive(Debug)]
pub struct Admission {
    cache: Arc<Inner>,
    /// Key by the first hash. It is used if its slot is free.
    first: Key,
    key: Key,
    original: Bytes,
}

impl Admission {
    /// The cache's own copy of the body, which is the one to compress.
    pub fn original(&self) -> &Bytes {
        &self.original
    }

    /// Stores the encoded body.
    pub fn complete(self, encoded: Bytes) {
        self.store(Some(encoded));
    }

    /// Records that encoding this body is useless.
    pub fn useless(self) {
        self.store(None);
    }

    fn store(self, encoded: Option<Bytes>) {
        let Self { cache, first, key, original } = self;
        let key = if cache.shard(&first).has(&first) { key } else { first };
        let removed = cache.shard(&key).insert(Entry { key, original, encoded, used: false }, cache.budget);
        // Freed after the lock is released.
        drop(removed);
    }
}

impl Cache {
    /// Creates a cache of this many bytes; 0 disables it.
    pub fn new(bytes: usize) -> Self {
        Self::with_hasher(bytes, xxhash_rust::xxh3::xxh3_64)
    }

    /// Creates a cache with another hash function.
    pub fn with_hasher(bytes: usize, hasher: Hasher) -> Self {
        let count = if bytes == 0 { 0 } else { (bytes / SHARD_BYTES).clamp(1, MAX_SHARDS) };
        let shards = (0..count).map(|_| Mutex::default()).collect();
        Self { inner: Arc::new(Inner { hasher, shards, budget: bytes.checked_div(count).unwrap_or(0) }) }
    }

    /// Looks up a body with this coding, and records it as seen.
    pub fn look(&self, coding: Coding, body: &[u8]) -> CacheLookup {
        match self.find(coding, body) {
            Found::Hit(encoded) => CacheLookup::Hit(encoded),
            Found::Other | Found::Nothing => self.look_closely(coding, body),
        }
    }

    /// Looks up a body with this coding by its first hash, which reads only a sample of it.
    pub fn find(&self, coding: Coding, body: &(impl Original + ?Sized)) -> Found {
        if self.is_too_large(body.length()) {
            return Found::Nothing;
        }
        let key = Key { hash: self.sample(body), length: body.length(), coding, whole: false };
        self.find_by(&key, body)
    }

    /// Looks up a body by the hash of all its bytes, after `find` failed, and records it as seen.
    pub fn look_closely(&self, coding: Coding, body: &[u8]) -> CacheLookup {
        if self.is_too_large(body.len()) {
            return CacheLookup::New;
        }
        let key = Key { hash: (self.inner.hasher)(body), length: body.len(), coding, whole: true };
        if let Found::Hit(encoded) = self.find_by(&key, body) {
            return CacheLookup::Hit(encoded);
        }
        if !self.inner.shard(&key).seen_before(&key) {
            return CacheLookup::New;
        }
        let original = Bytes::copy_from_slice(body);
        let first = Key { hash: self.sample(body), whole: false, ..key };
        CacheLookup::Again(Admission { cache: Arc::clone(&self.inner), first, key, original })
    }

    /// `true` if a body would take more than half of a shard: it would evict too many others.
    fn is_too_large(&self, length: usize) -> bool {
        length + OVERHEAD > self.inner.budget / 2
    }

    fn find_by(&self, key: &Key, body: &(impl Original + ?Sized)) -> Found {
        let found = self.inner.shard(key).find(key);
        let Some((original, encoded, used)) = found else { return Found::Nothing };
        if body.equals(&original) {
            return Found::Hit(encoded);
        }
        self.inner.shard(key).not_found(key, used);
        Found::Other
    }

    /// The first hash.
    pub(super) fn sample(&self, body: &(impl Original + ?Sized)) -> u64 {
        let length = body.length();
        let mut sample = [0; SAMPLE];
        if length <= SAMPLE {
            body.copy_to(0, &mut sample[..length]);
            return (self.inner.hasher)(&sample[..length]);
        }
        let (ends, pieces) = sample.split_at_mut(2 * ENDS);
        let (head, foot) = ends.split_at_mut(ENDS);
        body.copy_to(0, head);
        body.copy_to(length - ENDS, foot);
        // The middle of each of `SAMPLES` equal parts between the two ends.
        let part = (length - 2 * ENDS) / SAMPLES;
        for (index, piece) in pieces.chunks_exact_mut(SAMPLE_LEN).enumerate() {
            body.copy_to(ENDS + index * part + (part - SAMPLE_LEN) / 2, piece);
        }
        (self.inner.hasher)(&sample)
    }

    /// Number of entries, and their size including the overhead.
    #[cfg(test)]
    pub(super) fn usage(&self) -> (usize, usize) {
        let shards = self.inner.shards.iter().map(lock);
        shards.fold((0, 0), |(entries, bytes), shard| (entries + shard.index.len(), bytes + shard.bytes))
    }
}

impl Inner {
    fn shard(&self, key: &Key) -> MutexGuard<'_, Shard> {
        // The upper half of the hash selects the shard; the lower bits select the slot in `seen`.
        lock(&self.shards[(key.hash >> 32) as usize % self.shards.len()])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // A poisoned shard is still consistent: nothing panics between two dependent changes.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    hash: u64,
    length: usize,
    coding: Coding,
    /// `true` if `hash` covers all bytes, `false` for the first hash.
    whole: bool,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    original: Bytes,
    encoded: Option<Bytes>,
    /// Used since the clock hand last passed the entry.
    used: bool,
}

impl Entry {
    fn cost(&self) -> usize {
        self.original.len() + self.encoded.as_ref().map_or(0, Bytes::len) + OVERHEAD
    }
}

#[derive(Debug)]
struct Shard {
    index: HashMap<Key, usize>,
    slots: Vec<Option<Entry>>,
    free: Vec<usize>,
    hand: usize,
    bytes: usize,
    seen: Box<[u64]>,
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            index: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            hand: 0,
            bytes: 0,
            seen: vec![0; SEEN].into(),
        }
    }
}

impl Shard {
    fn has(&self, key: &Key) -> bool {
        self.index.contains_key(key)
    }

    /// Returns the two bodies with this key, and the entry's `used` flag from before.
    fn find(&mut self, key: &Key) -> Option<(Bytes, Option<Bytes>, bool)> {
        let entry = self.slots.get_mut(*self.index.get(key)?)?.as_mut()?;
        let used = std::mem::replace(&mut entry.used, true);
        Some((entry.original.clone(), entry.encoded.clone(), used))
    }

    /// Restores `used`, which `find` set on another body's entry, so that entries with only collisions are evicted.
    fn not_found(&mut self, key: &Key, used: bool) {
        if let Some(entry) = self.index.get(key).and_then(|place| self.slots.get_mut(*place)?.as_mut()) {
            entry.used = used;
        }
    }

    /// Records the key. Returns `true` if it was recorded before.
    fn seen_before(&mut self, key: &Key) -> bool {
        let place = key.hash as usize % SEEN;
        let coding = (key.coding.algorithm as u64) << 8 | u64::from(key.coding.level);
        // Never 0, which marks an empty slot.
        let mark = (key.hash ^ (key.length as u64).rotate_left(40) ^ coding.rotate_left(20)) | 1;
        std::mem::replace(&mut self.seen[place], mark) == mark
    }

    /// Stores an entry and returns the entries evicted for it.
    fn insert(&mut self, entry: Entry, budget: usize) -> Vec<Entry> {
        let mut removed = Vec::new();
        // Another thread has stored the same body in the meantime, or the keys collide: the newer entry wins.
        if let Some(place) = self.index.get(&entry.key).copied() {
            removed.extend(self.remove(place));
        }
        let cost = entry.cost();
        if cost > budget {
            return removed;
        }
        while self.bytes + cost > budget {
            let Some(victim) = self.advance() else { break };
            removed.extend(self.remove(victim));
        }
        self.bytes += cost;
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.index.insert(entry.key, place);
        self.slots[place] = Some(entry);
        removed
    }

    /// Moves the clock hand to the next entry that was not used since the hand last passed it.
    fn advance(&mut self) -> Option<usize> {
        // Two rounds: in the first, every entry may be in use.
        for _ in 0..2 * self.slots.len() {
            self.hand = (self.hand + 1) % self.slots.len();
            if let Some(entry) = &mut self.slots[self.hand]
                && !std::mem::take(&mut entry.used)
            {
                return Some(self.hand);
            }
        }
        None
    }

    fn remove(&mut self, place: usize) -> Option<Entry> {
        let entry = self.slots[place].take()?;
        self.index.remove(&entry.key);
        self.bytes -= entry.cost();
        self.free.push(place);
        Some(entry)
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;

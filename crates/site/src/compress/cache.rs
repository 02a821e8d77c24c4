//! Bodies that were compressed before: found by a hash of their bytes, verified by comparing the bytes themselves.
//!
//! A page that PHP puts together anew for each request is often the same to the last byte. Then the work of a hit is one
//! comparison, where compressing takes a hundred to a thousand microseconds. The hash only finds a candidate: a body is
//! taken from the cache if all its bytes equal the stored original's, so a collision, made or met by chance, costs a
//! comparison and nothing else. The body may lie where its worker can still change it: then what was compared was equal.
//!
//! *Two hashes.* As the bytes are compared anyway, the first hash reads the two ends of a body and pieces from between, 3 KB
//! together. Bodies that differ elsewhere only (a token in the middle of a page) share it, and the first of them that is
//! stored has its place. Where another one has it, and before anything is stored, the hash of all bytes is taken: bodies
//! stored under that one are found as well, so pages that differ in a few bytes do not push each other out.
//!
//! *Shared, not one per thread.* A lookup holds a lock for about 50 ns, to find an entry and count two references up;
//! hashing, comparing and compressing happen outside. With 64 threads that look up 10 000 bodies a second each, one lock
//! would be taken 3 % of the time, and there are several. A cache per thread would save that and would compress each
//! body once per thread, in memory divided by the number of threads.
//!
//! *Second sighting.* The first time a body is seen only its key is noted, in a table of fixed size that forgets by
//! being overwritten (by the hash of all bytes). Bodies with a nonce or a clock in them never get further, so they
//! neither cost memory nor push out others.
//!
//! *Originals are copied*, although the body at hand could be shared: it may be a slice of a mapped file (whose bytes
//! change with the file, under the stored copy) or of a larger buffer (which it would keep alive, uncounted). The copy is
//! made once per entry, before compression, and costs a twentieth of that.
//!
//! Eviction is CLOCK, by bytes, within a shard.

use super::Coding;
use bytes::Bytes;
use howdah_protocol::Whole;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hashes a body. Tests put in worse ones.
pub type Hasher = fn(&[u8]) -> u64;

/// Memory that a shard should at least have; a cache of this size or less is one shard.
const SHARD_BYTES: usize = 4 * 1024 * 1024;
const MAX_SHARDS: usize = 16;
/// Keys that a shard remembers after one sighting (8 KB).
const SEEN: usize = 1024;
/// Bytes at each end of a body that the first hash reads.
const ENDS: usize = 512;
/// Pieces from between them that it reads, and how long they are.
const SAMPLES: usize = 32;
const SAMPLE_LEN: usize = 64;
/// All that it reads; a body of this length or less is read whole.
const SAMPLE: usize = 2 * ENDS + SAMPLES * SAMPLE_LEN;

/// Cost of an entry in addition to its two bodies: key, slot, index, two reference counts.
const OVERHEAD: usize = 256;

/// Compressed bodies by their originals. A clone is the same cache.
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

/// Cached forms of a body.
#[derive(Debug)]
pub enum Sighting {
    /// It is here: the encoded body, or `None` if encoding it was found useless.
    Hit(Option<Bytes>),
    /// It was seen not long ago and is worth a place; to be filled once the body is compressed.
    Again(Admission),
    /// It is new (or too large, or the cache is off).
    New,
}

/// Result of the first hash.
#[derive(Debug)]
pub enum Found {
    /// The body is here: as `Sighting::Hit`.
    Hit(Option<Bytes>),
    /// Another body has its place.
    Other,
    /// Nothing is there.
    Nothing,
}

/// A body that is looked for, wherever it lies.
pub trait Original {
    /// Its length.
    fn length(&self) -> usize;
    /// Copies bytes from this position on.
    fn copy_to(&self, from: usize, to: &mut [u8]);
    /// `true` if these are its bytes.
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

/// A place in the cache that waits for its encoded body.
#[derive(Debug)]
pub struct Admission {
    cache: Arc<Inner>,
    /// The place that is tried first.
    first: Key,
    key: Key,
    original: Bytes,
}

impl Admission {
    /// The cache's own copy of the body, which is the one to compress.
    #[must_use]
    pub fn original(&self) -> &Bytes {
        &self.original
    }

    /// Stores the encoded body.
    pub fn complete(self, encoded: Bytes) {
        self.store(Some(encoded));
    }

    /// Stores that encoding this body is useless.
    pub fn useless(self) {
        self.store(None);
    }

    fn store(self, encoded: Option<Bytes>) {
        let Self { cache, first, key, original } = self;
        let key = if cache.shard(&first).has(&first) { key } else { first };
        let removed = cache.shard(&key).insert(Entry { key, original, encoded, used: false }, cache.budget);
        // Freed here, after the lock.
        drop(removed);
    }
}

/// Figures for `status` and metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bodies taken from the cache.
    pub hits: u64,
    /// Bodies not found.
    pub misses: u64,
    /// Bodies whose key was found with other bytes behind it.
    pub collisions: u64,
    /// Entries that made room for others.
    pub evictions: u64,
    /// Entries now.
    pub entries: u64,
    /// Current size, including the overhead of entries.
    pub bytes: u64,
}

impl Cache {
    /// A cache of this many bytes; of none, it finds and stores nothing.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self::with_hasher(bytes, xxhash_rust::xxh3::xxh3_64)
    }

    /// A cache with another hash.
    #[must_use]
    pub fn with_hasher(bytes: usize, hasher: Hasher) -> Self {
        let count = if bytes == 0 { 0 } else { (bytes / SHARD_BYTES).clamp(1, MAX_SHARDS) };
        let shards = (0..count).map(|_| Mutex::default()).collect();
        Self { inner: Arc::new(Inner { hasher, shards, budget: bytes.checked_div(count).unwrap_or(0) }) }
    }

    /// Looks for a body encoded like this, and notes that it was seen.
    #[must_use]
    pub fn look(&self, coding: Coding, body: &[u8]) -> Sighting {
        match self.find(coding, body) {
            Found::Hit(encoded) => Sighting::Hit(encoded),
            Found::Other | Found::Nothing => self.look_closely(coding, body),
        }
    }

    /// Looks for a body encoded like this by its first hash, which reads little of it.
    #[must_use]
    pub fn find(&self, coding: Coding, body: &(impl Original + ?Sized)) -> Found {
        if self.is_too_large(body.length()) {
            return Found::Nothing;
        }
        let key = Key { hash: self.sample(body), length: body.length(), coding, whole: false };
        self.find_by(&key, body)
    }

    /// Looks for a body that `find` has not found by the hash of all its bytes, and notes that it was seen.
    #[must_use]
    pub fn look_closely(&self, coding: Coding, body: &[u8]) -> Sighting {
        if self.is_too_large(body.len()) {
            return Sighting::New;
        }
        let key = Key { hash: (self.inner.hasher)(body), length: body.len(), coding, whole: true };
        if let Found::Hit(encoded) = self.find_by(&key, body) {
            return Sighting::Hit(encoded);
        }
        let mut shard = self.inner.shard(&key);
        shard.stats.misses += 1;
        if !shard.seen_before(&key) {
            return Sighting::New;
        }
        drop(shard);
        let original = Bytes::copy_from_slice(body);
        let first = Key { hash: self.sample(body), whole: false, ..key };
        Sighting::Again(Admission { cache: Arc::clone(&self.inner), first, key, original })
    }

    /// An entry that would take more than half of a shard is not worth the others that it evicts.
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
        // From the middle of each of the equal parts of what lies between.
        let part = (length - 2 * ENDS) / SAMPLES;
        for (index, piece) in pieces.chunks_exact_mut(SAMPLE_LEN).enumerate() {
            body.copy_to(ENDS + index * part + (part - SAMPLE_LEN) / 2, piece);
        }
        (self.inner.hasher)(&sample)
    }

    /// The figures of all shards together.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut all = Stats::default();
        for shard in &self.inner.shards {
            let shard = lock(shard);
            all.hits += shard.stats.hits;
            all.misses += shard.stats.misses;
            all.collisions += shard.stats.collisions;
            all.evictions += shard.stats.evictions;
            all.entries += shard.index.len() as u64;
            all.bytes += shard.bytes as u64;
        }
        all
    }
}

impl Inner {
    fn shard(&self, key: &Key) -> MutexGuard<'_, Shard> {
        // The upper half picks the shard, the lower bits a place among the keys seen.
        lock(&self.shards[(key.hash >> 32) as usize % self.shards.len()])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // No shard is ever left half changed by a panic: nothing panics between two changes that belong together.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    hash: u64,
    length: usize,
    coding: Coding,
    /// Of all bytes.
    whole: bool,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    original: Bytes,
    encoded: Option<Bytes>,
    /// Found since the clock's hand last passed.
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
    stats: Stats,
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
            stats: Stats::default(),
        }
    }
}

impl Shard {
    fn has(&self, key: &Key) -> bool {
        self.index.contains_key(key)
    }

    /// The two bodies behind this key, and whether they were found since the clock's hand last passed.
    fn find(&mut self, key: &Key) -> Option<(Bytes, Option<Bytes>, bool)> {
        let entry = self.slots.get_mut(*self.index.get(key)?)?.as_mut()?;
        let used = std::mem::replace(&mut entry.used, true);
        // Counted as a hit here, under the one lock that a hit takes; put right if the bytes differ.
        self.stats.hits += 1;
        Some((entry.original.clone(), entry.encoded.clone(), used))
    }

    /// The entry that `find` returned was another body's.
    fn not_found(&mut self, key: &Key, used: bool) {
        self.stats.hits -= 1;
        self.stats.collisions += 1;
        // An entry that only stands in the way of others is to go some time.
        if let Some(entry) = self.index.get(key).and_then(|place| self.slots.get_mut(*place)?.as_mut()) {
            entry.used = used;
        }
    }

    /// Notes the key and tells whether it was noted before.
    fn seen_before(&mut self, key: &Key) -> bool {
        let place = key.hash as usize % SEEN;
        let coding = (key.coding.algorithm as u64) << 8 | u64::from(key.coding.level);
        // Never 0, which marks an empty place.
        let mark = (key.hash ^ (key.length as u64).rotate_left(40) ^ coding.rotate_left(20)) | 1;
        std::mem::replace(&mut self.seen[place], mark) == mark
    }

    /// Stores an entry and returns what had to go for it.
    fn insert(&mut self, entry: Entry, budget: usize) -> Vec<Entry> {
        let mut removed = Vec::new();
        // Another thread may have compressed the same body meanwhile, or it is a collision: the newer one stays.
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
            self.stats.evictions += 1;
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

    /// Moves the clock's hand to an entry that has not been found since the hand last passed it.
    fn advance(&mut self) -> Option<usize> {
        // Two rounds: the first may find every entry used.
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

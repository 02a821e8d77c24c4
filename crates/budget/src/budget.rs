//! A budget: its size in bytes, and its use.
//!
//! Each thread keeps a small reserve, taken from the budget in advance. Most charges that are made and returned within
//! one thread, as by a request that does not wait, cost two plain loads and stores and no atomic read-modify-write,
//! unless a connection's `Share` counts them.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Maximum number of threads with a reserve, counted from the process's start; further ones have none.
const MAX_THREADS: usize = 80;

/// Maximum bytes that a thread draws in advance at a time; its reserve may be twice as large.
const RESERVE: u64 = 128 * 1024;

/// Bytes up to which a charge may use the part of a budget that is reserved for small holders. A connection may hold
/// four times as much.
pub(crate) const SMALL_SHARE: u64 = 64 * 1024;

/// `pressure` of an exhausted budget.
const FULL: u64 = 100;

/// Resource of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Memory,
    /// Temporary files.
    Spool,
}

impl Kind {
    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Spool => "spool",
        }
    }
}

/// A number in a separate cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CachePadded(AtomicU64);

/// Bytes that the whole server may use.
#[derive(Debug)]
pub struct Budget {
    kind: Kind,
    limit: u64,
    reserve: u64,
    /// Bytes taken, the threads' reserves included. Never above `limit`.
    taken: CachePadded,
    refused: AtomicU64,
    /// Bytes that each thread has reserved and not used. Each entry is written by its thread only.
    reserves: [CachePadded; MAX_THREADS],
}

impl PartialEq for Budget {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Budget {}

/// The calling thread's number among those that have reserves.
fn thread() -> Option<usize> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    let mine = MINE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(NEXT.fetch_add(1, Relaxed));
        }
        mine.get()
    });
    (mine < MAX_THREADS).then_some(mine)
}

impl Budget {
    /// A budget of `limit` bytes. Budgets live as long as the server and are never freed, so charges need no reference
    /// count.
    pub fn new(kind: Kind, limit: u64) -> &'static Self {
        Box::leak(Box::new(Self {
            kind,
            limit,
            // A thread may hold twice its reserve: with 64 threads, an eighth of the budget.
            reserve: (limit / 1024).min(RESERVE),
            taken: CachePadded::default(),
            refused: AtomicU64::new(0),
            reserves: std::array::from_fn(|_| CachePadded::default()),
        }))
    }

    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Its size in bytes.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Number of bytes in use.
    pub fn used(&self) -> u64 {
        let reserved: u64 = self.reserves.iter().map(|reserve| reserve.0.load(Relaxed)).sum();
        // The counters change while they are read, so the difference may be negative.
        self.taken.0.load(Relaxed).saturating_sub(reserved)
    }

    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Counts a refusal, for callers that check `has_room` or `is_full` instead of taking bytes.
    pub fn note_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Limit for large holders: the rest is reserved for small ones.
    pub(crate) const fn soft_limit(&self) -> u64 {
        self.limit - self.limit / 8
    }

    /// Maximum bytes for one connection.
    pub const fn share(&self) -> u64 {
        self.limit / 8
    }

    /// `true` if this many bytes are available now.
    pub fn has_room(&self, bytes: u64) -> bool {
        let most = if bytes <= SMALL_SHARE { self.limit } else { self.soft_limit() };
        self.taken.0.load(Relaxed).saturating_add(bytes) <= most
    }

    /// `true` if less than a thirty-second of the budget is left.
    pub fn is_full(&self) -> bool {
        self.taken.0.load(Relaxed) > self.limit - self.limit / 32
    }

    /// Scarcity in percent: 0 up to three quarters of the limit, 100 when nothing is left.
    pub fn pressure(&self) -> u64 {
        let (taken, calm) = (self.taken.0.load(Relaxed), self.limit / 4 * 3);
        if taken <= calm { 0 } else { ((taken - calm) * FULL / (self.limit - calm).max(1)).min(FULL) }
    }

    /// Takes bytes unless that would exceed `most` bytes taken in total.
    pub(crate) fn take(&self, bytes: u64, most: u64) -> bool {
        if bytes <= self.reserve
            && let Some(own) = self.own_reserve()
        {
            let have = own.load(Relaxed);
            if have >= bytes {
                own.store(have - bytes, Relaxed);
                return true;
            }
            if self.take_shared(bytes + self.reserve, most.min(self.soft_limit())) {
                own.store(have + self.reserve, Relaxed);
                return true;
            }
        }
        self.take_shared(bytes, most)
    }

    /// Takes bytes from the shared counter. `Relaxed`: the counter does not publish other data.
    fn take_shared(&self, bytes: u64, most: u64) -> bool {
        let taken = self
            .taken
            .0
            .fetch_update(Relaxed, Relaxed, |taken| taken.checked_add(bytes).filter(|taken| *taken <= most));
        taken.is_ok()
    }

    /// Returns bytes, possibly taken by another thread.
    pub(crate) fn give(&self, bytes: u64) {
        let mut back = bytes;
        if let Some(own) = self.own_reserve() {
            let have = own.load(Relaxed) + bytes;
            let keep = if have <= 2 * self.reserve { have } else { self.reserve };
            own.store(keep, Relaxed);
            back = have - keep;
        }
        if back > 0 {
            self.taken.0.fetch_sub(back, Relaxed);
        }
    }

    fn own_reserve(&self) -> Option<&AtomicU64> {
        Some(&self.reserves[thread()?].0)
    }
}

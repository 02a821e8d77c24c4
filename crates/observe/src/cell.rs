//! The cells that hold metrics: lock-free counters and gauges. (Durations are in `histogram`.) Cells that every request
//! updates are sharded, one cache line per shard, so that threads rarely write to the same line.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The number of shards; a power of two.
pub(crate) const SHARDS: usize = 8;

/// Maximum number of distinct labels of one [`Labelled`] counter.
const LABELS: usize = 24;

/// The shard of the calling thread.
pub(crate) fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
        }
        mine.get()
    })
}

/// A value padded to separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

/// Total processor time of processes that start and end, in microseconds. The total never decreases, in whatever order
/// the processes' ends are reported.
#[derive(Debug, Default)]
pub struct ProcessorTime {
    ended: AtomicU64,
    shown: AtomicU64,
}

impl ProcessorTime {
    /// Adds the final processor time of an ended process.
    pub fn ended(&self, us: u64) {
        self.ended.fetch_add(us, Relaxed);
    }

    /// Sets the combined processor time of the running processes.
    pub fn running(&self, us: u64) {
        self.shown.fetch_max(self.ended.load(Relaxed).saturating_add(us), Relaxed);
    }

    /// The total as of the last update.
    pub fn us(&self) -> u64 {
        self.shown.load(Relaxed)
    }
}

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter {
    shards: [CachePadded<AtomicU64>; SHARDS],
}

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `by`.
    pub fn add(&self, by: u64) {
        self.shards[shard()].0.fetch_add(by, Relaxed);
    }

    /// The sum.
    pub fn get(&self) -> u64 {
        self.shards.iter().map(|cell| cell.0.load(Relaxed)).fold(0, u64::wrapping_add)
    }
}

/// Guard that counts one in a gauge until it is dropped.
#[derive(Debug)]
pub struct GaugeGuard<'a>(&'a Gauge);

impl Drop for GaugeGuard<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge {
    value: CachePadded<AtomicI64>,
}

impl Gauge {
    /// Adds one.
    pub fn inc(&self) {
        self.value.0.fetch_add(1, Relaxed);
    }

    /// Subtracts one.
    pub fn dec(&self) {
        self.value.0.fetch_sub(1, Relaxed);
    }

    /// Adds one for as long as the guard lives.
    #[must_use]
    pub fn hold(&self) -> GaugeGuard<'_> {
        self.inc();
        GaugeGuard(self)
    }

    pub fn set(&self, value: i64) {
        self.value.0.store(value, Relaxed);
    }

    pub fn get(&self) -> i64 {
        self.value.0.load(Relaxed)
    }
}

/// A counter per label, for static labels. Too slow for a path that every request takes.
#[derive(Debug, Default)]
pub struct Labelled {
    slots: [(OnceLock<&'static str>, AtomicU64); LABELS],
    rest: AtomicU64,
}

impl Labelled {
    /// Adds one under a label.
    pub fn inc(&self, label: &'static str) {
        for (name, count) in &self.slots {
            if *name.get_or_init(|| label) == label {
                count.fetch_add(1, Relaxed);
                return;
            }
        }
        self.rest.fetch_add(1, Relaxed);
    }

    /// The count under a label.
    pub fn get(&self, label: &str) -> u64 {
        self.all().iter().find(|(name, _)| *name == label).map_or(0, |(_, count)| *count)
    }

    /// All labels with their counts, sorted by label. Labels above the limit are counted as `other`.
    pub fn all(&self) -> Vec<(&'static str, u64)> {
        let named = self.slots.iter().filter_map(|(name, count)| Some((*name.get()?, count.load(Relaxed))));
        let rest = Some(self.rest.load(Relaxed)).filter(|&rest| rest > 0).map(|rest| ("other", rest));
        let mut all: Vec<_> = named.chain(rest).collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_up_over_threads() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counter.inc();
                    }
                });
            }
        });
        assert_eq!(counter.get(), 20_000);
    }

    #[test]
    fn labels_beyond_the_slots_are_counted_together() {
        let counter = Labelled::default();
        let names: Vec<&'static str> =
            (0..LABELS + 2).map(|n| &*Box::leak(format!("l{n:02}").into_boxed_str())).collect();
        for name in &names {
            counter.inc(name);
        }
        counter.inc(names[3]);
        assert_eq!(counter.get("l03"), 2);
        assert_eq!(counter.get("other"), 2);
        assert_eq!(counter.all().len(), LABELS + 1);
    }
}

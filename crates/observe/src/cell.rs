//! The cells that hold metrics: counters, gauges and histograms of atomics without locks. What is touched for each
//! request is split into shards, one cache line apart, so threads seldom write to the same line.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The number of shards; a power of two.
pub(crate) const SHARDS: usize = 8;

/// The largest number of different labels that one [`Labelled`] counter tells apart.
const LABELS: usize = 24;

/// The upper bounds of a histogram's buckets in microseconds; one more bucket takes what is above.
pub const BOUNDS_US: [u64; 18] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 60_000_000,
];

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

/// Something that stands in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter {
    shards: [Apart<AtomicU64>; SHARDS],
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
    #[must_use]
    pub fn get(&self) -> u64 {
        self.shards.iter().map(|cell| cell.0.load(Relaxed)).fold(0, u64::wrapping_add)
    }
}

/// One that a gauge counts.
#[derive(Debug)]
pub struct Held<'a>(&'a Gauge);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge {
    value: Apart<AtomicI64>,
}

impl Gauge {
    /// Adds one.
    pub fn inc(&self) {
        self.value.0.fetch_add(1, Relaxed);
    }

    /// Takes one off.
    pub fn dec(&self) {
        self.value.0.fetch_sub(1, Relaxed);
    }

    /// Adds one for as long as the guard lives.
    #[must_use]
    pub fn hold(&self) -> Held<'_> {
        self.inc();
        Held(self)
    }

    pub fn set(&self, value: i64) {
        self.value.0.store(value, Relaxed);
    }

    /// Its value.
    #[must_use]
    pub fn get(&self) -> i64 {
        self.value.0.load(Relaxed)
    }
}

/// How often durations fell into which bucket.
#[derive(Debug, Default)]
pub struct Histogram {
    shards: [Apart<Buckets>; SHARDS],
}

#[derive(Debug, Default)]
struct Buckets {
    counts: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
}

/// What a histogram held when it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// How many durations were at most each bound of [`BOUNDS_US`].
    pub cumulative: [u64; BOUNDS_US.len()],
    /// How many durations there were.
    pub count: u64,
    /// Their sum in microseconds.
    pub sum_us: u64,
}

impl HistogramSnapshot {
    /// Of the numbers of each bucket; the count is their sum, so the two agree even while others count.
    pub(crate) fn of(buckets: &[u64; BOUNDS_US.len() + 1], sum_us: u64) -> Self {
        let mut snapshot = Self { sum_us, ..Self::default() };
        for (bucket, count) in buckets.iter().enumerate() {
            snapshot.count += count;
            if let Some(cumulative) = snapshot.cumulative.get_mut(bucket) {
                *cumulative = snapshot.count;
            }
        }
        snapshot
    }

    /// Adds what another one held.
    pub fn add(&mut self, other: &Self) {
        self.cumulative.iter_mut().zip(other.cumulative).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.sum_us = self.sum_us.wrapping_add(other.sum_us);
    }
}

impl Histogram {
    /// Counts a duration.
    pub fn observe(&self, took: Duration) {
        self.observe_us(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts a duration in microseconds.
    pub fn observe_us(&self, took: u64) {
        let buckets = &self.shards[shard()].0;
        buckets.counts[BOUNDS_US.partition_point(|&bound| bound < took)].fetch_add(1, Relaxed);
        buckets.sum_us.fetch_add(took, Relaxed);
    }

    /// What it holds now.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let of = |number: &dyn Fn(&Buckets) -> &AtomicU64| {
            self.shards.iter().map(|cell| number(&cell.0).load(Relaxed)).fold(0, u64::wrapping_add)
        };
        let buckets = std::array::from_fn(|bucket| of(&|cell| &cell.counts[bucket]));
        HistogramSnapshot::of(&buckets, of(&|cell| &cell.sum_us))
    }
}

/// A counter per label, for labels that are fixed in the program. Not for the path of every request.
#[derive(Debug, Default)]
pub struct Labelled {
    slots: [(OnceLock<&'static str>, AtomicU64); LABELS],
    rest: AtomicU64,
}

impl Labelled {
    /// Counts one under a label.
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
    #[must_use]
    pub fn get(&self, label: &str) -> u64 {
        self.all().iter().find(|(name, _)| *name == label).map_or(0, |(_, count)| *count)
    }

    /// Every label with its count, in order of label; labels beyond what fits count as `other`.
    #[must_use]
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
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counter.inc();
                        histogram.observe_us(70);
                    }
                });
            }
        });
        assert_eq!(counter.get(), 20_000);
        let snapshot = histogram.snapshot();
        assert_eq!((snapshot.count, snapshot.sum_us), (20_000, 1_400_000));
        assert_eq!(snapshot.cumulative[..2], [0, 20_000]);
    }

    #[test]
    fn a_bound_belongs_to_its_own_bucket_and_more_than_the_last_is_only_counted() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_micros(50));
        histogram.observe(Duration::from_micros(51));
        histogram.observe(Duration::from_secs(61));
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.cumulative[..2], [1, 2]);
        assert_eq!(snapshot.cumulative[BOUNDS_US.len() - 1], 2);
        assert_eq!(snapshot.count, 3);
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

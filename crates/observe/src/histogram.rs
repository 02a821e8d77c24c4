//! Histograms of durations: counts per bucket, lock-free and sharded.

use crate::buckets::{BOUNDS_US, BUCKETS, bucket_of};
use crate::cell::{CachePadded, SHARDS, shard};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The buckets of one shard. Counts have 64 bits: at 10,000 requests per second, a 32-bit count would overflow in five
/// days.
#[derive(Debug)]
pub(crate) struct Cells {
    counts: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

impl Default for Cells {
    fn default() -> Self {
        Self { counts: std::array::from_fn(|_| AtomicU64::new(0)), sum_us: AtomicU64::new(0) }
    }
}

impl Cells {
    /// Counts a duration; costs two atomic additions.
    pub(crate) fn count(&self, us: u64) {
        self.counts[bucket_of(us)].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(us, Relaxed);
    }
}

/// Number of shards for cells as large as [`Cells`]: one per two processors, like the default number of I/O threads, up
/// to [`SHARDS`]. Always a power of two.
pub(crate) fn shards() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        processors.div_ceil(2).next_power_of_two().min(SHARDS)
    })
}

/// The calling thread's shard of [`shards`] shards.
pub(crate) fn own<T>(shards: &[T]) -> &T {
    &shards[shard() & (shards.len() - 1)]
}

/// Counts of durations per bucket.
#[derive(Debug)]
pub struct Histogram {
    shards: Box<[CachePadded<Cells>]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { shards: (0..shards()).map(|_| CachePadded::default()).collect() }
    }
}

impl Histogram {
    /// Counts a duration in microseconds.
    pub fn observe_us(&self, took: u64) {
        own(&self.shards).0.count(took);
    }

    /// Counts a duration.
    pub fn observe(&self, took: Duration) {
        self.observe_us(whole_us(took));
    }

    /// The current counts.
    pub fn snapshot(&self) -> HistogramSnapshot {
        HistogramSnapshot::of(self.shards.iter().map(|shard| &shard.0))
    }
}

/// A duration in microseconds.
pub(crate) fn whole_us(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    buckets: [u64; BUCKETS],
    /// Number of durations. Equals the sum of the buckets even while other threads count.
    pub count: u64,
    /// Sum of the durations in microseconds.
    pub sum_us: u64,
}

impl HistogramSnapshot {
    pub(crate) fn of<'a>(shards: impl Iterator<Item = &'a Cells>) -> Self {
        let mut snapshot = Self::default();
        for shard in shards {
            for (bucket, counted) in snapshot.buckets.iter_mut().zip(&shard.counts) {
                *bucket += counted.load(Relaxed);
            }
            snapshot.sum_us = snapshot.sum_us.wrapping_add(shard.sum_us.load(Relaxed));
        }
        snapshot.count = snapshot.buckets.iter().sum();
        snapshot
    }

    /// Adds another snapshot.
    pub fn add(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.sum_us = self.sum_us.wrapping_add(other.sum_us);
    }

    /// Cumulative counts: the number of durations up to each bound of [`BOUNDS_US`].
    pub fn cumulative(&self) -> [u64; BOUNDS_US.len()] {
        let mut below = 0;
        std::array::from_fn(|bucket| {
            below += self.buckets[bucket];
            below
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_up_over_threads() {
        let histogram = Histogram::default();
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| (0..1000).for_each(|_| histogram.observe_us(70)));
            }
        });
        let snapshot = histogram.snapshot();
        assert_eq!((snapshot.count, snapshot.sum_us), (20_000, 1_400_000));
        assert_eq!(snapshot.cumulative()[..2], [0, 20_000]);
    }

    #[test]
    fn a_bound_belongs_to_its_own_bucket_and_more_than_the_last_is_only_counted() {
        let histogram = Histogram::default();
        for took in [Duration::from_micros(50), Duration::from_micros(51), Duration::from_secs(61), Duration::MAX] {
            histogram.observe(took);
        }
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.cumulative()[..2], [1, 2]);
        assert_eq!(snapshot.cumulative()[BOUNDS_US.len() - 1], 2);
        assert_eq!(snapshot.count, 4);
    }

    #[test]
    fn snapshots_add_up() {
        let (one, other) = (Histogram::default(), Histogram::default());
        one.observe_us(3);
        other.observe_us(60_000_000);
        let mut both = one.snapshot();
        both.add(&other.snapshot());
        assert_eq!((both.count, both.sum_us), (2, 60_000_003));
        assert_eq!((both.cumulative()[0], both.cumulative()[BOUNDS_US.len() - 1]), (1, 2));
    }
}

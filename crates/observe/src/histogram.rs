//! Histograms of times: how often durations fell into which cell of `buckets`, without locks and in shards.

use crate::buckets::{BOUNDS_US, CELLS, cell_of, classic_cells, native_cells};
use crate::cell::{Apart, SHARDS, shard};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The cells of one shard: 2 KiB. They are of 64 bits, as of 32 the one of the usual duration would be full after five days
/// of 10,000 requests per second.
#[derive(Debug)]
pub(crate) struct Cells {
    counts: [AtomicU64; CELLS],
    sum_us: AtomicU64,
}

impl Default for Cells {
    fn default() -> Self {
        Self { counts: std::array::from_fn(|_| AtomicU64::new(0)), sum_us: AtomicU64::new(0) }
    }
}

impl Cells {
    /// Counts a duration: two additions, whatever number of buckets is made of them.
    pub(crate) fn count(&self, us: u64) {
        self.counts[cell_of(us)].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(us, Relaxed);
    }
}

/// Number of shards of data as large as [`Cells`]: one for every two processors, as for the server's I/O threads, and
/// [`SHARDS`] at most. A power of two.
pub(crate) fn shards() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        processors.div_ceil(2).next_power_of_two().min(SHARDS)
    })
}

/// The calling thread's one of [`shards`] shards.
pub(crate) fn own<T>(shards: &[T]) -> &T {
    &shards[shard() & (shards.len() - 1)]
}

/// Counts of durations by cell.
#[derive(Debug)]
pub struct Histogram {
    shards: Box<[Apart<Cells>]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { shards: (0..shards()).map(|_| Apart::default()).collect() }
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
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        HistogramSnapshot::of(self.shards.iter().map(|shard| &shard.0))
    }
}

/// A duration in microseconds.
pub(crate) fn whole_us(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

/// The counts of a histogram when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramSnapshot {
    cells: [u64; CELLS],
    /// Number of durations: as many as are in the cells, even while others count.
    pub count: u64,
    /// Their sum in microseconds.
    pub sum_us: u64,
}

impl Default for HistogramSnapshot {
    fn default() -> Self {
        Self { cells: [0; CELLS], count: 0, sum_us: 0 }
    }
}

impl HistogramSnapshot {
    pub(crate) fn of<'a>(shards: impl Iterator<Item = &'a Cells>) -> Self {
        let mut snapshot = Self::default();
        for shard in shards {
            for (cell, counted) in snapshot.cells.iter_mut().zip(&shard.counts) {
                *cell += counted.load(Relaxed);
            }
            snapshot.sum_us = snapshot.sum_us.wrapping_add(shard.sum_us.load(Relaxed));
        }
        snapshot.count = snapshot.cells.iter().sum();
        snapshot
    }

    /// Adds what another one held.
    pub fn add(&mut self, other: &Self) {
        self.cells.iter_mut().zip(other.cells).for_each(|(mine, theirs)| *mine += theirs);
        self.count += other.count;
        self.sum_us = self.sum_us.wrapping_add(other.sum_us);
    }

    /// Number of durations up to each bound of [`BOUNDS_US`].
    #[must_use]
    pub fn cumulative(&self) -> [u64; BOUNDS_US.len()] {
        let (mut cumulative, mut below) = ([0; BOUNDS_US.len()], 0);
        for (count, cells) in cumulative.iter_mut().zip(classic_cells()) {
            below += self.cells[cells].iter().sum::<u64>();
            *count = below;
        }
        cumulative
    }

    /// Number of durations in each native bucket, the zero bucket first.
    pub(crate) fn native(&self) -> impl Iterator<Item = u64> {
        native_cells().map(move |cells| self.cells[cells].iter().sum())
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
        assert_eq!(snapshot.native().filter(|count| *count > 0).collect::<Vec<_>>(), [20_000]);
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
        assert_eq!((snapshot.count, snapshot.native().last()), (4, Some(1)));
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
        assert_eq!((both.native().next(), both.native().sum::<u64>()), (Some(1), 2));
    }
}

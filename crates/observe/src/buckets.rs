//! Bucket bounds of duration histograms: few and round, in whole microseconds.

/// The upper bounds of the buckets in microseconds; one more bucket counts longer durations.
pub const BOUNDS_US: [u64; 18] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 60_000_000,
];

/// Number of buckets, including the one above all bounds.
pub(crate) const BUCKETS: usize = BOUNDS_US.len() + 1;

/// The bucket of a duration. Bounds are inclusive upper bounds.
pub(crate) fn bucket_of(us: u64) -> usize {
    BOUNDS_US.partition_point(|&bound| bound < us)
}

//! The borders of histograms of time. There are two kinds: the classic ones, few and round, and those of Prometheus' native
//! histograms, eight for each doubling, which tell every quantile to a tenth. Durations are whole microseconds and counted
//! once, in cells that no border of either kind divides; both kinds of buckets are sums of cells.

use std::ops::Range;

/// The upper bounds of the classic buckets in microseconds; one more bucket takes what is above.
pub const BOUNDS_US: [u64; 18] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 60_000_000,
];

/// The schema of native buckets: `2^SCHEMA` of them for each doubling. It is the default of client libraries.
pub(crate) const SCHEMA: i32 = 3;

/// The parts of a doubling.
const PARTS: [f64; 1 << SCHEMA] = [
    1.0,
    1.090_507_732_665_257_7,
    1.189_207_115_002_721,
    1.296_839_554_651_009_6,
    std::f64::consts::SQRT_2,
    1.542_210_825_407_940_7,
    1.681_792_830_507_429_2,
    1.834_008_086_409_342_4,
];

/// Up to 2^-16 s, 15 µs, durations are not told apart: they fall into the zero bucket. Below, some buckets would be narrower
/// than a microsecond.
const LOWEST: i32 = -16;

/// Above 2^12 s, 68 minutes, neither: they fall into the next bucket, whatever they are.
const HIGHEST: i32 = 12;

/// The bound of the zero bucket in seconds.
pub(crate) const ZERO_THRESHOLD: f64 = 1.0 / (1_u64 << -LOWEST) as f64;

/// The index, in Prometheus' count, of the bucket below the first one that is not the zero bucket. The bucket with index `n`
/// ends at `2^(n / 8)` seconds.
pub(crate) const NATIVE_START: i32 = LOWEST << SCHEMA;

/// The number of native buckets, among them the zero bucket, as the first, and the one for everything above.
pub(crate) const NATIVE: usize = ((HIGHEST - LOWEST) as usize) * PARTS.len() + 2;

/// The upper bounds of the native buckets but the last in microseconds, rounded down, as durations are.
const NATIVE_US: [u64; NATIVE - 1] = {
    let mut bounds = [0; NATIVE - 1];
    let mut at = 0;
    while at < bounds.len() {
        let scaled = PARTS[at % PARTS.len()] * 1e6 * ((1_u64 << (at / PARTS.len())) as f64);
        bounds[at] = (scaled * ZERO_THRESHOLD) as u64;
        at += 1;
    }
    bounds
};

/// The number of bounds of both kinds, those that are the same counted once.
const UPPERS: usize = {
    let (mut count, mut at) = (NATIVE_US.len(), 0);
    while at < BOUNDS_US.len() {
        count += !is_native(BOUNDS_US[at]) as usize;
        at += 1;
    }
    count
};

const fn is_native(bound: u64) -> bool {
    let mut at = 0;
    while at < NATIVE_US.len() {
        if NATIVE_US[at] == bound {
            return true;
        }
        at += 1;
    }
    false
}

/// The number of cells of a histogram; the last is for what is above all bounds.
pub(crate) const CELLS: usize = UPPERS + 1;

/// The upper bounds of the cells but the last: those of both kinds, in order.
static UPPER_US: [u64; UPPERS] = {
    let mut merged = [0; UPPERS];
    let (mut at, mut native, mut classic) = (0, 0, 0);
    while at < UPPERS {
        let by_native = if native < NATIVE_US.len() { NATIVE_US[native] } else { u64::MAX };
        let by_classic = if classic < BOUNDS_US.len() { BOUNDS_US[classic] } else { u64::MAX };
        merged[at] = if by_native < by_classic { by_native } else { by_classic };
        native += (by_native == merged[at]) as usize;
        classic += (by_classic == merged[at]) as usize;
        at += 1;
    }
    merged
};

/// For each number of binary digits, how many cells end with fewer: where to look, instead of among all.
static FEWER_DIGITS: [usize; 66] = {
    let mut counts = [0; 66];
    let mut digits = 0;
    while digits < counts.len() {
        while counts[digits] < UPPERS && u64::BITS - UPPER_US[counts[digits]].leading_zeros() < digits as u32 {
            counts[digits] += 1;
        }
        digits += 1;
    }
    counts
};

/// The cell of a duration.
pub(crate) fn cell_of(us: u64) -> usize {
    let digits = (u64::BITS - us.leading_zeros()) as usize;
    let (from, to) = (FEWER_DIGITS[digits], FEWER_DIGITS[digits + 1]);
    from + UPPER_US[from..to].partition_point(|&upper| upper < us)
}

/// The classic bucket of a duration.
pub(crate) fn classic_of(us: u64) -> usize {
    BOUNDS_US.partition_point(|&bound| bound < us)
}

/// The cells of each native bucket.
pub(crate) fn native_cells() -> impl Iterator<Item = Range<usize>> {
    ranges(NATIVE_US.into_iter().map(|bound| cell_of(bound) + 1))
}

/// The cells of each classic bucket.
pub(crate) fn classic_cells() -> impl Iterator<Item = Range<usize>> {
    ranges(BOUNDS_US.into_iter().map(|bound| cell_of(bound) + 1))
}

/// From the ends of all but the last.
fn ranges(ends: impl Iterator<Item = usize>) -> impl Iterator<Item = Range<usize>> {
    ends.chain([CELLS]).scan(0, |from, end| Some(std::mem::replace(from, end)..end))
}

#[cfg(test)]
#[path = "buckets_tests.rs"]
mod tests;

//! Values of metrics, and the trait of the formats that they are written in.

use super::table::Metric;
use crate::exemplar::Exemplar;
use crate::histogram::HistogramSnapshot;

/// Microseconds, written as seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seconds(pub(super) u64);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micros == 0 {
            return write!(f, "{seconds}");
        }
        let fraction = format!("{micros:06}");
        write!(f, "{seconds}.{}", fraction.trim_end_matches('0'))
    }
}

impl From<Seconds> for f64 {
    fn from(seconds: Seconds) -> Self {
        seconds.0 as Self / 1e6
    }
}

/// The value of a sample.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Count(u64),
    Level(i64),
    Time(Seconds),
}

impl From<u64> for Number {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<i64> for Number {
    fn from(level: i64) -> Self {
        Self::Level(level)
    }
}

impl From<Seconds> for Number {
    fn from(time: Seconds) -> Self {
        Self::Time(time)
    }
}

/// One format, while metrics are written in it.
pub(super) trait Writer {
    /// A sample of a counter or a gauge, with the values of the metric's labels.
    fn sample(&mut self, metric: &Metric, values: &[&str], number: Number);

    /// A histogram, with exemplars for some of its classic buckets.
    fn histogram(&mut self, metric: &Metric, values: &[&str], snapshot: &HistogramSnapshot, exemplars: &[Exemplar]);

    /// Begins a metric.
    fn open(&mut self, metric: &Metric);

    /// The whole page.
    fn close(self: Box<Self>) -> Vec<u8>;
}

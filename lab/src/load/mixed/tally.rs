//! Results of the requests of each kind.
//!
//! Percentiles are over the requests that were *due* in the measured period, whenever their response arrived, and over
//! those that waited through all of it, so a request that waits past the end is counted. Rates are over the responses
//! that *arrived* in the measured period.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::load::PERCENTILES;
use crate::record::{Errors, KindSample, Latency};

/// Latencies in nanoseconds, exact to three digits.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

/// From 100 ns to 10 minutes.
const RANGE: (u64, u64) = (100, 600_000_000_000);

impl Latencies {
    /// An empty histogram.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(Histogram::new_with_bounds(RANGE.0, RANGE.1, 3)?))
    }

    pub fn add(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same bounds, so no value is out of range.
        let _ = self.0.add(&other.0);
    }

    /// Summarizes them in microseconds, as results have them.
    pub fn summary(&self) -> Latency {
        if self.0.is_empty() {
            return Latency::default();
        }
        Latency {
            mean: self.0.mean() / 1000.0,
            stdev: self.0.stdev() / 1000.0,
            max: self.0.max() as f64 / 1000.0,
            percentiles: PERCENTILES.iter().map(|p| (*p, self.0.value_at_percentile(*p) as f64 / 1000.0)).collect(),
        }
    }
}

/// Result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The correct response.
    Good,
    /// The server reported that it has no capacity (429, 502, 503 or 504).
    Refused,
    /// A status other than success.
    Status,
    /// Success with the wrong body.
    Wrong,
    /// The connection failed.
    Connect,
    /// The connection ended before the reply did, or the bytes are not a reply.
    Read,
    /// No reply in time; the client disconnected.
    Timeout,
}

impl End {
    /// Classifies a response by status and body.
    pub fn of(status: u16, body: &[u8], right: Option<&[u8]>) -> Self {
        match status {
            200..=299 if right.is_none_or(|right| right == body) => Self::Good,
            200..=299 => Self::Wrong,
            429 | 502..=504 => Self::Refused,
            _ => Self::Status,
        }
    }
}

/// Counts of one kind.
#[derive(Debug, Clone)]
pub struct Tally {
    name: String,
    due: u64,
    good: u64,
    refused: u64,
    wrong: u64,
    unanswered: u64,
    errors: Errors,
    latency: Latencies,
    refused_latency: Latencies,
}

impl Tally {
    /// Empty counts.
    pub fn new(name: &str) -> anyhow::Result<Self> {
        Ok(Self {
            name: name.into(),
            due: 0,
            good: 0,
            refused: 0,
            wrong: 0,
            unanswered: 0,
            errors: Errors::default(),
            latency: Latencies::new()?,
            refused_latency: Latencies::new()?,
        })
    }

    /// Counts a request that was due in the measured period.
    pub fn due(&mut self) {
        self.due += 1;
    }

    /// Counts a request that ended this long after it was due. `counted`: it was due in the measured period; `in_time`:
    /// it ended in it.
    pub fn end(&mut self, end: End, latency: Duration, counted: bool, in_time: bool) {
        if counted {
            match end {
                // A client that gave up has waited at least this long; without such requests, the slowest system would
                // look fast.
                End::Good | End::Timeout => self.latency.add(latency),
                End::Refused => self.refused_latency.add(latency),
                _ => {}
            }
        }
        if end == End::Wrong {
            self.wrong += 1;
        }
        if in_time {
            match end {
                End::Good => self.good += 1,
                End::Refused => self.refused += 1,
                End::Status => self.errors.status += 1,
                End::Connect => self.errors.connect += 1,
                End::Read => self.errors.read += 1,
                End::Timeout => self.errors.timeout += 1,
                End::Wrong => {}
            }
        }
    }

    /// Counts a request that was due in the measured period and had no response when the generator stopped.
    pub fn unanswered(&mut self, latency: Duration) {
        self.unanswered += 1;
        self.latency.add(latency);
    }

    /// Returns the responses that arrived in the measured period.
    pub fn responses(&self) -> u64 {
        self.good + self.refused + self.errors.status
    }

    /// Returns the latencies of correct responses.
    pub fn latencies(&self) -> &Latencies {
        &self.latency
    }

    /// Converts the counts for the results.
    pub fn sample(&self) -> KindSample {
        KindSample {
            name: self.name.clone(),
            due: self.due,
            good: self.good,
            refused: self.refused,
            wrong: self.wrong,
            unanswered: self.unanswered,
            errors: self.errors.clone(),
            latency: self.latency.summary(),
            refused_latency: self.refused_latency.summary(),
            per_connection: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::nearest_rank;

    #[test]
    fn percentiles_agree_with_sorted_values() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut latencies = Latencies::new().unwrap();
        // From 10 us to 10 s, evenly over the magnitudes.
        let mut values: Vec<f64> = (0..50_000).map(|_| 10f64.powf(1.0 + 6.0 * random.f64())).collect();
        for us in &values {
            latencies.add(Duration::from_secs_f64(us / 1e6));
        }
        values.sort_by(f64::total_cmp);
        let summary = latencies.summary();
        for (percentile, value) in &summary.percentiles {
            let exact = nearest_rank(&values, *percentile);
            assert!((value / exact - 1.0).abs() < 0.002, "p{percentile}: {value} instead of {exact}");
        }
        let (mean, deviation) = crate::stats::mean_and_deviation(&values);
        assert!((summary.mean / mean - 1.0).abs() < 0.002 && (summary.stdev / deviation - 1.0).abs() < 0.002);
        assert_eq!(Latencies::new().unwrap().summary().at(50.0), None);
    }

    #[test]
    fn merged_latencies_are_those_of_both() {
        let (mut low, mut high) = (Latencies::new().unwrap(), Latencies::new().unwrap());
        for ms in 1..=100 {
            low.add(Duration::from_millis(ms));
            high.add(Duration::from_millis(1000 + ms));
        }
        low.merge(&high);
        let at = |p: f64| low.summary().at(p).unwrap() / 1000.0;
        assert!((at(50.0) - 100.0).abs() < 0.2 && (at(100.0) - 1100.0).abs() < 2.0);
    }

    #[test]
    fn longer_than_the_range_is_not_lost() {
        let mut latencies = Latencies::new().unwrap();
        latencies.add(Duration::from_secs(100_000));
        assert!(latencies.summary().max >= 600e6 - 1.0);
    }

    #[test]
    fn answers_are_distinguished() {
        assert_eq!(End::of(200, b"x", Some(b"x")), End::Good);
        assert_eq!(End::of(200, b"anything", None), End::Good);
        assert_eq!(End::of(200, b"y", Some(b"x")), End::Wrong);
        assert_eq!(End::of(503, b"x", Some(b"x")), End::Refused);
        assert_eq!(End::of(500, b"x", Some(b"x")), End::Status);
        assert_eq!(End::of(302, b"x", Some(b"x")), End::Status);
    }

    #[test]
    fn rates_count_responses_in_time_and_percentiles_requests_due() {
        let mut tally = Tally::new("x").unwrap();
        let second = Duration::from_secs(1);
        tally.due();
        tally.end(End::Good, second, true, false);
        tally.end(End::Good, second * 2, false, true);
        tally.due();
        tally.end(End::Refused, second * 3, true, true);
        tally.due();
        tally.unanswered(second * 8);
        let sample = tally.sample();
        assert_eq!((sample.due, sample.good, sample.refused, sample.unanswered), (3, 1, 1, 1));
        let seconds = |latency: &Latency| (latency.at(50.0).unwrap() / 1e6).round();
        assert_eq!((seconds(&sample.latency), (sample.latency.max / 1e6).round()), (1.0, 8.0));
        assert_eq!(seconds(&sample.refused_latency), 3.0);
    }
}

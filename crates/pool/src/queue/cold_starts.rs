//! Waits of requests that found an on-demand pool without a worker. The newest are kept exactly, so that percentiles of
//! few samples are exact; the metrics have all of them in a histogram.

use parking_lot::Mutex;
use serde::Serialize;
use std::collections::VecDeque;

/// Number of newest waits that are kept.
const MAX_SAMPLES: usize = 512;

/// The waits, in microseconds.
#[derive(Debug, Default)]
pub(crate) struct ColdStarts(Mutex<Waits>);

#[derive(Debug, Default)]
struct Waits {
    newest: VecDeque<u64>,
    all: u64,
}

/// As `status` shows them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ColdStartStatus {
    /// Requests since the server's start that found no worker.
    pub requests: u64,
    /// Median of the newest waits, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the newest waits, in milliseconds.
    pub p99_ms: f64,
}

impl ColdStarts {
    pub(crate) fn note(&self, waited_us: u64) {
        let mut waits = self.0.lock();
        waits.all += 1;
        if waits.newest.len() == MAX_SAMPLES {
            waits.newest.pop_front();
        }
        waits.newest.push_back(waited_us);
    }

    pub(crate) fn status(&self) -> ColdStartStatus {
        let (mut sorted, requests) = {
            let waits = self.0.lock();
            (waits.newest.iter().copied().collect::<Vec<_>>(), waits.all)
        };
        sorted.sort_unstable();
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).map_or(0.0, |&us| us as f64 / 1000.0)
        };
        ColdStartStatus { requests, p50_ms: at(50), p99_ms: at(99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_newest() {
        let starts = ColdStarts::default();
        assert_eq!(starts.status(), ColdStartStatus::default());
        starts.note(7_000);
        assert_eq!(starts.status(), ColdStartStatus { requests: 1, p50_ms: 7.0, p99_ms: 7.0 });
        (1..=100).for_each(|ms| starts.note(ms * 1000));
        assert_eq!(starts.status().p99_ms, 99.0);
        (0..MAX_SAMPLES).for_each(|_| starts.note(3_000));
        assert_eq!(starts.status(), ColdStartStatus { requests: 101 + MAX_SAMPLES as u64, p50_ms: 3.0, p99_ms: 3.0 });
    }
}

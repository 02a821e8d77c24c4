//! Limits the log volume of one worker, or of a zygote's output: a burst, then a rate. Excess lines are counted and
//! reported in one line.

use std::time::{Duration, Instant};

const LINES_PER_SECOND: f64 = 1000.0;
const BYTES_PER_SECOND: f64 = 1024.0 * 1024.0;
/// Size of a burst, in seconds of the rate.
const BURST_SECONDS: f64 = 5.0;
/// Interval of reports about dropped lines.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// The allowance of one writer.
#[derive(Debug)]
pub(crate) struct LogLimit {
    lines: f64,
    bytes: f64,
    /// When both allowances were last refilled.
    filled: Instant,
    left_out: u64,
    reported: Instant,
}

/// The decision about a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Log the line.
    pub(crate) pass: bool,
    /// Number of earlier dropped lines, if a report is due.
    pub(crate) left_out: Option<u64>,
}

impl LogLimit {
    pub(crate) fn new(now: Instant) -> Self {
        let (lines, bytes) = (LINES_PER_SECOND * BURST_SECONDS, BYTES_PER_SECOND * BURST_SECONDS);
        Self { lines, bytes, filled: now, left_out: 0, reported: now }
    }

    /// Decides about a line of `len` bytes.
    pub(crate) fn admit(&mut self, len: usize, now: Instant) -> Verdict {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = self.filled.max(now);
        self.lines = (self.lines + passed * LINES_PER_SECOND).min(LINES_PER_SECOND * BURST_SECONDS);
        self.bytes = (self.bytes + passed * BYTES_PER_SECOND).min(BYTES_PER_SECOND * BURST_SECONDS);
        let pass = self.lines >= 1.0 && self.bytes >= 1.0;
        if pass {
            // A long line may overdraw the allowance; the next lines wait for that.
            (self.lines, self.bytes) = (self.lines - 1.0, self.bytes - len as f64);
        } else {
            self.left_out += 1;
        }
        Verdict { pass, left_out: self.report(now) }
    }

    fn report(&mut self, now: Instant) -> Option<u64> {
        if self.left_out == 0 || now.saturating_duration_since(self.reported) < REPORT_EVERY {
            return None;
        }
        self.reported = now;
        self.take_left_out()
    }

    /// Takes the number of dropped lines that were not reported yet.
    pub(crate) fn take_left_out(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.left_out)).filter(|&lines| lines > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_limited_and_its_dropped_lines_are_counted() {
        let start = Instant::now();
        let mut limit = LogLimit::new(start);
        let (mut passed, mut said) = (0, 0);
        // A hundred thousand lines within ten seconds.
        for line in 0..100_000 {
            let verdict = limit.admit(50, start + Duration::from_micros(line * 100));
            passed += u64::from(verdict.pass);
            said += verdict.left_out.unwrap_or(0);
        }
        assert!((14_000..=16_000).contains(&passed), "{passed}");
        assert_eq!(said + limit.take_left_out().unwrap_or(0) + passed, 100_000);
        assert_eq!(limit.take_left_out(), None);
    }

    #[test]
    fn long_lines_count_by_their_bytes() {
        let start = Instant::now();
        let mut limit = LogLimit::new(start);
        let passed = (0..1000).filter(|_| limit.admit(64 * 1024, start).pass).count();
        assert_eq!(passed, 80);
    }

    #[test]
    fn a_moderate_writer_loses_nothing() {
        let start = Instant::now();
        let mut limit = LogLimit::new(start);
        for line in 0..20_000 {
            let verdict = limit.admit(200, start + Duration::from_millis(line * 2));
            assert_eq!(verdict, Verdict { pass: true, left_out: None });
        }
    }
}

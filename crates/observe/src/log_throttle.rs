//! Rate limits for log lines that a flood would cause with every request: a line now and then reports how many were
//! suppressed.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// A kind of line, with the minimum interval between two.
#[derive(Debug)]
pub struct LogThrottle {
    pause: Duration,
    /// When the last line was written, and how many have been suppressed since.
    last: Mutex<(Option<Instant>, u64)>,
}

impl LogThrottle {
    /// Allows at most one line per interval.
    pub const fn new(pause: Duration) -> Self {
        Self { pause, last: Mutex::new((None, 0)) }
    }

    /// Decides whether to write a line now, and returns the number of lines suppressed since the last one.
    pub fn permit(&self) -> Option<u64> {
        let mut last = self.last.lock();
        if last.0.is_some_and(|at| at.elapsed() < self.pause) {
            last.1 += 1;
            return None;
        }
        last.0 = Some(Instant::now());
        Some(std::mem::take(&mut last.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_line_counts_those_that_were_not_written() {
        let quiet = LogThrottle::new(Duration::from_secs(3600));
        assert_eq!([quiet.permit(), quiet.permit(), quiet.permit()], [Some(0), None, None]);
        quiet.last.lock().0 = None;
        assert_eq!([quiet.permit(), quiet.permit()], [Some(2), None]);
    }
}

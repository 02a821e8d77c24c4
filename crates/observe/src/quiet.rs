//! Lines in the log that would come with every request of a flood: one now and then says how many there were.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// A kind of line, with the least time between two.
#[derive(Debug)]
pub struct Quiet {
    pause: Duration,
    /// When the last was written, and how many were not since.
    last: Mutex<(Option<Instant>, u64)>,
}

impl Quiet {
    /// At most one line in this time.
    #[must_use]
    pub const fn new(pause: Duration) -> Self {
        Self { pause, last: Mutex::new((None, 0)) }
    }

    /// Decides whether to write a line now, and returns the number of lines suppressed since the last one.
    pub fn speaks(&self) -> Option<u64> {
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
    fn the_next_line_says_how_many_were_not_written() {
        let quiet = Quiet::new(Duration::from_secs(3600));
        assert_eq!([quiet.speaks(), quiet.speaks(), quiet.speaks()], [Some(0), None, None]);
        quiet.last.lock().0 = None;
        assert_eq!([quiet.speaks(), quiet.speaks()], [Some(2), None]);
    }
}

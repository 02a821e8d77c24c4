//! Limits the cost of frames and wake-ups that have no effect. An I/O thread serves many workers, so a worker that
//! wastes its time is read more slowly. A worker that does so without a request is treated as hostile.

use std::time::Duration;

/// Useless frames and wake-ups after which the reader pauses. At this rate a worker cannot use more than a few per cent
/// of a thread.
const PER_PAUSE: u32 = 32;
/// Length of the pause.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);
/// Useless frames and wake-ups without a request, and without a finished one in between, after which the lane is
/// broken.
const MAX_IDLE_WAKEUPS: u32 = 2000;
/// Failed attempts to sleep, each because new frames had arrived, after which other tasks get a turn.
const MAX_ROUNDS: u32 = 8;

#[derive(Debug, Default)]
pub(crate) struct Waste {
    since_pause: u32,
    idle: u32,
    restless: u32,
}

impl Waste {
    /// Counts a useless frame or wake-up; `idle`: the worker has no request.
    pub(crate) fn note(&mut self, idle: bool) {
        self.since_pause += 1;
        self.idle = if idle { self.idle.saturating_add(1) } else { 0 };
    }

    /// Resets the count without a request, as a request is done.
    pub(crate) fn something_done(&mut self) {
        self.idle = 0;
    }

    /// True if the worker keeps the server busy and has no request.
    pub(crate) fn is_too_much(&self) -> bool {
        self.idle > MAX_IDLE_WAKEUPS
    }

    /// True if the reader is to pause now.
    pub(crate) fn wants_pause(&mut self) -> bool {
        let due = self.since_pause >= PER_PAUSE;
        if due {
            self.since_pause = 0;
        }
        due
    }

    /// Counts a failed attempt to sleep. Returns true if other tasks must run first.
    pub(crate) fn could_not_sleep(&mut self) -> bool {
        self.restless += 1;
        if self.restless < MAX_ROUNDS {
            return false;
        }
        self.restless = 0;
        true
    }

    /// Resets the failed attempts, as the reader goes to sleep.
    pub(crate) fn sleeps(&mut self) {
        self.restless = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waste_causes_pauses_and_without_a_request_breaks_the_lane() {
        let mut waste = Waste::default();
        let pauses = (0..3200).filter(|_| {
            waste.note(false);
            waste.wants_pause()
        });
        assert_eq!(pauses.count(), 100);
        (0..=MAX_IDLE_WAKEUPS).for_each(|_| waste.note(true));
        assert!(waste.is_too_much());
        waste.something_done();
        assert!(!waste.is_too_much());
    }

    #[test]
    fn a_reader_that_never_sleeps_lets_others_run() {
        let mut waste = Waste::default();
        assert_eq!((0..80).filter(|_| waste.could_not_sleep()).count(), 10);
        (0..80).for_each(|_| {
            waste.sleeps();
            assert!(!waste.could_not_sleep());
        });
    }
}

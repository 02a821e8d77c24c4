//! Converts the server's clock to the clock of workers' time stamps.

use std::sync::OnceLock;
use std::time::Instant;

/// One moment, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    instant: Instant,
    micros: u32,
}

impl Clock {
    pub(crate) fn system() -> Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(|| Self::starting_at(Instant::now(), howdah_transport::monotonic_us()))
    }

    /// `instant` is `micros` by the workers' clock.
    pub(crate) const fn starting_at(instant: Instant, micros: u32) -> Self {
        Self { instant, micros }
    }

    /// A moment by the workers' clock, in microseconds; wraps around after 71 minutes.
    pub(crate) fn micros(self, now: Instant) -> u32 {
        self.micros.wrapping_add(now.saturating_duration_since(self.instant).as_micros() as u32)
    }
}

//! Lowers the priority of requests that compute while short requests arrive.
//!
//! The kernel shares processors evenly between runnable threads. A few requests that compute for long then hold up many
//! short ones, each of which needs a processor only briefly but several times: in the I/O thread, in its worker, and in
//! the I/O thread again. So while a pool has both kinds, those that compute run with a higher nice value. Their worker
//! raises it before it begins them and lowers it before its next request that does not give way. They still get idle
//! processor time, and some share of the rest (nice 15: 3.5 % of the weight). A request that waits for a database
//! computes little and does not give way.
//!
//! Raising a nice value needs no rights; lowering it again needs `RLIMIT_NICE` (set if the pool starts as root).
//! Without `RLIMIT_NICE`, a worker that has once given way does so until it ends. Then no further worker gives way once
//! half of them do; requests that compute go to those first, all other requests first to the rest.

use crate::request::estimate::ExpectedDuration;
use howdah_transport::wire::{REQUEST_MEASURE, REQUEST_NICE, REQUEST_NICE_SHIFT};
use std::time::{Duration, Instant};

/// Time after the arrival of a short request (to multiplexed workers: of one that does not compute) during which
/// computing requests give way.
const MIXED_WINDOW: Duration = Duration::from_millis(200);

/// Scheduling flags for a pool's requests that compute.
#[derive(Debug, Default)]
pub(crate) struct Precedence {
    /// Increase of the nice value of a worker that gives way; 0 for none.
    amount: u32,
    /// Workers can lower their nice values again.
    pub(crate) restores: bool,
    last_other: Option<Instant>,
    /// Serial workers measure the processor time of every request, for the slow log.
    pub(crate) measures_all: bool,
}

impl Precedence {
    pub(crate) fn new(amount: u32) -> Self {
        Self { amount, ..Self::default() }
    }

    /// Notes the arrival of a request to which computing ones give way.
    pub(crate) fn other_came(&mut self, now: Instant) {
        self.last_other = Some(now);
    }

    /// True if a request to which computing ones give way came within `MIXED_WINDOW`.
    pub(crate) fn is_mixed(&self, now: Instant) -> bool {
        self.last_other.is_some_and(|last| now.saturating_duration_since(last) < MIXED_WINDOW)
    }

    /// True if a request with this estimate gives way now.
    pub(crate) fn gives_way(&self, expected: ExpectedDuration, now: Instant) -> bool {
        self.amount > 0 && expected.computes() && self.is_mixed(now)
    }

    /// Flags for a request that is put into a lane. `already`: the lane's worker gives way already; `others`: number of
    /// lanes whose workers give way, and of all lanes.
    pub(crate) fn flags(
        &self,
        already: bool,
        gives_way: bool,
        expected: ExpectedDuration,
        others: (usize, usize),
    ) -> u32 {
        let measure = if self.measures_all || self.amount > 0 && expected.may_compute() { REQUEST_MEASURE } else { 0 };
        let (giving, all) = others;
        let nice = match gives_way {
            true if self.restores || already || giving * 2 < all => Some(self.amount),
            false if already && self.restores => Some(0),
            _ => None,
        };
        measure | nice.map_or(0, |amount| REQUEST_NICE | amount << REQUEST_NICE_SHIFT)
    }
}

/// The worker's priority after it begins a request with these flags: `true` if it gives way; `None` if unchanged.
pub(crate) const fn ordered(flags: u32) -> Option<bool> {
    if flags & REQUEST_NICE == 0 { None } else { Some(flags >> REQUEST_NICE_SHIFT & 0x1f != 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: ExpectedDuration = ExpectedDuration { mean: 5_000, high: 5_000, cpu: 5_000 };
    const WAITS: ExpectedDuration = ExpectedDuration { mean: 5_000, high: 5_000, cpu: 100 };

    fn mixed(restores: bool) -> (Precedence, Instant) {
        let now = Instant::now();
        let mut precedence = Precedence { restores, ..Precedence::new(12) };
        precedence.other_came(now);
        (precedence, now)
    }

    #[test]
    fn only_computing_requests_yield_and_only_to_short_ones() {
        let (precedence, now) = mixed(true);
        assert!(precedence.gives_way(LONG, now) && !precedence.gives_way(WAITS, now));
        assert!(!precedence.gives_way(LONG, now + MIXED_WINDOW));
        assert!(!Precedence::new(12).gives_way(LONG, now));
        assert!(!Precedence { last_other: Some(now), ..Precedence::new(0) }.gives_way(LONG, now));
    }
}

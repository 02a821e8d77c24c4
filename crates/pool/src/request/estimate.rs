//! Estimates of requests' durations by script and path, for the scheduler.
//!
//! An entry keeps a mean and a mean deviation, updated by each request that ends (as TCP does for the round-trip time,
//! RFC 6298). There is one for the script with the request's path, and one for the script alone, which serves rarely
//! seen paths. The tables have a fixed size and colliding keys displace each other, so the worst effect of many paths
//! is that nothing is known about them. A worker reports its times itself: false times of a compromised worker only
//! affect the placement of its pool's requests.
//!
//! A request that takes far longer than expected is ignored while such requests are rare. On a busy machine any request
//! can lose its processor for some milliseconds. If that made its route long, short requests would be spread over more
//! workers, which would then take processors from each other even more often.

use crate::request::Request;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Entries of the table by path; a power of two.
const PATHS: usize = 1024;
/// Entries of the table by script; a power of two.
const SCRIPTS: usize = 128;
/// Number of requests after which an entry is used.
const MIN_SAMPLES: u16 = 4;
/// Maximum of an entry's request count, and so the number of requests of a new key after which it displaces an old one.
const REMEMBERED: u16 = 32;
/// Upper limit of a single request's time, in microseconds: a minute.
const CLAMP: u32 = 60_000_000;
/// A request is short if its upper estimate is at most this, in microseconds.
const SHORT_MICROS: u32 = 200;
/// A request computes if it is expected to use at least this much processor time, in microseconds.
const COMPUTES: u32 = 1_000;
/// Requests up to this duration are never surprises, in microseconds.
const TOLERATED_MICROS: u32 = 200;
/// Weight of one surprise in an entry's share; each request decays the share by a sixteenth.
const SURPRISE_WEIGHT: u16 = 16;
/// Maximum share of rare surprises: one in sixteen requests.
const RARE_ONE_IN: u16 = SURPRISE_WEIGHT;
/// Assumed duration of a request of an unknown script, in microseconds.
const UNKNOWN_MEAN: u32 = 1_000;

/// Expected duration of a request, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExpectedDuration {
    /// The usual time.
    pub(crate) mean: u32,
    /// Upper estimate that is rarely exceeded: the mean plus four deviations; `u32::MAX` if unknown.
    pub(crate) high: u32,
    /// Expected processor time, if measured (for requests of a millisecond or more); else 0.
    pub(crate) cpu: u32,
}

/// Measured duration of a request, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MeasuredDuration {
    /// Elapsed time.
    pub(crate) php: u64,
    /// Processor time; `None`: not measured.
    pub(crate) cpu: Option<u64>,
    /// The script's peak memory in bytes.
    pub(crate) memory: u64,
}

impl MeasuredDuration {
    /// Adds the time of the snapshot's restore, which also keeps the worker from its next request. The sum is limited
    /// to `away`, the time since the request entered the pool.
    pub(crate) fn whole(self, restore: Duration, away: Duration) -> Self {
        let php = self.php.saturating_add(restore.as_micros() as u64).min(away.as_micros() as u64);
        Self { php, cpu: self.cpu.map(|cpu| cpu.min(php)), ..self }
    }
}

impl ExpectedDuration {
    /// Estimate for an unknown script.
    pub(crate) const UNKNOWN: Self = Self { mean: UNKNOWN_MEAN, high: u32::MAX, cpu: 0 };

    /// True for requests that may be put behind others while workers are idle.
    pub(crate) const fn is_short(self) -> bool {
        self.high <= SHORT_MICROS
    }

    /// True for requests that keep a processor, and a multiplexed worker, from other requests.
    pub(crate) const fn computes(self) -> bool {
        self.cpu >= COMPUTES
    }

    /// True if processor time should be measured for such a request.
    pub(crate) const fn may_compute(self) -> bool {
        self.mean >= COMPUTES
    }

    /// Remaining time of a request that has run for `ran`, in microseconds. `None`: it has exceeded its estimate.
    pub(crate) fn remaining(self, ran: u64) -> Option<u64> {
        let (mean, high) = (u64::from(self.mean), u64::from(self.high));
        match ran {
            _ if ran <= mean => Some(mean - ran),
            // Requests that exceed the mean are rare, but then take much longer.
            _ if ran <= high && self != Self::UNKNOWN => Some(high - ran),
            _ => None,
        }
    }
}

/// Keys of a request in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouteKey {
    script: u64,
    path: u64,
}

impl RouteKey {
    /// Keys from the request's script, method, and path without the query.
    pub(crate) fn of(request: &Request) -> Self {
        let script = xxh3_64_with_seed(request.head.script(), 0);
        let method = u64::from(request.method().first().copied().unwrap_or_default());
        Self { script, path: xxh3_64_with_seed(request.path(), script.wrapping_add(method)) }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// Upper half of the key.
    tag: u32,
    /// Requests seen, up to `REMEMBERED`; a request with another key decrements it.
    seen: u16,
    /// Share of recent requests that took far longer than expected, in 1/256.
    surprises: u16,
    /// In 1/8 microseconds.
    mean: u64,
    /// In 1/4 microseconds.
    deviation: u64,
    /// Processor time, in 1/8 microseconds.
    cpu: u64,
}

impl Entry {
    fn note(&mut self, tag: u32, micros: u32, cpu: Option<u32>) {
        if self.tag != tag && self.seen > 0 {
            self.seen -= 1;
            return;
        }
        let sample = u64::from(micros);
        if self.seen == 0 {
            *self = Self { tag, seen: 1, mean: sample * 8, deviation: sample * 2, ..Self::default() };
            return;
        }
        self.surprises -= self.surprises.div_ceil(SURPRISE_WEIGHT);
        if self.seen >= MIN_SAMPLES && micros > self.high().max(TOLERATED_MICROS) {
            self.surprises += SURPRISE_WEIGHT;
            if self.surprises <= RARE_ONE_IN {
                return;
            }
        }
        self.seen = (self.seen + 1).min(REMEMBERED);
        if let Some(cpu) = cpu {
            self.cpu = self.cpu - self.cpu / 8 + u64::from(cpu);
        }
        let off = sample.abs_diff(self.mean / 8);
        self.mean = self.mean - self.mean / 8 + sample;
        self.deviation = self.deviation - self.deviation / 4 + off;
    }

    fn expected(&self, tag: u32) -> Option<ExpectedDuration> {
        if self.tag != tag || self.seen < MIN_SAMPLES {
            return None;
        }
        Some(ExpectedDuration { mean: (self.mean / 8) as u32, high: self.high(), cpu: (self.cpu / 8) as u32 })
    }

    /// Mean and four deviations.
    fn high(&self) -> u32 {
        u32::try_from(self.mean / 8 + self.deviation).unwrap_or(u32::MAX)
    }
}

/// Estimates for a pool's requests.
#[derive(Debug)]
pub(crate) struct Estimates {
    paths: Box<[Entry]>,
    scripts: Box<[Entry]>,
}

impl Default for Estimates {
    fn default() -> Self {
        Self { paths: vec![Entry::default(); PATHS].into(), scripts: vec![Entry::default(); SCRIPTS].into() }
    }
}

const fn place(key: u64, entries: usize) -> (usize, u32) {
    (key as usize & (entries - 1), (key >> 32) as u32)
}

impl Estimates {
    /// Expected duration of a request with this key.
    pub(crate) fn expected(&self, key: RouteKey) -> ExpectedDuration {
        let (at, tag) = place(key.path, PATHS);
        if let Some(expected) = self.paths[at].expected(tag) {
            return expected;
        }
        let (at, tag) = place(key.script, SCRIPTS);
        self.scripts[at].expected(tag).unwrap_or(ExpectedDuration::UNKNOWN)
    }

    /// Records the duration of a request with this key.
    pub(crate) fn note(&mut self, key: RouteKey, took: MeasuredDuration) {
        let clamped = |micros: u64| u32::try_from(micros).unwrap_or(CLAMP).min(CLAMP);
        let (micros, cpu) = (clamped(took.php), took.cpu.map(clamped));
        let (at, tag) = place(key.path, PATHS);
        self.paths[at].note(tag, micros, cpu);
        let (at, tag) = place(key.script, SCRIPTS);
        self.scripts[at].note(tag, micros, cpu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: RouteKey = RouteKey { script: 7 << 32 | 1, path: 9 << 32 | 2 };

    fn clock(php: u64) -> MeasuredDuration {
        MeasuredDuration { php, cpu: None, memory: 0 }
    }

    fn after(requests: impl IntoIterator<Item = u64>) -> ExpectedDuration {
        let mut estimates = Estimates::default();
        requests.into_iter().for_each(|micros| estimates.note(KEY, clock(micros)));
        estimates.expected(KEY)
    }

    #[test]
    fn a_few_requests_of_one_length_make_it_known() {
        assert_eq!(after([10; 3]), ExpectedDuration::UNKNOWN);
        let expected = after([10; 50]);
        assert!((9..=11).contains(&expected.mean) && expected.high < 20, "{expected:?}");
        assert!(after([20_000; 10]).mean > 15_000);
    }

    #[test]
    fn a_route_whose_requests_differ_is_not_expected_to_be_short() {
        let mixed = after((0..100).map(|n| if n % 4 == 0 { 5_000 } else { 10 }));
        assert!(mixed.high > 1_000, "{mixed:?}");
        let three_long = after([10; 100].into_iter().chain([20_000; 3]));
        assert!(three_long.high > 5_000, "{three_long:?}");
        let long_ago = after([10; 100].into_iter().chain([2_000]).chain([10; 60]));
        assert!(long_ago.high < 60, "{long_ago:?}");
    }

    #[test]
    fn a_long_request_now_and_then_does_not_make_its_route_long() {
        let now_and_then = after((0..1000).map(|n| if n % 40 == 39 { 3_000 } else { 30 }));
        assert!(now_and_then.high < 60, "{now_and_then:?}");
        let often = after((0..1000).map(|n| if n % 8 == 7 { 3_000 } else { 30 }));
        assert!(often.high > 1_000, "{often:?}");
    }

    #[test]
    fn waiting_requests_are_distinguished_from_computing_ones() {
        let known = |cpu| {
            let mut estimates = Estimates::default();
            (0..50).for_each(|_| estimates.note(KEY, MeasuredDuration { php: 20_000, cpu, memory: 0 }));
            estimates.expected(KEY).cpu
        };
        assert_eq!(known(None), 0);
        assert!((90..=110).contains(&known(Some(100))) && known(Some(19_000)) > 18_000);
    }

    #[test]
    fn an_unseen_path_gets_its_scripts_estimate() {
        let mut estimates = Estimates::default();
        for path in 0..100 {
            estimates.note(RouteKey { path, ..KEY }, clock(300));
        }
        let expected = estimates.expected(RouteKey { path: 1 << 40, ..KEY });
        assert!((290..=310).contains(&expected.mean), "{expected:?}");
        assert_eq!(estimates.expected(RouteKey { script: 1, path: 1 << 40 }), ExpectedDuration::UNKNOWN);
    }

    #[test]
    fn numbers_of_any_size_and_keys_without_end_do_no_harm() {
        assert_eq!(after([u64::MAX; 100]).mean, CLAMP);
        let mut estimates = Estimates::default();
        for n in 0..100_000_u64 {
            let key = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            estimates.note(RouteKey { script: key, path: !key }, clock(n));
        }
        (0..50).for_each(|_| estimates.note(KEY, clock(10)));
        assert!(estimates.expected(KEY).mean <= 12);
    }
}

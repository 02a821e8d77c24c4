//! Durations of requests by script and route: the scheduler's expectation before a request runs.
//!
//! A mean and a mean deviation, moved by each request that ends (as TCP keeps the round-trip time, RFC 6298), for the
//! script with the request's path, and for the script alone, which serves paths that were not seen often. The tables
//! have a fixed size; keys that collide push each other out, so the worst effect of many addresses is that nothing is
//! known of them. A worker reports its own times: lies of a compromised one mislead only the placing of its pool's
//! requests, nothing else.
//!
//! A request that takes far longer than its route ever did is left out while such requests are rare. On a busy machine
//! any request can lose its processor for some milliseconds; if that made its route long, short requests would be
//! spread over more workers, which then take the processors from each other still more often.

use crate::request::Request;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Entries of the table by path; a power of two.
const PATHS: usize = 1024;
/// Entries of the table by script; a power of two.
const SCRIPTS: usize = 128;
/// Requests after which an entry is believed.
const MIN_SAMPLES: u16 = 4;
/// Most requests that an entry remembers having seen: so long a new key is kept out by an old one, at most.
const REMEMBERED: u16 = 32;
/// A single request counts no more than this, in microseconds: a minute.
const CLAMP: u32 = 60_000_000;
/// A request is short if it takes no longer than this, rare cases included. Microseconds.
const SHORT_MICROS: u32 = 200;
/// A request that uses as much of a processor computes. Microseconds.
const COMPUTES: u32 = 1_000;
/// Requests up to this are not called surprisingly long, in microseconds.
const TOLERATED_MICROS: u32 = 200;
/// Weight of one surprise in an entry's share; each request decays the share by a sixteenth.
const SURPRISE_WEIGHT: u16 = 16;
/// Surprises are rare up to this share: one in sixteen requests.
const RARE_ONE_IN: u16 = SURPRISE_WEIGHT;
/// Assumed duration of a request of an unknown script, in microseconds.
const UNKNOWN_MEAN: u32 = 1_000;

/// Expected duration of a request, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    /// The usual time.
    pub(crate) mean: u32,
    /// Upper estimate that is rarely exceeded: the mean and four deviations. `u32::MAX`: unknown.
    pub(crate) high: u32,
    /// Processor time of it, as far as that was measured (requests of a millisecond or more); else 0.
    pub(crate) cpu: u32,
}

/// Measured duration of a request, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Took {
    /// By the clock.
    pub(crate) php: u64,
    /// Of a processor; `None`: not measured.
    pub(crate) cpu: Option<u64>,
    /// The script's peak memory in bytes.
    pub(crate) memory: u64,
}

impl Took {
    /// With what kept the worker from its next request as well, which is to put the snapshot back. The request cannot have taken
    /// longer than it was away.
    pub(crate) fn whole(self, restore: Duration, away: Duration) -> Self {
        let php = self.php.saturating_add(restore.as_micros() as u64).min(away.as_micros() as u64);
        Self { php, cpu: self.cpu.map(|cpu| cpu.min(php)), ..self }
    }
}

impl Expected {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self { mean: UNKNOWN_MEAN, high: u32::MAX, cpu: 0 };

    /// True for requests that may share a lane although workers are idle.
    pub(crate) const fn is_short(self) -> bool {
        self.high <= SHORT_MICROS
    }

    /// True for requests that keep a processor, and a multiplexed worker, from others.
    pub(crate) const fn computes(self) -> bool {
        self.cpu >= COMPUTES
    }

    /// True if it is worth measuring whether such a request computes.
    pub(crate) const fn may_compute(self) -> bool {
        self.mean >= COMPUTES
    }

    /// Remaining time of a request that has run for `ran`, in microseconds. `None`: it has exceeded its expectation.
    pub(crate) fn remaining(self, ran: u64) -> Option<u64> {
        let (mean, high) = (u64::from(self.mean), u64::from(self.high));
        match ran {
            _ if ran <= mean => Some(mean - ran),
            // Requests that take longer than usual are rare, and then they take much longer.
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
    /// The key of a request: its script, its method and its path without the query.
    pub(crate) fn of(request: &Request) -> Self {
        let script = xxh3_64_with_seed(request.head.script(), 0);
        let method = u64::from(request.method().first().copied().unwrap_or_default());
        Self { script, path: xxh3_64_with_seed(request.path(), script.wrapping_add(method)) }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    /// The upper half of the key.
    tag: u32,
    /// Requests seen, up to `REMEMBERED`; what other keys bring takes from it.
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

    fn expected(&self, tag: u32) -> Option<Expected> {
        if self.tag != tag || self.seen < MIN_SAMPLES {
            return None;
        }
        Some(Expected { mean: (self.mean / 8) as u32, high: self.high(), cpu: (self.cpu / 8) as u32 })
    }

    /// Mean and four deviations.
    fn high(&self) -> u32 {
        u32::try_from(self.mean / 8 + self.deviation).unwrap_or(u32::MAX)
    }
}

/// Expectations for a pool's requests.
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
    pub(crate) fn expected(&self, key: RouteKey) -> Expected {
        let (at, tag) = place(key.path, PATHS);
        if let Some(expected) = self.paths[at].expected(tag) {
            return expected;
        }
        let (at, tag) = place(key.script, SCRIPTS);
        self.scripts[at].expected(tag).unwrap_or(Expected::UNKNOWN)
    }

    /// A request with this key took so long.
    pub(crate) fn note(&mut self, key: RouteKey, took: Took) {
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

    fn clock(php: u64) -> Took {
        Took { php, cpu: None, memory: 0 }
    }

    fn after(requests: impl IntoIterator<Item = u64>) -> Expected {
        let mut estimates = Estimates::default();
        requests.into_iter().for_each(|micros| estimates.note(KEY, clock(micros)));
        estimates.expected(KEY)
    }

    #[test]
    fn a_few_requests_of_one_length_make_it_known() {
        assert_eq!(after([10; 3]), Expected::UNKNOWN);
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
    fn what_waits_is_told_from_what_computes() {
        let known = |cpu| {
            let mut estimates = Estimates::default();
            (0..50).for_each(|_| estimates.note(KEY, Took { php: 20_000, cpu, memory: 0 }));
            estimates.expected(KEY).cpu
        };
        assert_eq!(known(None), 0);
        assert!((90..=110).contains(&known(Some(100))) && known(Some(19_000)) > 18_000);
    }

    #[test]
    fn a_path_that_was_never_seen_is_taken_for_what_its_script_does() {
        let mut estimates = Estimates::default();
        for path in 0..100 {
            estimates.note(RouteKey { path, ..KEY }, clock(300));
        }
        let expected = estimates.expected(RouteKey { path: 1 << 40, ..KEY });
        assert!((290..=310).contains(&expected.mean), "{expected:?}");
        assert_eq!(estimates.expected(RouteKey { script: 1, path: 1 << 40 }), Expected::UNKNOWN);
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

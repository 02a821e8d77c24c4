//! Times of renewals and retries. All are randomized: thousands of names that were obtained together must not come due
//! together, and neither must many servers.

use std::time::{Duration, SystemTime};

/// The share of its lifetime after which a certificate is renewed if the authority suggests no time, as Let's Encrypt
/// advises. Lifetimes become shorter every year, so a fixed number of days would be wrong for most.
const RENEW_AT: f64 = 2.0 / 3.0;
/// Renewal point of short-lived certificates: a third of a short lifetime would be too little time to notice and fix a
/// problem.
const RENEW_SHORT_AT: f64 = 0.5;
const SHORT_LIVED: Duration = Duration::from_secs(10 * 86400);
/// Maximum random shift of the renewal, as a share of the lifetime.
const SPREAD: f64 = 0.03;
/// The share of the lifetime that remains for a renewal whatever the authority suggests: enough for several attempts,
/// each of which may have to wait for another server's attempt or for the authority.
const RENEW_FRACTION: f64 = 0.2;
/// Maximum number of doublings of pauses.
const MAX_DOUBLINGS: u32 = 20;

/// Renewal time of a certificate with this validity period.
pub(super) fn renewal(from: SystemTime, until: SystemTime) -> SystemTime {
    let life = until.duration_since(from).unwrap_or_default();
    let share = if life < SHORT_LIVED { RENEW_SHORT_AT } else { RENEW_AT };
    from + life.mul_f64(share + SPREAD * (2.0 * fastrand::f64() - 1.0))
}

/// Renewal time of a certificate for which the authority suggests `wanted`.
pub(super) fn in_time(wanted: SystemTime, from: SystemTime, until: SystemTime) -> SystemTime {
    let life = until.duration_since(from).unwrap_or_default();
    wanted.min(until - life.mul_f64(RENEW_FRACTION))
}

/// A random time between the two.
pub(super) fn within(from: SystemTime, until: SystemTime) -> SystemTime {
    from + until.duration_since(from).unwrap_or_default().mul_f64(fastrand::f64())
}

/// The pause after this many consecutive failures: at most `most`, then made up to a quarter shorter or longer at
/// random.
pub(super) fn pause(first: Duration, most: Duration, failures: u32) -> Duration {
    let grown = first.saturating_mul(1 << failures.saturating_sub(1).min(MAX_DOUBLINGS));
    grown.min(most).mul_f64(0.75 + 0.5 * fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewal_is_at_two_thirds_of_a_life_and_in_the_middle_of_a_short_one() {
        const DAY: u64 = 86400;
        for (life, range) in [
            (10, 0.46..0.54),
            (6 * DAY, 0.46..0.54),
            (10 * DAY, 0.63..0.70),
            (45 * DAY, 0.63..0.70),
            (90 * DAY, 0.63..0.70),
        ] {
            let from = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            let at = renewal(from, from + Duration::from_secs(life)).duration_since(from).unwrap().as_secs_f64();
            let share = at / life as f64;
            assert!(range.contains(&share), "{life}: {share}");
        }
        let now = SystemTime::now();
        assert_eq!(renewal(now, now - Duration::from_secs(5)), now);
    }

    #[test]
    fn a_renewal_leaves_a_fifth_of_the_lifetime_whatever_the_authority_suggests() {
        let from = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        for life in [20, 6 * 86400] {
            let until = from + Duration::from_secs(life);
            let latest = from + Duration::from_secs(life * 4 / 5);
            assert_eq!(in_time(until - Duration::from_secs(1), from, until), latest);
            assert_eq!(in_time(until + Duration::from_secs(999), from, until), latest);
            assert_eq!(in_time(from, from, until), from);
        }
    }

    #[test]
    fn pauses_grow_up_to_a_limit() {
        let (first, most) = (Duration::from_secs(60), Duration::from_secs(43200));
        let range = |failures, seconds: f64| {
            let pause = pause(first, most, failures).as_secs_f64();
            assert!((0.75 * seconds..=1.25 * seconds).contains(&pause), "{failures}: {pause}");
        };
        range(1, 60.0);
        range(2, 120.0);
        range(5, 960.0);
        range(40, 43200.0);
        range(u32::MAX, 43200.0);
    }
}

//! Durations without a setting. Scenario tests shorten some of them, to avoid waiting for minutes.

use std::time::Duration;

use crate::value::Value;

/// Comma-separated durations `name=200ms`, for scenario tests only.
const VARIABLE: &str = "HOWDAH_TEST_TIMES";

/// Returns the duration, or the scenario's value for this name.
pub(crate) fn fixed_time(name: &str, usual: Duration) -> Duration {
    std::env::var(VARIABLE).ok().and_then(|times| named(&times, name)).unwrap_or(usual)
}

fn named(times: &str, name: &str) -> Option<Duration> {
    let (_, time) = times.split(',').filter_map(|time| time.split_once('=')).find(|(own, _)| *own == name)?;
    Duration::from_text(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_names_the_durations_that_it_shortens() {
        let times = "proxy.idle_timeout=200ms,acme.retry=5s";
        assert_eq!(named(times, "proxy.idle_timeout"), Some(Duration::from_millis(200)));
        assert_eq!(named(times, "acme.retry"), Some(Duration::from_secs(5)));
        assert_eq!(named(times, "retry"), None);
        assert_eq!(fixed_time("proxy.idle_timeout", Duration::from_secs(300)), Duration::from_secs(300));
    }
}

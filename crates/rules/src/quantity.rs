//! Values with a unit, in the syntax of settings and rules.

use std::time::Duration;

/// Maximum duration: with more, points in time could not be computed.
const MAX_DURATION: Duration = Duration::from_secs(100 * 31_536_000);

/// `500ms`, `30s`, `5m`, `2h`, `30d` (also `us`, `w` and `y`), or a number of seconds.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text, |c| c.is_ascii_digit() || c == '.');
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        "y" => 31_536_000.0,
        _ => return None,
    };
    let duration = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()?;
    (duration <= MAX_DURATION).then_some(duration)
}

/// `64K`, `8M`, `1G`, `1T`, or a number of bytes.
pub fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text, |c| c.is_ascii_digit());
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Splits a number from its unit.
fn split(text: &str, is_digit: fn(char) -> bool) -> (&str, &str) {
    let (number, unit) = text.split_at(text.find(|c| !is_digit(c)).unwrap_or(text.len()));
    (number, unit.trim())
}

/// `10/s`, `300/m`, `1000/h`: a number of requests, and the period.
pub(crate) fn rate(text: &str) -> Option<(u32, Duration)> {
    let (number, unit) = text.split_once('/')?;
    let seconds = match unit.trim() {
        "s" | "second" => 1,
        "m" | "minute" => 60,
        "h" | "hour" => 3600,
        _ => return None,
    };
    let number: u32 = number.trim().parse().ok()?;
    (number > 0).then_some((number, Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood_and_others_are_not() {
        assert_eq!(duration("30d"), Some(Duration::from_secs(30 * 86_400)));
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("1.5 s"), duration("1500ms"));
        assert_eq!((size("8M"), size("100")), (Some(8 << 20), Some(100)));
        assert_eq!(rate("300/m"), Some((300, Duration::from_secs(60))));
        for bad in ["", "x", "5x", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
        assert_eq!((size("1T"), size("1.5M"), size("18446744073709551615G")), (Some(1 << 40), None, None));
        assert!(["10", "0/s", "x/s", "1/fortnight"].into_iter().all(|bad| rate(bad).is_none()));
    }
}

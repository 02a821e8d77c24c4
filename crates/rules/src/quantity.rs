//! Values with a unit, in the syntax of rules.

use std::time::Duration;

/// `500ms`, `30s`, `5m`, `2h`, `30d`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "ms" => return Some(Duration::from_millis(number)),
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        "y" => 31_536_000,
        _ => return None,
    };
    number.checked_mul(seconds).filter(|&seconds| seconds <= 100 * 31_536_000).map(Duration::from_secs)
}

/// `64K`, `8M`, `1G`, or a number of bytes.
pub(crate) fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
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

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood_and_others_are_not() {
        assert_eq!(duration("30d"), Some(Duration::from_secs(30 * 86_400)));
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!((size("8M"), size("100")), (Some(8 << 20), Some(100)));
        assert_eq!(rate("300/m"), Some((300, Duration::from_secs(60))));
        for bad in ["", "x", "5x", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(duration(bad), None, "{bad}");
        }
        assert_eq!((size("1T"), size("18446744073709551615G")), (None, None));
        assert!(["10", "0/s", "x/s", "1/fortnight"].into_iter().all(|bad| rate(bad).is_none()));
    }
}

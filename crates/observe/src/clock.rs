//! Timestamps in log formats, always in UTC.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A point in time, split into date and time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    year: i64,
    month: usize,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    millis: u32,
}

impl From<SystemTime> for Moment {
    /// Times before 1970 count as 1970.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (days, rest) = (since.as_secs() / 86400, since.as_secs() % 86400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
        Self { year, month, day, hour, minute, second, millis: since.subsec_millis() }
    }
}

/// Year, month (from 0) and day (from 1) of a day counted from 1970-01-01. Internally a year begins on 1 March: then
/// the leap day is the year's last, and months follow a pattern of 153 days in five.
fn date(days: u64) -> (i64, usize, u64) {
    let days = days + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = (march_month + 2) % 12;
    let year = cycle * 400 + year + u64::from(month < 2);
    (i64::try_from(year).unwrap_or(i64::MAX), usize::try_from(month).unwrap_or(0), day)
}

/// The format of the error log and of JSON: `2026-11-21T00:00:00.123Z`.
pub(crate) struct Iso(pub(crate) Moment);

impl fmt::Display for Iso {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moment { year, month, day, hour, minute, second, millis } = self.0;
        write!(f, "{year:04}-{:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z", month + 1)
    }
}

/// The combined format: `21/Nov/2026:00:00:00 +0000`.
pub(crate) struct Combined(pub(crate) Moment);

impl fmt::Display for Combined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moment { year, month, day, hour, minute, second, .. } = self.0;
        write!(f, "{day:02}/{}/{year:04}:{hour:02}:{minute:02}:{second:02} +0000", MONTHS[month])
    }
}

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Formats like strftime(3). Unknown conversions are copied unchanged.
pub(crate) struct Formatted<'a>(pub(crate) SystemTime, pub(crate) &'a str);

impl fmt::Display for Formatted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moment { year, month, day, hour, minute, second, .. } = Moment::from(self.0);
        let seconds = self.0.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut letters = self.1.chars();
        while let Some(letter) = letters.next() {
            let Some(code) = (letter == '%').then(|| letters.next()).flatten() else {
                write!(f, "{letter}")?;
                continue;
            };
            match code {
                'Y' => write!(f, "{year:04}"),
                'y' => write!(f, "{:02}", year % 100),
                'm' => write!(f, "{:02}", month + 1),
                'b' | 'h' => write!(f, "{}", MONTHS[month]),
                'd' => write!(f, "{day:02}"),
                'e' => write!(f, "{day:2}"),
                'a' => write!(f, "{}", DAYS[(seconds / 86_400 + 4) as usize % 7]),
                'H' => write!(f, "{hour:02}"),
                'I' => write!(f, "{:02}", (hour + 11) % 12 + 1),
                'p' => write!(f, "{}", if hour < 12 { "AM" } else { "PM" }),
                'M' => write!(f, "{minute:02}"),
                'S' => write!(f, "{second:02}"),
                'F' => write!(f, "{year:04}-{:02}-{day:02}", month + 1),
                'T' => write!(f, "{hour:02}:{minute:02}:{second:02}"),
                'R' => write!(f, "{hour:02}:{minute:02}"),
                's' => write!(f, "{seconds}"),
                'z' => write!(f, "+0000"),
                'Z' => write!(f, "UTC"),
                '%' => write!(f, "%"),
                other => write!(f, "%{other}"),
            }?;
        }
        Ok(())
    }
}

/// The format of PHP-FPM's slow log: `21-Nov-2026 00:00:00`.
pub(crate) struct Dashed(pub(crate) Moment);

impl fmt::Display for Dashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moment { year, month, day, hour, minute, second, .. } = self.0;
        write!(f, "{day:02}-{}-{year:04} {hour:02}:{minute:02}:{second:02}", MONTHS[month])
    }
}

thread_local! {
    static LAST: RefCell<LastSecond> = const { RefCell::new(LastSecond { second: u64::MAX, combined: String::new(), iso: String::new() }) };
}

/// The texts of the second of a thread's last log line: most lines are of the same one.
struct LastSecond {
    /// Seconds since 1970.
    second: u64,
    combined: String,
    /// Without milliseconds.
    iso: String,
}

impl LastSecond {
    fn set(&mut self, second: u64, time: SystemTime) {
        if self.second != second {
            let moment = Moment::from(time);
            self.second = second;
            self.combined.clear();
            self.iso.clear();
            // Writing to a String cannot fail.
            let _ = write!(self.combined, "{}", Combined(moment));
            let _ = write!(self.iso, "{}", Iso(moment));
            self.iso.truncate(self.iso.len() - ".000Z".len());
        }
    }
}

/// Appends a timestamp in the combined format, without brackets.
pub(crate) fn append_combined(line: &mut Vec<u8>, time: SystemTime) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    LAST.with_borrow_mut(|last| {
        last.set(since.as_secs(), time);
        line.extend_from_slice(last.combined.as_bytes());
    });
}

/// Appends a timestamp in the format of JSON.
pub(crate) fn append_iso(line: &mut Vec<u8>, time: SystemTime) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    LAST.with_borrow_mut(|last| {
        last.set(since.as_secs(), time);
        line.extend_from_slice(last.iso.as_bytes());
    });
    let millis = since.subsec_millis();
    let digit = |unit: u32| b'0' + (millis / unit % 10) as u8;
    line.extend_from_slice(&[b'.', digit(100), digit(10), digit(1), b'Z']);
}

/// A timestamp in the combined format, without brackets.
pub fn log_time(time: SystemTime) -> String {
    Combined(Moment::from(time)).to_string()
}

/// A timestamp in the format of PHP-FPM's messages, without brackets.
pub fn dashed_time(time: SystemTime) -> String {
    Dashed(Moment::from(time)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn known_moments() {
        for (seconds, iso) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (1_795_219_200, "2026-11-21T00:00:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(Iso(Moment::from(UNIX_EPOCH + Duration::from_secs(seconds))).to_string(), iso);
        }
        let moment = Moment::from(UNIX_EPOCH + Duration::from_millis(1_795_219_200_007));
        assert_eq!(Iso(moment).to_string(), "2026-11-21T00:00:00.007Z");
        assert_eq!(Combined(moment).to_string(), "21/Nov/2026:00:00:00 +0000");
        for (millis, combined, iso) in [
            (1_795_219_200_007, "21/Nov/2026:00:00:00 +0000", "2026-11-21T00:00:00.007Z"),
            (1_795_219_200_950, "21/Nov/2026:00:00:00 +0000", "2026-11-21T00:00:00.950Z"),
            (1_795_219_201_000, "21/Nov/2026:00:00:01 +0000", "2026-11-21T00:00:01.000Z"),
            (0, "01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00.000Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_millis(millis);
            let (mut first, mut second) = (Vec::new(), Vec::new());
            append_combined(&mut first, time);
            append_iso(&mut second, time);
            assert_eq!((first, second), (combined.into(), iso.into()));
        }
        let afternoon = UNIX_EPOCH + Duration::from_secs(1_795_219_200 + 13 * 3600 + 65);
        let formatted = Formatted(afternoon, "%a %e %b %Y %I:%M:%S %p %F %T %y%% %s %z %Z %Q %").to_string();
        let expected = "Sat 21 Nov 2026 01:01:05 PM 2026-11-21 13:01:05 26% 1795266065 +0000 UTC %Q %";
        assert_eq!(formatted, expected);
    }
}

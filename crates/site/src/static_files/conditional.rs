//! Conditional requests (RFC 9110, section 13), in the order of its section 13.2.2.

use std::time::{Duration, SystemTime};

use http::header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::entity_tags::Tags;

/// Result of evaluating the conditions of a GET or HEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Respond as without conditions. `Range` applies only if `ranges` is set.
    Proceed { ranges: bool },
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// Validators of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validators<'a> {
    /// The strong entity tag with its quotes.
    pub(super) etag: &'a str,
    /// `Last-Modified` in seconds since 1970.
    pub(super) modified: i64,
}

/// Evaluates the conditions in `headers`. `now` determines if a date is a strong validator.
pub(super) fn evaluate(headers: &HeaderMap, validators: Validators<'_>, now: SystemTime) -> Verdict {
    if headers.contains_key(IF_MATCH) {
        if !tags_match(headers, IF_MATCH, |tag| tag == validators.etag.as_bytes()) {
            return Verdict::Failed;
        }
    } else if let Some(date) = date(headers, IF_UNMODIFIED_SINCE)
        && validators.modified > date
    {
        return Verdict::Failed;
    }
    if headers.contains_key(IF_NONE_MATCH) {
        if tags_match(headers, IF_NONE_MATCH, |tag| {
            tag.strip_prefix(b"W/").unwrap_or(tag) == validators.etag.as_bytes()
        }) {
            return Verdict::NotModified;
        }
    } else if let Some(date) = date(headers, IF_MODIFIED_SINCE)
        && validators.modified <= date
    {
        return Verdict::NotModified;
    }
    Verdict::Proceed { ranges: headers.get(IF_RANGE).is_none_or(|field| if_range(field, validators, now)) }
}

/// `true` if the client's partial copy is of this file: the strong tags are equal, or the dates are equal and strong. A
/// date is strong once it is over a second old, because a later write would have changed it (section 8.8.2.2).
fn if_range(field: &HeaderValue, validators: Validators<'_>, now: SystemTime) -> bool {
    let Ok(text) = field.to_str() else { return false };
    let text = text.trim();
    if text.starts_with('"') || text.starts_with("W/") {
        return text == validators.etag;
    }
    let Some(date) = parse_date(text) else { return false };
    date == validators.modified && now > SystemTime::UNIX_EPOCH + Duration::from_secs(date.max(0).unsigned_abs() + 1)
}

/// `true` if a tag in the fields `name` satisfies `equal`, or one is `*`.
fn tags_match(headers: &HeaderMap, name: HeaderName, equal: impl Fn(&[u8]) -> bool) -> bool {
    let fields = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    fields.into_iter().any(|field| field.trim_ascii() == b"*" || Tags(field).any(&equal))
}

/// Returns the date of a field; `None` if it is missing or invalid.
fn date(headers: &HeaderMap, name: HeaderName) -> Option<i64> {
    parse_date(headers.get(name)?.to_str().ok()?)
}

fn parse_date(text: &str) -> Option<i64> {
    let since = httpdate::parse_http_date(text.trim()).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "\"abc\"";
    const OTHER: &str = "\"xyz\"";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const MODIFIED: i64 = 784_111_777;
    const GO: Verdict = Verdict::Proceed { ranges: true };

    fn verdict(fields: &[(&str, &str)]) -> Verdict {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        evaluate(&headers, Validators { etag: TAG, modified: MODIFIED }, SystemTime::now())
    }

    #[test]
    fn table() {
        use Verdict::{Failed, NotModified};
        let no_range = Verdict::Proceed { ranges: false };
        let table: &[(&[(&str, &str)], Verdict)] = &[
            (&[], GO),
            (&[("if-match", TAG)], GO),
            (&[("if-match", "*")], GO),
            (&[("if-match", OTHER)], Failed),
            (&[("if-match", "W/\"abc\"")], Failed),
            (&[("if-match", "\"a,b\", \"abc\"")], GO),
            (&[("if-match", OTHER), ("if-match", TAG)], GO),
            (&[("if-match", "garbage")], Failed),
            (&[("if-unmodified-since", BEFORE)], Failed),
            (&[("if-unmodified-since", SAME)], GO),
            (&[("if-unmodified-since", AFTER)], GO),
            (&[("if-unmodified-since", "garbage")], GO),
            (&[("if-match", TAG), ("if-unmodified-since", BEFORE)], GO),
            (&[("if-none-match", TAG)], NotModified),
            (&[("if-none-match", "W/\"abc\"")], NotModified),
            (&[("if-none-match", "*")], NotModified),
            (&[("if-none-match", OTHER)], GO),
            (&[("if-none-match", "\"xyz\" , W/\"abc\"")], NotModified),
            (&[("if-none-match", "\"x\"y\"abc\"")], GO),
            (&[("if-none-match", "abc")], GO),
            (&[("if-modified-since", BEFORE)], GO),
            (&[("if-modified-since", SAME)], NotModified),
            (&[("if-modified-since", AFTER)], NotModified),
            (&[("if-modified-since", "Sunday, 06-Nov-94 08:49:37 GMT")], NotModified),
            (&[("if-modified-since", "Sun Nov  6 08:49:37 1994")], NotModified),
            (&[("if-modified-since", "yesterday")], GO),
            (&[("if-none-match", OTHER), ("if-modified-since", SAME)], GO),
            (&[("if-match", TAG), ("if-none-match", TAG)], NotModified),
            (&[("if-match", OTHER), ("if-none-match", TAG)], Failed),
            (&[("if-unmodified-since", BEFORE), ("if-modified-since", SAME)], Failed),
            (&[("if-range", TAG)], GO),
            (&[("if-range", OTHER)], no_range),
            (&[("if-range", "W/\"abc\"")], no_range),
            (&[("if-range", SAME)], GO),
            (&[("if-range", BEFORE)], no_range),
            (&[("if-range", AFTER)], no_range),
            (&[("if-range", "garbage")], no_range),
            (&[("if-none-match", TAG), ("if-range", OTHER)], NotModified),
        ];
        for (fields, expected) in table {
            assert_eq!(verdict(fields), *expected, "{fields:?}");
        }
    }

    #[test]
    fn a_date_of_this_second_is_weak() {
        let mut headers = HeaderMap::new();
        headers.insert(IF_RANGE, HeaderValue::from_static(SAME));
        let at = |seconds: u64, millis: u64| {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis);
            evaluate(&headers, Validators { etag: TAG, modified: MODIFIED }, now)
        };
        assert_eq!(at(784_111_777, 900), Verdict::Proceed { ranges: false });
        assert_eq!(at(784_111_779, 0), GO);
    }
}

//! The `Range` field (RFC 9110, section 14): the parts of a file that a client requests.

use http::HeaderValue;

/// A field with more ranges than this is ignored: no legitimate client needs them, and each costs a part header.
const MAX_RANGES: usize = 32;
/// Ranges at most this many bytes apart are merged: a part header between them would be longer.
const GAP: u64 = 80;

/// A part of a file: `start <= byte < end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Span {
    pub(super) fn len(self) -> u64 {
        self.end - self.start
    }
}

/// Result of a `Range` header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RangeSelection {
    /// The whole file: it is empty, or the field is malformed, uses another unit, or is abusive, so it is ignored.
    All,
    /// No range can be satisfied: 416.
    Nothing,
    /// These parts; never empty, and without empty parts.
    Parts(Vec<Span>),
}

/// Reads a `Range` field for a representation of `len` bytes.
pub(super) fn parse(field: &HeaderValue, len: u64) -> RangeSelection {
    let Some(list) = field.to_str().ok().and_then(byte_ranges) else { return RangeSelection::All };
    if len == 0 {
        // No range of an empty file can be satisfied, so the whole file is sent instead of a 416.
        return RangeSelection::All;
    }
    let mut parts = Vec::new();
    let mut seen = 0;
    for spec in list.split(',').map(|spec| spec.trim_matches([' ', '\t'])).filter(|spec| !spec.is_empty()) {
        seen += 1;
        if seen > MAX_RANGES {
            return RangeSelection::All;
        }
        match one(spec, len) {
            None => return RangeSelection::All,
            Some(None) => {}
            Some(Some(part)) => parts.push(part),
        }
    }
    match (seen, parts.len()) {
        (0, _) => RangeSelection::All,
        (_, 0) => RangeSelection::Nothing,
        _ => RangeSelection::Parts(merge(parts)),
    }
}

fn byte_ranges(field: &str) -> Option<&str> {
    let (unit, list) = field.split_once('=')?;
    unit.trim().eq_ignore_ascii_case("bytes").then_some(list)
}

/// One range: `None` if malformed, `Some(None)` if beyond the end.
fn one(spec: &str, len: u64) -> Option<Option<Span>> {
    let (first, last) = spec.split_once('-')?;
    if first.is_empty() {
        let suffix = number(last)?;
        return Some((suffix > 0).then(|| Span { start: len.saturating_sub(suffix), end: len }));
    }
    let start = number(first)?;
    let end = if last.is_empty() { len } else { number(last)?.saturating_add(1) };
    if !last.is_empty() && end <= start {
        return None;
    }
    Some((start < len).then(|| Span { start, end: end.min(len) }))
}

/// Parses digits only. A number that exceeds 64 bits is beyond the end of every file.
fn number(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

/// Returns the parts in the requested order. If some overlap or are no more than `GAP` apart, merges them in ascending
/// order, so that the sum of the parts never exceeds the file.
fn merge(mut parts: Vec<Span>) -> Vec<Span> {
    let mut sorted = parts.clone();
    sorted.sort_unstable_by_key(|part| (part.start, part.end));
    if sorted.windows(2).all(|pair| pair[0].end.saturating_add(GAP) < pair[1].start) {
        return parts;
    }
    parts.clear();
    for part in sorted {
        match parts.last_mut() {
            Some(last) if part.start <= last.end.saturating_add(GAP) => last.end = last.end.max(part.end),
            _ => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(field: &str, len: u64) -> RangeSelection {
        parse(&HeaderValue::from_str(field).unwrap(), len)
    }

    fn parts(list: &[(u64, u64)]) -> RangeSelection {
        RangeSelection::Parts(list.iter().map(|&(start, end)| Span { start, end }).collect())
    }

    #[test]
    fn single_ranges() {
        let table: &[(&str, RangeSelection)] = &[
            ("bytes=0-0", parts(&[(0, 1)])),
            ("bytes=0-", parts(&[(0, 1000)])),
            ("Bytes=5-9", parts(&[(5, 10)])),
            ("bytes=990-5000", parts(&[(990, 1000)])),
            ("bytes=-1", parts(&[(999, 1000)])),
            ("bytes=-5000", parts(&[(0, 1000)])),
            ("bytes= 1-2 ", parts(&[(1, 3)])),
            ("bytes=0-99999999999999999999999", parts(&[(0, 1000)])),
            ("bytes=0-18446744073709551615", parts(&[(0, 1000)])),
            ("bytes=1000-", RangeSelection::Nothing),
            ("bytes=99999999999999999999999-", RangeSelection::Nothing),
            ("bytes=-0", RangeSelection::Nothing),
            ("bytes=5-4", RangeSelection::All),
            ("bytes=-", RangeSelection::All),
            ("bytes=", RangeSelection::All),
            ("bytes=,", RangeSelection::All),
            ("bytes=a-b", RangeSelection::All),
            ("bytes=+1-2", RangeSelection::All),
            ("bytes=1--2", RangeSelection::All),
            ("lines=1-2", RangeSelection::All),
            ("1-2", RangeSelection::All),
        ];
        for (field, expected) in table {
            assert_eq!(wanted(field, 1000), *expected, "{field}");
        }
        assert_eq!(wanted("bytes=0-", 0), RangeSelection::All);
    }

    #[test]
    fn several_ranges() {
        assert_eq!(wanted("bytes=900-909, 0-9", 1000), parts(&[(900, 910), (0, 10)]), "order is kept");
        assert_eq!(wanted("bytes=0-9,,500-509", 1000), parts(&[(0, 10), (500, 510)]));
        assert_eq!(wanted("bytes=0-9,2000-", 1000), parts(&[(0, 10)]), "ranges beyond the end are dropped");
        assert_eq!(wanted("bytes=500-600,0-9,550-700", 1000), parts(&[(0, 10), (500, 701)]), "overlap is joined");
        assert_eq!(wanted("bytes=0-9,10-19", 1000), parts(&[(0, 20)]), "neighbours are joined");
        assert_eq!(wanted("bytes=0-9,5-4", 1000), RangeSelection::All);
        assert_eq!(wanted("bytes=2000-,3000-", 1000), RangeSelection::Nothing);
    }

    #[test]
    fn abuse_is_bounded() {
        let many =
            |n: u64| format!("bytes={}", (0..n).map(|i| format!("{0}-{0}", i * 100)).collect::<Vec<_>>().join(","));
        assert!(matches!(wanted(&many(32), 100_000), RangeSelection::Parts(parts) if parts.len() == 32));
        assert_eq!(wanted(&many(33), 100_000), RangeSelection::All);
        let same = format!("bytes={}", ["0-"; 32].join(","));
        assert_eq!(wanted(&same, 1000), parts(&[(0, 1000)]), "the file is not sent 32 times");
    }
}

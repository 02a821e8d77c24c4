//! Selects responses for compression, and adapts their headers.
//!
//! The rules, in the order in which they are asked:
//! 1. Responses without a complete body are left alone: 1xx, 204, 205, and whatever carries `Content-Range`. A 206
//!    is not encoded, as its range counts bytes of the unencoded file.
//! 2. So are responses that have been encoded already, that say `Cache-Control: no-transform`, and that carry a digest of
//!    their bytes (`Content-Digest`, `Repr-Digest`, `Digest`, `Content-MD5`), which encoding would make a lie.
//! 3. So are media types outside the list.
//! 4. What is left gets `Vary: Accept-Encoding` whether it is encoded in the end or not (a later response for the same
//!    URL may be), and so do a 304 that stands for it and a 206 that is a part of it (RFC 9110 15.3.7).

use crate::entity_tags::Tags;
use howdah_config::Algorithm;
use http::StatusCode;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, Entry,
    HeaderMap, HeaderName, HeaderValue, VARY,
};

/// The media types that are compressed.
#[derive(Debug, Clone, Default)]
pub struct TypeList {
    exact: Vec<Box<[u8]>>,
    /// `text/` of `text/*`.
    kinds: Vec<Box<[u8]>>,
    /// `+json` of a listed `+json` or `application/json`.
    suffixes: Vec<Box<[u8]>>,
    everything: bool,
}

impl TypeList {
    /// Reads a list of `type/subtype`, `type/*`, `+suffix` and `*`.
    ///
    /// `application/json` and `application/xml` stand for every type of that syntax too (`+json`, `+xml`).
    pub fn new<S: AsRef<str>>(patterns: &[S]) -> Self {
        let mut list = Self::default();
        for pattern in patterns {
            let pattern = pattern.as_ref().trim().to_ascii_lowercase();
            match pattern.as_str() {
                "" => continue,
                "*" | "*/*" => list.everything = true,
                "application/json" => list.suffixes.push(b"+json"[..].into()),
                "application/xml" => list.suffixes.push(b"+xml"[..].into()),
                _ => {}
            }
            if let Some(kind) = pattern.strip_suffix('*').filter(|kind| kind.ends_with('/')) {
                list.kinds.push(kind.as_bytes().into());
            } else if pattern.starts_with('+') {
                list.suffixes.push(pattern.into_bytes().into());
            } else {
                list.exact.push(pattern.into_bytes().into());
            }
        }
        list
    }

    /// True if a body with this `Content-Type` is in the list. Parameters do not count.
    #[must_use]
    pub fn contains(&self, content_type: &[u8]) -> bool {
        let end = content_type.iter().position(|byte| *byte == b';' || *byte == b',').unwrap_or(content_type.len());
        let essence = content_type[..end].trim_ascii();
        let starts = |kind: &[u8]| essence.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind));
        let ends = |suffix: &[u8]| {
            essence.len().checked_sub(suffix.len()).is_some_and(|at| essence[at..].eq_ignore_ascii_case(suffix))
        };
        if !essence.contains(&b'/') {
            return false;
        }
        self.everything
            || self.kinds.iter().any(|kind| starts(kind))
            || self.exact.iter().any(|exact| essence.eq_ignore_ascii_case(exact))
            || self.suffixes.iter().any(|suffix| ends(suffix))
    }
}

/// The policy's decision about a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Not ours: nothing of it changes.
    Leave,
    /// A 304 that stands for a response that may be compressed.
    NotModified,
    /// A part of a response that may be compressed.
    Part,
    /// It may be compressed.
    Candidate {
        /// The length that the response's own `Content-Length` states.
        declared: Option<u64>,
    },
}

/// Applies the rules above to a response's head, in one pass over its fields.
#[must_use]
pub fn judge(status: StatusCode, headers: &HeaderMap, types: &TypeList) -> Verdict {
    if status.is_informational() || matches!(status.as_u16(), 204 | 205) {
        return Verdict::Leave;
    }
    let is_part = status == StatusCode::PARTIAL_CONTENT;
    let mut media_type = None;
    let mut declared = None;
    for (name, value) in headers {
        if name == CONTENT_TYPE {
            // Several parts have the type of their frame.
            let is_frame = is_part && value.as_bytes().starts_with(b"multipart/byteranges");
            media_type = Some(is_frame || types.contains(value.as_bytes()));
        } else if name == CONTENT_LENGTH {
            declared = value.to_str().ok().and_then(|length| length.trim().parse().ok());
        } else if name == CONTENT_ENCODING {
            // `identity` is not for use in this field, but it is written there and means nothing.
            if !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity") {
                return Verdict::Leave;
            }
        } else if name == CACHE_CONTROL {
            if has_token(value, b"no-transform") {
                return Verdict::Leave;
            }
        } else if (name == CONTENT_RANGE && !is_part) || is_digest(name) {
            return Verdict::Leave;
        }
    }
    match (status == StatusCode::NOT_MODIFIED, media_type) {
        // A 304 need not name its type: then it may stand for a response that is compressed.
        (true, None | Some(true)) => Verdict::NotModified,
        (false, Some(true)) if is_part => Verdict::Part,
        (false, Some(true)) => Verdict::Candidate { declared },
        (_, None | Some(false)) => Verdict::Leave,
    }
}

fn is_digest(name: &HeaderName) -> bool {
    matches!(name.as_str(), "content-digest" | "repr-digest" | "digest" | "content-md5")
}

/// True if a comma-separated field value has this element (its arguments aside).
fn has_token(value: &HeaderValue, token: &[u8]) -> bool {
    value.as_bytes().split(|byte| *byte == b',').any(|element| {
        let end = element.iter().position(|byte| *byte == b'=').unwrap_or(element.len());
        element[..end].trim_ascii().eq_ignore_ascii_case(token)
    })
}

/// Adds `Accept-Encoding` to `Vary`, in the first field that is there.
pub fn add_vary(headers: &mut HeaderMap) {
    let mut there = match headers.entry(VARY) {
        Entry::Vacant(vacant) => {
            vacant.insert(HeaderValue::from_static("Accept-Encoding"));
            return;
        }
        Entry::Occupied(there) => there,
    };
    if there.iter().any(|value| has_token(value, b"accept-encoding") || has_token(value, b"*")) {
        return;
    }
    let first = there.get_mut();
    let others = first.as_bytes().trim_ascii();
    let merged = if others.is_empty() { None } else { Some([others, b", Accept-Encoding"].concat()) };
    let merged = merged.and_then(|merged| HeaderValue::from_bytes(&merged).ok());
    *first = merged.unwrap_or(HeaderValue::from_static("Accept-Encoding"));
}

/// Sets the fields of an encoded response, except its new length, which the writer of the body knows.
pub fn mark_encoded(headers: &mut HeaderMap, algorithm: Algorithm) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(algorithm.word()));
    forget_unencoded(headers);
}

/// Removes what is true of the unencoded body only: its length, ranges of it, the promise of equal bytes in its `ETag`.
pub fn forget_unencoded(headers: &mut HeaderMap) {
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    weaken_etag(headers);
}

/// Makes a strong `ETag` weak: the same page, but not the same bytes (RFC 9110 §8.8.1).
fn weaken_etag(headers: &mut HeaderMap) {
    if let Some(etag) = headers.get_mut(ETAG)
        && let Some(weak) = weak_form(etag)
    {
        *etag = weak;
    }
}

fn weak_form(etag: &HeaderValue) -> Option<HeaderValue> {
    if !etag.as_bytes().starts_with(b"\"") {
        return None;
    }
    HeaderValue::from_bytes(&[b"W/", etag.as_bytes()].concat()).ok()
}

/// Finishes a 304: `Vary` as the 200 has it, and the weak `ETag` if that is what the client got with the encoded body
/// (a cache may refresh a stored response only from a 304 with its own validator, RFC 9111 §4.3.4).
pub fn finish_not_modified(headers: &mut HeaderMap, if_none_match: Option<&HeaderValue>) {
    add_vary(headers);
    let Some(asked) = if_none_match else { return };
    let Some(weak) = headers.get(ETAG).and_then(weak_form) else { return };
    let held = Tags(asked.as_bytes()).any(|tag| tag == weak.as_bytes());
    if held {
        headers.insert(ETAG, weak);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn types() -> TypeList {
        TypeList::new(&["text/*", "application/json", "image/svg+xml", "+cbor"])
    }

    #[test]
    fn media_types() {
        let cases = [
            ("text/html", true),
            ("text/html; charset=UTF-8", true),
            ("TEXT/HTML;charset=UTF-8", true),
            (" text/plain ", true),
            ("text/event-stream", true),
            ("application/json", true),
            ("application/ld+json;profile=x", true),
            ("application/Problem+JSON", true),
            ("image/svg+xml", true),
            ("application/senml+cbor", true),
            ("application/rss+xml", false),
            ("application/jsonx", false),
            ("application/pdf", false),
            ("image/png", false),
            ("texts/html", false),
            ("text", false),
            ("", false),
            (";", false),
            ("+json", false),
        ];
        for (content_type, expected) in cases {
            assert_eq!(types().contains(content_type.as_bytes()), expected, "{content_type:?}");
        }
        assert!(TypeList::new(&["application/xml"]).contains(b"application/rss+xml"));
        assert!(TypeList::new(&["*"]).contains(b"image/png"));
        assert!(!TypeList::new(&["", " "]).contains(b"text/html"));
    }

    #[test]
    fn verdicts() {
        let html = ("content-type", "text/html");
        let maybe = Verdict::Candidate { declared: None };
        type Fields<'a> = &'a [(&'static str, &'a str)];
        let cases: &[(u16, Fields<'_>, Verdict)] = &[
            (200, &[html], maybe),
            (404, &[html], maybe),
            (500, &[html], maybe),
            (200, &[html, ("content-length", "77")], Verdict::Candidate { declared: Some(77) }),
            (200, &[html, ("content-length", "x")], maybe),
            (200, &[], Verdict::Leave),
            (200, &[("content-type", "image/png")], Verdict::Leave),
            (100, &[html], Verdict::Leave),
            (204, &[html], Verdict::Leave),
            (205, &[html], Verdict::Leave),
            (206, &[html, ("content-range", "bytes 1-2/10")], Verdict::Part),
            (206, &[("content-type", "multipart/byteranges; boundary=x")], Verdict::Part),
            (206, &[("content-type", "image/png"), ("content-range", "bytes 1-2/10")], Verdict::Leave),
            (206, &[html, ("content-encoding", "gzip")], Verdict::Leave),
            (416, &[html, ("content-range", "bytes */10")], Verdict::Leave),
            (304, &[html], Verdict::NotModified),
            (304, &[("etag", "\"x\"")], Verdict::NotModified),
            (304, &[("content-type", "image/png")], Verdict::Leave),
            (200, &[html, ("content-encoding", "gzip")], Verdict::Leave),
            (200, &[html, ("content-encoding", "identity")], maybe),
            (304, &[html, ("content-encoding", "gzip")], Verdict::Leave),
            (200, &[html, ("cache-control", "public, no-transform, max-age=1")], Verdict::Leave),
            (200, &[html, ("cache-control", "public"), ("cache-control", "No-Transform")], Verdict::Leave),
            (200, &[html, ("cache-control", "x-no-transform, max-age=1")], maybe),
            (200, &[html, ("content-digest", "sha-256=:AA==:")], Verdict::Leave),
            (200, &[html, ("repr-digest", "sha-256=:AA==:")], Verdict::Leave),
            (200, &[html, ("content-md5", "x")], Verdict::Leave),
        ];
        for (status, fields, expected) in cases {
            let status = StatusCode::from_u16(*status).unwrap();
            assert_eq!(judge(status, &head(fields), &types()), *expected, "{status} {fields:?}");
        }
    }

    #[test]
    fn vary_is_merged() {
        let cases: &[(&[&str], &[&str])] = &[
            (&[], &["Accept-Encoding"]),
            (&[""], &["Accept-Encoding"]),
            (&["Cookie"], &["Cookie, Accept-Encoding"]),
            (&["Cookie", "Accept"], &["Cookie, Accept-Encoding", "Accept"]),
            (&["accept-encoding"], &["accept-encoding"]),
            (&["Cookie", "Accept, ACCEPT-ENCODING"], &["Cookie", "Accept, ACCEPT-ENCODING"]),
            (&["Accept-Encoding-2"], &["Accept-Encoding-2, Accept-Encoding"]),
            (&["*"], &["*"]),
        ];
        for (before, after) in cases {
            let mut headers = head(&before.iter().map(|value| ("vary", *value)).collect::<Vec<_>>());
            add_vary(&mut headers);
            let got: Vec<_> = headers.get_all(VARY).iter().collect();
            assert_eq!(got, *after, "{before:?}");
        }
    }

    #[test]
    fn encoded_head() {
        let mut headers = head(&[
            ("etag", "\"abc\""),
            ("content-length", "5000"),
            ("accept-ranges", "bytes"),
            ("content-encoding", "identity"),
        ]);
        mark_encoded(&mut headers, Algorithm::Brotli);
        assert_eq!(headers, head(&[("etag", "W/\"abc\""), ("content-encoding", "br")]));
        mark_encoded(&mut headers, Algorithm::Gzip);
        assert_eq!(headers, head(&[("etag", "W/\"abc\""), ("content-encoding", "gzip")]));
        let mut broken = head(&[("etag", "abc")]);
        mark_encoded(&mut broken, Algorithm::Gzip);
        assert_eq!(broken[ETAG], "abc");
    }

    #[test]
    fn not_modified_keeps_the_clients_validator() {
        let cases = [
            (None, "\"a\"", "\"a\""),
            (Some("\"a\""), "\"a\"", "\"a\""),
            (Some("W/\"a\""), "\"a\"", "W/\"a\""),
            (Some("\"b\", W/\"a\""), "\"a\"", "W/\"a\""),
            (Some("W/\"b\""), "\"a\"", "\"a\""),
            (Some("W/\"a\""), "W/\"a\"", "W/\"a\""),
            (Some("*"), "\"a\"", "\"a\""),
        ];
        for (asked, etag, expected) in cases {
            let mut headers = head(&[("etag", etag)]);
            let asked = asked.map(|asked| HeaderValue::from_str(asked).unwrap());
            finish_not_modified(&mut headers, asked.as_ref());
            assert_eq!(headers[ETAG], expected, "{asked:?}");
            assert_eq!(headers[VARY], "Accept-Encoding");
        }
    }
}

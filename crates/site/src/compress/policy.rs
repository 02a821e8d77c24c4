//! Selects responses for compression, and adapts their headers.
//!
//! The rules, in order:
//! 1. Responses without a complete body are not changed: 1xx, 204, 205, and any but a 206 with `Content-Range`. A 206
//!    is not encoded because its range counts bytes of the unencoded file.
//! 2. Nor are responses that are already encoded, have `Cache-Control: no-transform`, or carry a digest of their bytes
//!    (`Content-Digest`, `Repr-Digest`, `Digest`, `Content-MD5`), which encoding would invalidate.
//! 3. Nor are media types outside the list.
//! 4. All others get `Vary: Accept-Encoding`, encoded or not, because a later response for the same URL may be encoded.
//!    So do their 304 and 206 responses (RFC 9110 15.3.7).

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
    /// `application/json` and `application/xml` also include every type of that syntax (`+json`, `+xml`).
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

    /// `true` if the list contains this `Content-Type`. Parameters are ignored.
    pub fn contains(&self, content_type: &[u8]) -> bool {
        let starts =
            |text: &[u8], kind: &[u8]| text.get(..kind.len()).is_some_and(|start| start.eq_ignore_ascii_case(kind));
        // Most responses are some `text/…`, for which the rest need not be read.
        if self.kinds.iter().any(|kind| starts(content_type, kind)) {
            return true;
        }
        let end = content_type.iter().position(|byte| *byte == b';' || *byte == b',').unwrap_or(content_type.len());
        let essence = content_type[..end].trim_ascii();
        let ends = |suffix: &[u8]| {
            essence.len().checked_sub(suffix.len()).is_some_and(|at| essence[at..].eq_ignore_ascii_case(suffix))
        };
        if !essence.contains(&b'/') {
            return false;
        }
        self.everything
            || self.kinds.iter().any(|kind| starts(essence, kind))
            || self.exact.iter().any(|exact| essence.eq_ignore_ascii_case(exact))
            || self.suffixes.iter().any(|suffix| ends(suffix))
    }
}

/// The policy's decision about a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Must not be changed at all.
    Leave,
    /// A 304 for a response that may be compressed.
    NotModified,
    /// A 206 for a response that may be compressed.
    Part,
    /// It may be compressed.
    Candidate {
        /// The length from the response's `Content-Length`.
        declared: Option<u64>,
    },
}

/// Applies the module's rules to a response head, in one pass over its fields.
pub fn judge(status: StatusCode, headers: &HeaderMap, types: &TypeList) -> Verdict {
    if status.is_informational() || matches!(status.as_u16(), 204 | 205) {
        return Verdict::Leave;
    }
    let is_part = status == StatusCode::PARTIAL_CONTENT;
    let mut media_type = None;
    let mut declared = None;
    for (name, value) in headers {
        if name == CONTENT_TYPE {
            // A response with several ranges has the media type of the multipart container.
            let is_frame = is_part && value.as_bytes().starts_with(b"multipart/byteranges");
            media_type = Some(is_frame || types.contains(value.as_bytes()));
        } else if name == CONTENT_LENGTH {
            declared = value.to_str().ok().and_then(|length| length.trim().parse().ok());
        } else if name == CONTENT_ENCODING {
            // `identity` must not occur in this field, but some applications send it. It has no effect.
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
        // A 304 may omit its type; its response may then be one that is compressed.
        (true, None | Some(true)) => Verdict::NotModified,
        (false, Some(true)) if is_part => Verdict::Part,
        (false, Some(true)) => Verdict::Candidate { declared },
        (_, None | Some(false)) => Verdict::Leave,
    }
}

fn is_digest(name: &HeaderName) -> bool {
    matches!(name.as_str(), "content-digest" | "repr-digest" | "digest" | "content-md5")
}

/// `true` if a comma-separated field value contains this element. Arguments of elements are ignored.
fn has_token(value: &HeaderValue, token: &[u8]) -> bool {
    value.as_bytes().split(|byte| *byte == b',').any(|element| {
        let end = element.iter().position(|byte| *byte == b'=').unwrap_or(element.len());
        element[..end].trim_ascii().eq_ignore_ascii_case(token)
    })
}

/// Adds `Accept-Encoding` to `Vary`, in the first existing field line.
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

/// Sets the header fields of an encoded response, except `Content-Length`, which the writer of the body sets.
pub fn mark_encoded(headers: &mut HeaderMap, algorithm: Algorithm) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static(algorithm.word()));
    forget_unencoded(headers);
}

/// Removes the fields that describe the unencoded body: its length and ranges. Makes its `ETag` weak.
pub fn forget_unencoded(headers: &mut HeaderMap) {
    headers.remove(CONTENT_LENGTH);
    headers.remove(ACCEPT_RANGES);
    weaken_etag(headers);
}

/// Makes a strong `ETag` weak: the content is equivalent, but the bytes differ (RFC 9110 §8.8.1).
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

/// Completes a 304: adds `Vary` as in the 200, and the weak `ETag` if the client got that with the encoded body. A
/// cache may refresh a stored response only from a 304 with the same validator (RFC 9111 §4.3.4).
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

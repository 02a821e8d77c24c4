//! A request's target as the client spelled it, byte for byte, with the positions of its parts.
//!
//! nginx accepts nearly any byte in a target, and scripts see it unchanged in `REQUEST_URI`, so nothing is encoded,
//! decoded or normalised here. Only control characters, spaces and DEL are refused, because they could be taken for the
//! end of the target. In HTTP/2, `http::Uri` refuses more bytes and drops the fragment.

use bytes::Bytes;
use http::Uri;
use http::uri::Scheme;

/// Target of a request.
#[derive(Debug, Clone)]
pub struct Target {
    /// Path, query and fragment; empty if there is no path (`CONNECT host:port`).
    text: Bytes,
    /// End of the path.
    path: u32,
    /// Start of the query, after the question mark, and its end; equal if there is none.
    query: (u32, u32),
    /// There is a question mark, with or without a query after it.
    has_query: bool,
    /// The host (and port) of a target in absolute form, or `:authority` in HTTP/2 and 3.
    authority: Option<Bytes>,
    https: bool,
}

/// `true` if a byte may be in a target.
const fn is_visible(byte: u8) -> bool {
    byte > b' ' && byte != 0x7f
}

/// Invalid target: a forbidden byte, or empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTarget;

impl Target {
    /// The target of a request line: `/path?query`, `http://host/path?query`, `*`, or `host:port`.
    ///
    /// # Errors
    /// The target is empty or contains a forbidden byte. Its meaning is not checked.
    pub fn parse(raw: Bytes) -> Result<Self, InvalidTarget> {
        if raw.is_empty() || raw.len() > u32::MAX as usize / 2 || !raw.iter().all(|&byte| is_visible(byte)) {
            return Err(InvalidTarget);
        }
        if raw[0] == b'/' || raw[..] == b"*"[..] {
            return Ok(Self::new(raw, None, false));
        }
        let Some((scheme, after)) = split_scheme(&raw) else {
            // `host:port`, as in CONNECT, or an invalid target: there is no path.
            return Ok(Self::new(Bytes::new(), None, false));
        };
        let https = scheme.eq_ignore_ascii_case(b"https");
        let end = raw[after..].iter().position(|b| matches!(b, b'/' | b'?' | b'#')).map_or(raw.len(), |at| after + at);
        let authority = raw.slice(after..end);
        let text =
            if raw.get(end) == Some(&b'/') { raw.slice(end..) } else { [&b"/"[..], &raw[end..]].concat().into() };
        Ok(Self::new(text, Some(authority), https))
    }

    /// The target of a request in HTTP/2.
    pub fn from_uri(uri: &Uri) -> Self {
        let text =
            uri.path_and_query().map_or_else(Bytes::new, |text| Bytes::copy_from_slice(text.as_str().as_bytes()));
        let authority = uri.authority().map(|authority| Bytes::copy_from_slice(authority.as_str().as_bytes()));
        Self::new(text, authority, uri.scheme() == Some(&Scheme::HTTPS))
    }

    /// The target of a request in HTTP/3: a path or `*`, or nothing (CONNECT).
    ///
    /// # Errors
    /// The target has another form or contains a forbidden byte.
    pub(crate) fn of_parts(text: Bytes, authority: Option<Bytes>, https: bool) -> Result<Self, InvalidTarget> {
        let is_target = matches!(&text[..], b"" | b"*" | [b'/', ..]) && text.iter().all(|&byte| is_visible(byte));
        let fits = text.len() <= u32::MAX as usize / 2;
        (is_target && fits).then(|| Self::new(text, authority, https)).ok_or(InvalidTarget)
    }

    fn new(text: Bytes, authority: Option<Bytes>, https: bool) -> Self {
        let end = text.iter().position(|&b| b == b'#').unwrap_or(text.len());
        let mark = text[..end].iter().position(|&b| b == b'?');
        // The length was checked by the callers; in HTTP/2 it is far below the limit.
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let path = place(mark.unwrap_or(end));
        let query = mark.map_or((path, path), |mark| (place(mark + 1), place(end)));
        Self { text, path, query, has_query: mark.is_some(), authority, https }
    }

    /// Path, query and fragment, as the client spelled them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// The path, as the client spelled it.
    pub fn path(&self) -> &[u8] {
        &self.text[..self.path as usize]
    }

    /// The query, as the client spelled it, without its question mark; `None` if there is no question mark.
    pub fn query(&self) -> Option<&[u8]> {
        self.has_query.then(|| &self.text[self.query.0 as usize..self.query.1 as usize])
    }

    /// The host and port in the target itself, neither decoded nor validated.
    pub fn authority(&self) -> Option<&[u8]> {
        self.authority.as_deref()
    }

    /// `true` if the target itself has the scheme `https`.
    pub fn is_https(&self) -> bool {
        self.https
    }
}

/// The scheme of a target in absolute form, and the start of its authority.
fn split_scheme(raw: &[u8]) -> Option<(&[u8], usize)> {
    let colon = raw.iter().position(|&b| b == b':')?;
    let scheme = &raw[..colon];
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    (is_scheme && raw[colon..].starts_with(b"://")).then_some((scheme, colon + 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(raw: &'static [u8]) -> (String, String, Option<String>, Option<String>) {
        let target = Target::parse(Bytes::from_static(raw)).unwrap();
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        (text(target.as_bytes()), text(target.path()), target.query().map(text), target.authority().map(text))
    }

    #[test]
    fn each_part_is_as_the_client_spelled_it() {
        let expect = |raw, whole: &str, path: &str, query: Option<&str>, authority: Option<&str>| {
            let expected = (whole.into(), path.into(), query.map(Into::into), authority.map(Into::into));
            assert_eq!(parsed(raw), expected);
        };
        expect(b"/", "/", "/", None, None);
        expect(b"/a%20b?c=<d>", "/a%20b?c=<d>", "/a%20b", Some("c=<d>"), None);
        expect(b"/caf\xe9\"?", "/caf\\xe9\\\"?", "/caf\\xe9\\\"", Some(""), None);
        expect(b"/a?<b>#f?g", "/a?<b>#f?g", "/a", Some("<b>"), None);
        expect(b"/a#f?x", "/a#f?x", "/a", None, None);
        expect(b"//h/p", "//h/p", "//h/p", None, None);
        expect(b"http://h:1/p?q", "/p?q", "/p", Some("q"), Some("h:1"));
        expect(b"http://h?q", "/?q", "/", Some("q"), Some("h"));
        expect(b"HTTPS://h", "/", "/", None, Some("h"));
        expect(b"*", "*", "*", None, None);
        expect(b"h:80", "", "", None, None);
        expect(b"foo", "", "", None, None);
        expect(b"1a://h/p", "", "", None, None);
    }

    #[test]
    fn empty_targets_and_forbidden_bytes_are_refused() {
        for raw in ["", "/a b", "/\r", "/\n", "/\t", "/\0", "/\x7f", "http://h\n/"] {
            assert_eq!(Target::parse(Bytes::from_static(raw.as_bytes())).unwrap_err(), InvalidTarget, "{raw:?}");
        }
    }

    #[test]
    fn the_https_scheme_is_detected() {
        let https = |raw: &'static str| Target::parse(Bytes::from_static(raw.as_bytes())).unwrap().is_https();
        assert_eq!((https("https://h/"), https("http://h/"), https("/https://h")), (true, false, false));
        let uri: Uri = "https://h:1/p?q".parse().unwrap();
        let target = Target::from_uri(&uri);
        assert!(target.is_https());
        assert_eq!((target.as_bytes(), target.authority()), (&b"/p?q"[..], Some(&b"h:1"[..])));
    }
}

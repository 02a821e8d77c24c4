//! Paths of URLs: percent-decoding (once), normalisation and encoding. Each takes linear time.

pub(crate) use howdah_rules::path::{decode, normalise};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Decodes and normalises a path. Usually borrows, because the path is plain already.
pub(crate) fn plain_path(raw: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    if howdah_rules::path::is_plain(raw) {
        return Ok(Cow::Borrowed(raw));
    }
    normalise(&decode(raw)?).map(Cow::Owned)
}

/// Percent-encodes a normalised path for a `Location`.
pub(super) fn encode(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len() + 8);
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Returns the `Location` of a redirect to an encoded path, with the query of the request.
pub(crate) fn redirect_to(path: &str, query: Option<&[u8]>) -> String {
    query.map_or_else(|| path.to_owned(), |query| format!("{path}?{}", encode_query(query)))
}

/// Returns a query for use in a `Location`: unchanged except for bytes that are invalid there.
pub(crate) fn encode_query(query: &[u8]) -> String {
    let mut text = String::with_capacity(query.len() + 8);
    for &byte in query {
        if byte >= 0x80 || matches!(byte, b'<' | b'>' | b'"' | b'`') {
            let _ = write!(text, "%{byte:02X}");
        } else {
            text.push(char::from(byte));
        }
    }
    text
}

//! Paths of addresses: percent-decoded once, normalised, and encoded again. Each takes time in proportion to the path's
//! length.

pub(crate) use howdah_rules::path::normalise;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Undoes percent-encoding, once.
pub(crate) fn decode(raw: &[u8]) -> Result<Vec<u8>, &'static str> {
    let hex = |b: Option<&u8>| b.and_then(|&b| char::from(b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    let mut plain = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let byte = match raw[at] {
            b'%' => match (hex(raw.get(at + 1)), hex(raw.get(at + 2))) {
                (Some(high), Some(low)) => {
                    at += 2;
                    high << 4 | low
                }
                _ => return Err("an invalid percent-encoding in its path"),
            },
            byte => byte,
        };
        if byte == 0 {
            return Err("a NUL byte in its path");
        }
        plain.push(byte);
        at += 1;
    }
    Ok(plain)
}

/// A path decoded and normalised; usually it is so already.
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

/// Where a redirect to an encoded path leads, with the query of the request.
pub(crate) fn redirect_to(path: &str, query: Option<&[u8]>) -> String {
    query.map_or_else(|| path.to_owned(), |query| format!("{path}?{}", encode_query(query)))
}

/// A query as it may stand in a `Location`: as the client spelled it, but for what cannot stand there.
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

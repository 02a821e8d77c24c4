//! Percent-encoded parameter of an order in the query of the admin endpoint.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The parameter of the order to restore routes.
pub(crate) const PATH: &str = "path=";

const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'*');

/// Encodes a text for a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Decodes a parameter. Stricter than usual decoders, because orders depend on it: `None` if the encoding is invalid.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let plain = percent_decode_str(text).decode_utf8().ok()?;
    // The decoder leaves invalid sequences as they are; each valid one is two bytes longer than its byte.
    let sequences = text.matches('%').count();
    (plain.len() + 2 * sequences == text.len()).then(|| plain.into_owned())
}

//! Paths of URLs: percent-decoding (once), normalisation and encoding. Each takes linear time.

pub(crate) use howdah_rules::path::{decode, normalise};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use std::borrow::Cow;

/// Bytes that are encoded in a query.
const QUERY: &AsciiSet = &CONTROLS.add(b' ').add(b'<').add(b'>').add(b'"').add(b'`');
/// Bytes that are encoded in the path of a URL.
const URL_PATH: &AsciiSet = &QUERY.add(b'#').add(b'?').add(b'{').add(b'}');
const PATH: &AsciiSet = &URL_PATH.add(b'%').add(b'[').add(b'\\').add(b']').add(b'^').add(b'|');

/// Decodes and normalises a path. Usually borrows, because the path is plain already.
pub(crate) fn plain_path(raw: &[u8]) -> Result<Cow<'_, [u8]>, &'static str> {
    if howdah_rules::path::is_plain(raw) {
        return Ok(Cow::Borrowed(raw));
    }
    normalise(&decode(raw)?).map(Cow::Owned)
}

/// Percent-encodes a normalised path.
pub(super) fn encode(path: &[u8]) -> String {
    percent_encode(path, PATH).to_string()
}

/// Returns the `Location` of a redirect to an encoded path, with the query of the request.
pub(crate) fn redirect_to(path: &str, query: Option<&[u8]>) -> String {
    query.map_or_else(|| path.to_owned(), |query| format!("{path}?{}", encode_query(query)))
}

/// Returns a query for a URL, with the bytes of `QUERY` encoded.
pub(crate) fn encode_query(query: &[u8]) -> String {
    percent_encode(query, QUERY).to_string()
}

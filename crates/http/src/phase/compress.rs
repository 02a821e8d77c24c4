//! Phase "compress": encodes an answer's body when the client accepts it and it is worth it.

use crate::body::Body;
use crate::service::Response;
use http::HeaderMap;

/// What the phase needs to know beyond request and response.
#[derive(Debug, Default)]
pub struct CompressContext {}

impl CompressContext {
    /// What the settings say.
    #[must_use]
    pub fn new(_settings: &howdah_config::Settings) -> Self {
        Self {}
    }
}

/// Encodes `response` if that is allowed and useful.
pub(crate) fn apply(
    _context: &CompressContext,
    _method: &http::Method,
    _request: &HeaderMap,
    response: Response,
) -> http::Response<Body> {
    response
}

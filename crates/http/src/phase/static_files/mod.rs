//! Phase "static": answers with a file of the document root.

use crate::body::Body;
use crate::phase::route::ResolvedFile;
use crate::service::Response;
use http::{HeaderMap, Method};

/// What the phase needs to know beyond the file and the request.
#[derive(Debug, Default)]
pub struct StaticContext {}

impl StaticContext {
    /// What the settings say.
    #[must_use]
    pub fn new(_settings: &howdah_config::Settings) -> Self {
        Self {}
    }
}

/// Answers a request for `file`.
pub(crate) fn serve(_context: &StaticContext, file: &ResolvedFile, _method: &Method, _headers: &HeaderMap) -> Response {
    match std::fs::read(&file.path) {
        Ok(content) => http::Response::new(Body::full(content.into())),
        Err(_) => {
            let mut response = http::Response::new(Body::empty());
            *response.status_mut() = http::StatusCode::NOT_FOUND;
            response
        }
    }
}

//! Responses of the admin endpoint: JSON and text, and the result of an order.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::HeaderName;
use hyper::{Response, StatusCode};
use serde::{Deserialize, Serialize};

/// Header field that an order by POST must carry, unless its body is JSON.
pub(crate) const ORDER: HeaderName = HeaderName::from_static("x-howdah");

/// Response to an order, or an error response.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// `true` if the order succeeded.
    pub(crate) ok: bool,
    /// The failure, or the result.
    pub(crate) message: String,
    /// Changes of a reload, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<String>,
}

pub(crate) fn outcome(status: StatusCode, ok: bool, message: &str) -> Response<Full<Bytes>> {
    json(status, &Outcome { ok, message: message.to_owned(), changes: Vec::new() })
}

pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    let body = serde_json::to_vec_pretty(value).unwrap_or_default();
    let mut response = text("application/json", body);
    *response.status_mut() = status;
    response
}

pub(crate) fn text(media_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    let value = hyper::header::HeaderValue::from_static(media_type);
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, value);
    response
}

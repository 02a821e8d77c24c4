//! Changes of responses by rules: headers, and access from other origins (the Fetch standard's CORS protocol).

use crate::exchange::Exchange;
use howdah_protocol::{Body, Response};
use howdah_rules::rule::Cors;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};

/// Applies rules to the headers of a response, refusals included.
pub(crate) fn apply(exchange: &Exchange, response: &mut Response) {
    let Some(ruled) = &exchange.ruled else { return };
    let outcome = &ruled.outcome;
    let status = response.status().as_u16();
    let headers = response.headers_mut();
    for change in &outcome.response {
        change.apply(status, headers);
    }
    if let Some(cors) = &outcome.cors {
        allow_origin(cors, &exchange.head.headers, headers);
    }
}

pub(super) fn preflight(exchange: &Exchange) -> Option<Response> {
    let cors = exchange.ruled.as_ref()?.outcome.cors.as_ref()?;
    let headers = &exchange.head.headers;
    let asks = exchange.head.method == Method::OPTIONS && headers.contains_key(header::ORIGIN);
    if !asks || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if admits(cors, headers) {
        let own = response.headers_mut();
        own.insert(header::ACCESS_CONTROL_ALLOW_METHODS, cors.methods.clone());
        let wanted = cors.headers.as_ref().or_else(|| headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS));
        if let Some(wanted) = wanted {
            own.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        if let Some(age) = &cors.max_age {
            own.insert(header::ACCESS_CONTROL_MAX_AGE, age.clone());
        }
    }
    Some(response)
}

pub(in crate::phase) fn admits(cors: &Cors, request: &HeaderMap) -> bool {
    let Some(origin) = request.get(header::ORIGIN) else { return false };
    cors.any || cors.origins.iter().any(|allowed| allowed.matches_any_case(origin.as_bytes()))
}

/// Allows this origin to read the response. Replaces the application's own field, as browsers reject two values.
fn allow_origin(cors: &Cors, request: &HeaderMap, response: &mut HeaderMap) {
    if !cors.any {
        // Also for an origin that is not allowed: a cache must not serve this response to another origin.
        response.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    if !admits(cors, request) {
        return;
    }
    let Some(origin) = request.get(header::ORIGIN) else { return };
    let origin = if cors.any { HeaderValue::from_static("*") } else { origin.clone() };
    response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if cors.credentials {
        response.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
    if let Some(expose) = &cors.expose {
        response.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, expose.clone());
    }
}

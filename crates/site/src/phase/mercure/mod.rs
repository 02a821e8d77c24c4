//! The Mercure hub of a site at `/.well-known/mercure`: subscribers (`subscribe`, `events`), publishers (`publish`),
//! the subscription API, tokens (`authorization`) and CORS.

mod authorization;
pub(in crate::phase) mod events;
mod publish;
mod subscribe;

use crate::exchange::Exchange;
use crate::explanation::ExplanationBuilder;
use crate::mercure::Mercure;
use crate::refusal::Refusal;
use crate::responder::{Context, Responder};
use crate::upstream::Upstream;
use bytes::Bytes;
use howdah_mercure::document::{SubscriptionsPath, allows};
use howdah_mercure::{DETAIL_TYPE, EVENT_TYPE, PATH};
use howdah_observe::Front;
use howdah_protocol::{Body, RequestBody, Response};
use http::{HeaderName, HeaderValue, Method, StatusCode, header};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const MERCURE_LAST_EVENT_ID: HeaderName = HeaderName::from_static("mercure-last-event-id");
/// Path of the hub's metadata (RFC 9728).
const METADATA: &str = "/.well-known/oauth-protected-resource/.well-known/mercure";

/// Responds to subscribers and publishers of the site's hub.
pub(crate) struct MercureHub;

/// The part of the hub that a path names.
enum Resource {
    Hub,
    Subscriptions(SubscriptionsPath),
    Metadata,
}

impl MercureHub {
    fn requested(exchange: &Exchange) -> Option<Resource> {
        exchange.site.mercure.as_ref()?;
        let path = exchange.head.target.path();
        if path == PATH.as_bytes() {
            return Some(Resource::Hub);
        }
        if path == METADATA.as_bytes() {
            return Some(Resource::Metadata);
        }
        SubscriptionsPath::new(path).map(Resource::Subscriptions)
    }
}

impl Responder for MercureHub {
    fn concerns(exchange: &Exchange) -> bool {
        exchange.site.mercure.is_some()
    }

    async fn respond<U: Upstream>(
        _: &Context<U>,
        exchange: &mut Exchange,
        body: &mut RequestBody,
    ) -> Result<Option<Response>, Refusal> {
        let Some(resource) = Self::requested(exchange) else { return Ok(None) };
        // Boxed: plain requests do not need it.
        Ok(Some(Box::pin(respond(exchange, resource, body)).await))
    }

    fn explain(exchange: &mut Exchange, explaining: &mut ExplanationBuilder) {
        match Self::requested(exchange) {
            Some(Resource::Hub) => {
                let anonymous = exchange.site.mercure.as_ref().is_some_and(|mercure| mercure.anonymous);
                let who = if anonymous { "any client may subscribe" } else { "with a token" };
                explaining.respond(StatusCode::OK, format!("200: the Mercure hub ({who})"));
            }
            Some(Resource::Subscriptions(_)) => {
                explaining.respond(StatusCode::OK, "200: subscriptions of the Mercure hub (with a token for them)");
            }
            Some(Resource::Metadata) => {
                explaining.respond(StatusCode::OK, "200: metadata of the Mercure hub (RFC 9728)");
            }
            None => {}
        }
    }
}

/// Returns the response with CORS fields, which errors need too.
async fn respond(exchange: &mut Exchange, resource: Resource, body: &mut RequestBody) -> Response {
    let site = exchange.site.clone();
    let Some(mercure) = &site.mercure else { return Response::new(Body::empty()) };
    let made = match (&exchange.head.method, resource) {
        (&Method::OPTIONS, _) => Ok(preflight()),
        (&(Method::GET | Method::HEAD), Resource::Hub) => {
            site.server.hubs().ready(&site.settings.name).await;
            subscribe::respond(mercure, exchange)
        }
        (&Method::POST, Resource::Hub) => publish::respond(mercure, exchange, body).await,
        (_, Resource::Hub) => Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED).allow("GET, HEAD, POST, OPTIONS")),
        (&(Method::GET | Method::HEAD), Resource::Subscriptions(requested)) => {
            subscriptions(mercure, exchange, &requested)
        }
        (&(Method::GET | Method::HEAD), Resource::Metadata) => Ok(metadata(exchange)),
        (_, Resource::Subscriptions(_) | Resource::Metadata) => {
            Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED).allow("GET, HEAD, OPTIONS"))
        }
    };
    exchange.front = if made.is_ok() { Front::Static } else { Front::Error };
    let mut response = made.unwrap_or_else(|refusal| refusal.into_response(&exchange.head.headers));
    admit_origin(mercure, exchange, &mut response);
    response
}

/// Allows the page's origin to read the response (the Fetch standard, section 3.3).
fn admit_origin(mercure: &Mercure, exchange: &Exchange, response: &mut Response) {
    if !mercure.has_origins() {
        return;
    }
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    let origin = exchange.head.headers.get(header::ORIGIN);
    let Some((origin, with_cookies)) = origin.and_then(|origin| mercure.allowed_origin(origin)) else { return };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if with_cookies {
        headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Last-Event-ID, Mercure-Last-Event-ID, Link"),
    );
}

fn preflight() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    for (name, value) in [
        (header::ALLOW, "GET, HEAD, POST, OPTIONS"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Cache-Control, Content-Type, Last-Event-ID"),
        (header::ACCESS_CONTROL_MAX_AGE, "3600"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the hub's metadata for clients of Mercure 1.0.
fn metadata(exchange: &Exchange) -> Response {
    let document = serde_json::json!({
        "resource": authorization::hub_url(exchange),
        "authorization_details_types_supported": [DETAIL_TYPE],
        "bearer_methods_supported": ["header"],
        "mercure_cookie": authorization::COOKIE,
        "mercure_subscriptions": true,
    });
    let mut response = Response::new(Body::full(Bytes::from(document.to_string())));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns the list of subscriptions, or one of them, in the format of 1.0 for access tokens, else of 0.x.
fn subscriptions(mercure: &Mercure, exchange: &Exchange, requested: &SubscriptionsPath) -> Result<Response, Refusal> {
    let claims = authorization::of_subscriber(mercure, exchange)?;
    let claims = claims.ok_or_else(|| authorization::missing(exchange))?;
    let is_new = claims.is_access_token;
    if !allows(claims.subscribe.as_deref().unwrap_or_default(), requested) {
        return Err(authorization::insufficient(exchange, is_new, "a path that the token does not allow"));
    }
    let hub = exchange.site.server.hubs().of(&exchange.site.settings.name);
    let document = if is_new { requested.active_document(&hub) } else { requested.document(&hub) };
    let (document, last) = document.ok_or(Refusal::new(StatusCode::NOT_FOUND))?;
    let mut response = Response::new(Body::full(Bytes::from(document)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(if is_new { "application/json" } else { "application/ld+json" }),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, must-revalidate"));
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", last.replace('"', ""))) {
        headers.insert(header::ETAG, tag);
    }
    let mut link = format!("<{PATH}>; rel=\"mercure\"");
    if is_new {
        let last = last.replace(['"', '\\'], "");
        link += &format!("; last-event-id=\"{last}\"; type=\"{EVENT_TYPE}\"; content-type=\"application/json\"");
    }
    if let Ok(link) = HeaderValue::from_str(&link) {
        headers.insert(header::LINK, link);
    }
    Ok(response)
}

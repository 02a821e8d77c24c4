//! The HTTP API: signed requests from servers that publish events and query channels.

use crate::exchange::Exchange;
use crate::phase::php::spool;
use crate::pusher::Pusher;
use crate::refusal::Refusal;
use bytes::Bytes;
use howdah_mercure::form;
use howdah_observe::Front;
use howdah_protocol::{Body, RequestBody, Response};
use howdah_pusher::api::{self, ApiError, Published, Resource};
use http::{HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use std::time::SystemTime;

/// Maximum body in bytes, unless the site's limit is lower.
const MAX_BODY: u64 = 1 << 20;

pub(super) async fn respond(
    pusher: &Pusher,
    exchange: &mut Exchange,
    resource: &Resource,
    body: &mut RequestBody,
) -> Result<Response, Refusal> {
    let method = if resource.publishes() { Method::POST } else { Method::GET };
    if exchange.head.method != method {
        let allowed = if resource.publishes() { "POST" } else { "GET" };
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED).allow(allowed));
    }
    let body = spool::read_own(exchange, body, MAX_BODY).await?;
    let query: Vec<(String, String)> = form::fields(exchange.query().unwrap_or_default()).collect();
    let path = String::from_utf8_lossy(exchange.head.target.path());
    pusher.app.verify((method.as_str(), &path), &query, &body, SystemTime::now()).map_err(|why| {
        tracing::warn!(target: "howdah::pusher", request = %exchange.id, site = exchange.site.settings.name, "request of the Pusher API refused: {why}");
        Refusal::new(StatusCode::UNAUTHORIZED).because("an invalid signature of the Pusher protocol")
    })?;
    let server = &exchange.site.server;
    let hub = server.hubs().of(&exchange.site.settings.name);
    let document = if let Resource::Terminate(user) = resource {
        api::terminate(user, &hub);
        serde_json::json!({})
    } else if resource.publishes() {
        let mut published = Published::read(&body, *resource == Resource::BatchEvents).map_err(|why| mistake(&why))?;
        for update in std::mem::take(&mut published.updates) {
            hub.broadcast(update);
        }
        published.document(&hub)
    } else {
        api::document(resource, &query, &hub).map_err(|why| mistake(&why))?
    };
    exchange.front = Front::Static;
    Ok(json(&document))
}

fn json(document: &Value) -> Response {
    let mut response = Response::new(Body::full(Bytes::from(document.to_string())));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn mistake(why: &ApiError) -> Refusal {
    Refusal::bad_request(match why {
        ApiError::Body => "a body that is not JSON with a name, channels and data",
        ApiError::Name => "an event without a name of 1 to 200 bytes",
        ApiError::Number => "an event without 1 to 100 channels, or a batch of more than 100 events",
        ApiError::Channel => "an invalid name of a channel",
        ApiError::NoPresence => "a query for users of a channel that is not a presence channel",
    })
}

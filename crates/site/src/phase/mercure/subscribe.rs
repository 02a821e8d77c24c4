//! Subscribers: selectors in the query, and the stream of events.

use super::events::Events;
use super::{LAST_EVENT_ID, authorization};
use crate::exchange::Exchange;
use crate::mercure::Mercure;
use crate::refusal::Refusal;
use howdah_live::{Interest, QueueLimits, Selector, SlowPolicy};
use howdah_mercure::{form, new_id};
use howdah_protocol::{Body, Response};
use http::{HeaderValue, Method, StatusCode, header};

/// Maximum number of selectors of a subscriber.
const MAX_SELECTORS: usize = 100;
/// Maximum length of a selector, in bytes.
const MAX_LENGTH: usize = 4096;
/// Maximum cost of a subscriber's selectors (`Selector::cost`): each update is matched with those that are templates.
const MAX_COST: usize = 8192;
/// Bytes charged for a subscriber, without its selectors.
const SUBSCRIBER: u64 = 1024;
/// Maximum number of updates, and of their bytes, that may wait for a subscriber.
const MAX_QUEUE: (usize, usize) = (256, 1 << 20);

pub(super) fn respond(mercure: &Mercure, exchange: &Exchange) -> Result<Response, Refusal> {
    let claims = authorization::of_subscriber(mercure, exchange)?;
    let (allowed, payload, expires) = match claims {
        Some(claims) if claims.subscribe.is_some() || mercure.anonymous => {
            (claims.subscribe.unwrap_or_default(), claims.payload, claims.expires)
        }
        Some(_) => return Err(Refusal::new(StatusCode::FORBIDDEN).because("a token that is not a subscriber's")),
        None if mercure.anonymous => (Vec::new(), None, None),
        None => return Err(authorization::missing()),
    };
    let (selectors, last) = asked(exchange)?;
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        // Proxies must not cache, compress or buffer events.
        (header::CACHE_CONTROL, "private, no-cache, no-store, must-revalidate, no-transform, max-age=0"),
        (header::EXPIRES, "0"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if exchange.head.method == Method::HEAD {
        return Ok(response);
    }
    let mut charge = exchange.connection.charge();
    let size: usize = selectors.iter().chain(&allowed).map(Selector::size).sum();
    if !charge.grow(SUBSCRIBER + size as u64) {
        return Err(Refusal::over_budget());
    }
    let id = new_id().ok_or(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR))?;
    let interest = Interest { selectors, allowed, id: id.into(), payload, trusted: false };
    let site = &exchange.site;
    let hub = site.server.hubs().of(&site.settings.name);
    let terms = QueueLimits { slow: SlowPolicy::Disconnect, max_updates: MAX_QUEUE.0, max_bytes: MAX_QUEUE.1, charge };
    let joined = hub.subscribe(interest, last.as_deref(), terms);
    if last.is_some()
        && let Ok(id) = HeaderValue::from_str(joined.preceding.as_str())
    {
        headers.insert(LAST_EVENT_ID, id);
    }
    let metrics = site.server.metrics.clone();
    let events = Events::new(hub, joined.subscription, mercure.heartbeat, expires, metrics);
    *response.body_mut() = Body::stream(Box::new(events));
    Ok(response)
}

/// Returns the selectors of the query, and the id of the last event that the subscriber has received.
fn asked(exchange: &Exchange) -> Result<(Vec<Selector>, Option<String>), Refusal> {
    let (mut selectors, mut last) = (Vec::new(), None);
    for (name, value) in form::fields(exchange.query().unwrap_or_default()) {
        match &*name {
            "topic" if value.len() > MAX_LENGTH => {
                return Err(Refusal::bad_request("a `topic` of more than 4096 bytes"));
            }
            "topic" if selectors.len() == MAX_SELECTORS => {
                return Err(Refusal::bad_request("more than 100 topics"));
            }
            "topic" => selectors.push(Selector::new(&value)),
            "lastEventID" => _ = last.get_or_insert(value),
            _ => {}
        }
    }
    if selectors.is_empty() {
        return Err(Refusal::bad_request("no `topic`"));
    }
    if selectors.iter().map(Selector::cost).sum::<usize>() > MAX_COST {
        return Err(Refusal::bad_request("templates that are too complex together"));
    }
    let named = exchange.head.headers.get(LAST_EVENT_ID).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    Ok((selectors, named.or(last).filter(|id| !id.is_empty())))
}

//! Subscribers: selectors (0.x) or matchers (1.0) in the query, and the stream of events.

use super::events::Events;
use super::{LAST_EVENT_ID, MERCURE_LAST_EVENT_ID, authorization};
use crate::exchange::Exchange;
use crate::mercure::Mercure;
use crate::refusal::Refusal;
use howdah_live::{Interest, QueueLimits, Selector, SlowPolicy};
use howdah_mercure::{Claims, MatchType, MatcherError, form, new_id};
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
    let mut claims = match claims {
        Some(claims) if claims.subscribe.is_some() || mercure.anonymous => claims,
        Some(claims) => {
            let reason = "a token that is not a subscriber's";
            return Err(authorization::insufficient(exchange, claims.is_access_token, reason));
        }
        None if mercure.anonymous => Claims::default(),
        None => return Err(authorization::missing(exchange)),
    };
    let Asked { selectors, last, has_matchers } = asked(exchange)?;
    let payloads = has_matchers.then(|| selectors.iter().map(|selector| claims.payload_of(selector)).collect());
    let (allowed, payload, expires) = (claims.subscribe.take().unwrap_or_default(), claims.payload, claims.expires);
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
    let interest = Interest { selectors, allowed, id: id.into(), payload, payloads, trusted: false };
    let site = &exchange.site;
    let hub = site.server.hubs().of(&site.settings.name);
    let terms = QueueLimits { slow: SlowPolicy::Disconnect, max_updates: MAX_QUEUE.0, max_bytes: MAX_QUEUE.1, charge };
    let joined = hub.subscribe(interest, last.as_deref(), terms);
    if last.is_some()
        && let Ok(id) = HeaderValue::from_str(joined.preceding.as_str())
    {
        headers.insert(if has_matchers { MERCURE_LAST_EVENT_ID } else { LAST_EVENT_ID }, id);
    }
    let metrics = site.server.metrics.clone();
    let events = Events::new(hub, joined.subscription, mercure.heartbeat, expires, metrics);
    *response.body_mut() = Body::stream(Box::new(events));
    Ok(response)
}

/// The query of a subscriber.
struct Asked {
    selectors: Vec<Selector>,
    /// The id of the last event that the subscriber has received.
    last: Option<String>,
    /// The selectors are matchers of Mercure 1.0.
    has_matchers: bool,
}

fn asked(exchange: &Exchange) -> Result<Asked, Refusal> {
    let (mut selectors, mut last, mut has_matchers, mut has_topics) = (Vec::new(), None, false, false);
    let hub = authorization::hub_url(exchange);
    for (name, value) in form::fields(exchange.query().unwrap_or_default()) {
        if let Some(kind) = MatchType::of_parameter(&name) {
            if selectors.len() == MAX_SELECTORS {
                return Err(Refusal::bad_request("more than 100 matchers"));
            }
            selectors.push(kind.and_then(|kind| kind.selector(&value, &hub)).map_err(mistake)?);
            has_matchers = true;
            continue;
        }
        has_topics |= name == "topic";
        match &*name {
            "topic" if value.len() > MAX_LENGTH => {
                return Err(Refusal::bad_request("a `topic` of more than 4096 bytes"));
            }
            "topic" if selectors.len() == MAX_SELECTORS => {
                return Err(Refusal::bad_request("more than 100 topics"));
            }
            "topic" => selectors.push(Selector::new(&value)),
            "lastEventID" | "last_event_id" => _ = last.get_or_insert(value),
            _ => {}
        }
    }
    if selectors.is_empty() {
        return Err(Refusal::bad_request("no `topic` or `match`"));
    }
    if has_matchers && has_topics {
        return Err(Refusal::bad_request("both `topic` and `match`"));
    }
    if selectors.iter().map(Selector::cost).sum::<usize>() > MAX_COST {
        return Err(Refusal::bad_request("templates that are too complex together"));
    }
    let named = exchange.head.headers.get(LAST_EVENT_ID).map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned());
    Ok(Asked { selectors, last: named.or(last).filter(|id| !id.is_empty()), has_matchers })
}

fn mistake(why: MatcherError) -> Refusal {
    Refusal::bad_request(match why {
        MatcherError::Type => {
            "a parameter that begins with `match` and is not `match`, `match_exact` or `match_urlpattern`"
        }
        MatcherError::Long => "a matcher of more than 4096 bytes",
        MatcherError::Character => "a matcher with control or format characters",
        MatcherError::Pattern => "a URL pattern that is invalid or too complex",
    })
}

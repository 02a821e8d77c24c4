//! Phase "proxy": forwards a request to an upstream server. This phase adds the header fields about the client
//! (`fields`); the implementation of `upstream` connects to the server.

mod fields;
mod inbound;
mod spooled;

use crate::exchange::Exchange;
use crate::phase::limits;
use crate::phase::php::body_limit::Allowance;
use crate::phase::php::spool;
use crate::refusal::Refusal;
use crate::sendfile;
use crate::upstream::{Unreachable, Upstream};
use bytes::Bytes;
use howdah_config::may_switch_to;
use howdah_observe::Front;
use howdah_protocol::{Outbound, RequestBody, Response};
use http::{StatusCode, Version};
use inbound::{BodyFault, Inbound};
use std::time::Instant;

/// Forwards a request to the proxy with this position in the settings. `target` is the request target for its servers,
/// which may differ from the client's.
pub(crate) async fn run<U: Upstream>(
    upstream: &U,
    exchange: &mut Exchange,
    proxy: usize,
    target: Bytes,
    body: RequestBody,
) -> Result<Response, Refusal> {
    let site = &*exchange.site;
    // Without memory to buffer the response for a slow client, it would be cut off.
    if site.server.budgets.memory.is_full() {
        site.server.budgets.memory.note_refused();
        tracing::warn!(target: "howdah::request", request = %exchange.id, "request refused: `http.memory` is used up");
        return Err(Refusal::over_budget());
    }
    let Some(settings) = site.server.settings.proxies.get(proxy) else {
        return Err(Refusal::new(StatusCode::BAD_GATEWAY));
    };
    if fields::is_looping(&exchange.head.headers) {
        tracing::warn!(target: "howdah::proxy", request = %exchange.id, proxy = settings.name, "request loops through proxies: 508");
        return Err(Refusal::new(StatusCode::LOOP_DETECTED));
    }
    let upgrade = exchange.head.asks_to_upgrade();
    if upgrade.as_ref().is_some_and(|offer| offer.bare && !may_switch_to(offer.protocol.as_bytes())) {
        return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED));
    }
    let limit = Allowance::of_proxy(exchange);
    limits::check_body(Some(limit.most), &exchange.head)?;
    let body = if settings.buffer && !body.is_none() {
        let room = spool::SpoolLimits::new(site, &exchange.connection, limit);
        spooled::body(spool::read(&room, body).await.map_err(|error| error.into_refusal(&room, exchange))?)
    } else {
        body
    };
    let head = &exchange.head;
    let (body, trouble) = Inbound::watch(body, site, limit.most);
    let outbound = Outbound {
        method: head.method.clone(),
        target,
        headers: fields::fields(exchange, settings),
        body,
        upgrade,
        // With HTTP/1, the connection stops reading the request when the response begins.
        full_duplex: head.version >= Version::HTTP_2,
        informational: exchange.informational.clone(),
        charge: exchange.connection.charge(),
    };
    exchange.front = Front::Proxy;
    if let Some(trace) = &mut exchange.trace {
        trace.handed_on = Some(Instant::now());
    }
    match upstream.forward(proxy, outbound).await {
        Ok(mut response) => {
            if !exchange.connection.peer.trusted {
                sendfile::strip(response.headers_mut());
            }
            Ok(response)
        }
        Err(unreachable) => {
            if let Some(informational) = &exchange.informational {
                informational.discard();
            }
            let trouble = trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            Err(trouble.map_or_else(|| refused(&unreachable, exchange), |trouble| refused_body(&trouble, exchange)))
        }
    }
}

/// Returns the refusal for an error in the client's body.
fn refused_body(trouble: &BodyFault, exchange: &Exchange) -> Refusal {
    match trouble {
        BodyFault::TooLarge => limits::too_large(Allowance::of_proxy(exchange).most, None, &exchange.head),
        BodyFault::TooSlow => Refusal::new(StatusCode::REQUEST_TIMEOUT),
        BodyFault::Broken(error) => {
            tracing::debug!(target: "howdah::request", request = %exchange.id, error, "request body ended early");
            Refusal::bad_request("a broken body")
        }
    }
}

fn refused(unreachable: &Unreachable, exchange: &Exchange) -> Refusal {
    let target = String::from_utf8_lossy(exchange.head.target.as_bytes());
    let (id, status) = (exchange.id, unreachable.status.as_u16());
    let (proxy, trace) = (&*unreachable.proxy, exchange.trace_id());
    tracing::warn!(target: "howdah::proxy", request = %id, trace, proxy, target = &*target, "{status}: {}", unreachable.why);
    let refusal = Refusal::new(unreachable.status);
    if unreachable.status == StatusCode::SERVICE_UNAVAILABLE { refusal.retry_after(1) } else { refusal }
}

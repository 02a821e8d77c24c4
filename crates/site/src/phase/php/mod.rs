//! Phase "php": reads the request body (`spool`), encodes the variables (`variables`), has a worker run the script, and
//! responds with PHP's output (`respond`) or with a file that the script hands over (`sendfile`).

pub(in crate::phase) mod body_limit;
mod error_page;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod respond;
pub(in crate::phase) mod spool;
mod variables;

use crate::event_request::open_stream;
use crate::exchange::Exchange;
use crate::phase::limits;
use crate::refusal::Refusal;
use crate::route::Script;
use crate::upstream::{Target, Upstream};
use body_limit::Allowance;
use bytes::Bytes;
use howdah_observe::Front;
use howdah_pool::{Fault, FaultKind, InterimSink, Level, LogSink, RequestId, TimeLimits};
use howdah_protocol::{Informational, Messages, RequestBody, Response, SendResult};
use howdah_rules::Times;
use http::Method;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs a script for a request.
pub(crate) async fn run<U: Upstream>(
    upstream: &U,
    exchange: &mut Exchange,
    script: &Script,
    body: RequestBody,
) -> Result<Response, Refusal> {
    // Scripts speak HTTP only. An error page may still be a script.
    if exchange.head.is_extended_connect() && exchange.error_status.is_none() {
        return Err(limits::no_other_protocol());
    }
    let site = &*exchange.site;
    // Checked before the body is read: PHP must not run if there is no memory for its response.
    if site.server.budgets.memory.is_full() {
        site.server.budgets.memory.note_refused();
        tracing::warn!(target: "howdah::request", request = %exchange.id, "request refused: `http.memory` is used up");
        return Err(Refusal::over_budget());
    }
    let preferred = site
        .preferred
        .as_ref()
        .and_then(|preferred| Some((preferred, preferred.for_script(script.pool, &script.filename)?)));
    let preferred = preferred.filter(|(preferred, _)| exchange.is_for(preferred));
    let target = Target { pool: script.pool, preferred: preferred.map(|(_, pool)| pool) };
    // The body is read first because its length is a variable, and so that the worker never waits for the client.
    let (body, complete, waited) = if body.is_none() {
        (howdah_pool::RequestBody::Empty, exchange.started, Duration::ZERO)
    } else {
        let waited = upstream.room(target).await;
        let limit = Allowance::of_php(upstream, exchange, target);
        if !limit.drops {
            limits::check_body(Some(limit.most), &exchange.head)?;
        }
        let room = spool::SpoolLimits::new(site, &exchange.connection, limit);
        let body = spool::read(&room, body).await.map_err(|error| error.into_refusal(&room, exchange))?;
        let complete = Instant::now();
        if let Some(trace) = &mut exchange.trace {
            trace.body_complete = Some(complete);
        }
        (body, complete, waited)
    };
    if let Some(trace) = &mut exchange.trace {
        trace.handed_on = Some(complete);
    }
    let body = with_stream(exchange, target, body);
    let head = variables::encode(site, exchange, script, &body);
    let request = Box::new(howdah_pool::Request {
        head,
        body,
        is_get: exchange.head.method == Method::GET,
        repeatable: matches!(exchange.head.method, Method::GET | Method::HEAD | Method::OPTIONS),
        id: exchange.id,
        received: exchange.started,
        complete,
        waited,
        client: exchange.client.ip.map_or(0, client_number),
        route: exchange.ruled.as_ref().and_then(|ruled| ruled.outcome.share),
        limits: exchange.ruled.as_ref().map_or_else(TimeLimits::default, |ruled| limits_of(&ruled.outcome.times)),
        interim: interim_of(exchange),
        log: exchange.messages.clone().map(|messages| Arc::new(ToWebServer(messages)) as Arc<dyn LogSink>),
        live: site.live.clone(),
        share: exchange.connection.share.get().cloned(),
        busy: None,
    });
    exchange.front = Front::Php;
    exchange.count_by_rule();
    match upstream.run(target, request).await {
        Ok(php) => {
            let (mut response, ran) = respond::respond(php, &exchange.head, exchange.id)?;
            exchange.ran = ran;
            if exchange.variables.is_some() {
                // The web server in front sends files that scripts hand over.
                return Ok(response);
            }
            let trusted = exchange.connection.peer.trusted;
            exchange.site.handed_over.apply(&mut response, &exchange.head, exchange.id, trusted)?;
            Ok(response)
        }
        Err(fault) => {
            if let Some(informational) = &exchange.informational {
                informational.discard();
            }
            log_fault(&fault, exchange);
            if exchange.site.server.settings.development && fault.kind != FaultKind::ClientGone {
                return Ok(error_page::page(&fault, exchange));
            }
            Err(Refusal::from(&fault))
        }
    }
}

/// Replaces the empty body of an event by the script's end of a stream, if the script may hold the connection.
fn with_stream(exchange: &Exchange, target: Target, body: howdah_pool::RequestBody) -> howdah_pool::RequestBody {
    let slot = exchange.changes.as_ref().and_then(|changes| changes.stream.as_ref());
    let Some(slot) = slot.filter(|_| body.is_empty()) else { return body };
    let pools = &exchange.site.server.settings.pools;
    let is_multiplexed = |pool: usize| pools.get(pool).is_some_and(|pool| pool.mode.is_multiplexed());
    if !is_multiplexed(target.preferred.unwrap_or(target.pool)) {
        return body;
    }
    match open_stream(slot) {
        Ok(script) => howdah_pool::RequestBody::Stream(script),
        Err(error) => {
            tracing::warn!(target: "howdah::websocket", request = %exchange.id, %error, "cannot open a stream to the script");
            body
        }
    }
}

/// Time limits set by rules.
const fn limits_of(times: &Times) -> TimeLimits {
    TimeLimits { deadline: times.deadline, queue: times.queue }
}

/// Returns the key by which the queue shares turns fairly: an IPv4 address or an IPv6 /64 network, which is usually one
/// client.
fn client_number(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

/// Receives a request's informational responses, from any thread.
#[derive(Debug)]
struct ToClient {
    informational: Informational,
    id: RequestId,
}

impl InterimSink for ToClient {
    fn interim(&self, status: u16, headers: &[(Bytes, Bytes)]) {
        if self.informational.send(status, headers) == (SendResult::TooMuch { first: true }) {
            let id = self.id;
            tracing::warn!(target: "howdah::php", request = %id, "too many or too long informational responses: dropping the rest");
        }
    }

    fn may_have_left(&self) -> bool {
        self.informational.may_have_left()
    }
}

/// Receives a request's PHP log messages, from any thread.
#[derive(Debug)]
struct ToWebServer(Arc<Messages>);

impl LogSink for ToWebServer {
    fn line(&self, text: &str) {
        self.0.push(text.as_bytes());
    }
}

fn interim_of(exchange: &Exchange) -> Option<Arc<dyn InterimSink>> {
    let informational = exchange.informational.clone()?;
    Some(Arc::new(ToClient { informational, id: exchange.id }))
}

fn log_fault(fault: &Fault, exchange: &Exchange) {
    let level = fault.kind.level();
    let others = if level == Level::Often { exchange.site.server.queue_failures.permit() } else { Some(0) };
    let Some(others) = others else { return };
    let (id, target) = (exchange.id, String::from_utf8_lossy(exchange.head.target.as_bytes()));
    let (target, trace) = (&*target, exchange.trace_id());
    if level == Level::Debug {
        tracing::debug!(target: "howdah::request", request = %id, trace, target, %fault, "request failed");
    } else if others > 0 {
        tracing::warn!(target: "howdah::request", request = %id, trace, target, %fault, others, "request failed ({others} similar errors suppressed)");
    } else {
        tracing::warn!(target: "howdah::request", request = %id, trace, target, %fault, "request failed");
    }
}

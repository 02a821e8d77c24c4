//! Phase "php": reads the request's body (`spool`), writes the call's variables (`variables`), has it run, and makes an
//! HTTP response of the answer (`answer`), or of a file that the script hands over (`handed_over`).

mod answer;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
pub(crate) mod handed_over;
mod spool;
mod variables;

pub(crate) use answer::{MOST_LINES, is_hop_by_hop};

use crate::conn::http2::InterimAnswers;
use crate::conn::interim::OfRequest;
use crate::conn::request_line::target;
use crate::exchange::Exchange;
use crate::phase::route::Script;
use crate::received::Received;
use crate::refusal::Refusal;
use crate::service::Response;
use crate::shard::Shard;
use crate::upstream::{Answer, Upstream};
use howdah_observe::Front;
use howdah_pool::{Call, Fault, FaultKind};
use http::{Method, Version};
use http_body::Body as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// Runs a script for a request.
pub(crate) async fn run<U: Upstream>(
    shard: &Shard<U>,
    exchange: &mut Exchange,
    script: &Script,
    body: Received,
) -> Result<Response, Refusal> {
    let site = &*shard.site;
    // Before anything of it is read: PHP must not run for an answer that could not be kept.
    if site.budgets.memory.is_full() {
        site.budgets.memory.note_refused();
        tracing::warn!(target: "howdah::request", id = %exchange.id, "not answered: `http.memory` is in use");
        return Err(Refusal::over_budget());
    }
    // The body comes first: its length is a variable, and a worker is only asked for once nothing can hold it up.
    let (body, complete) = if body.is_end_stream() {
        (howdah_pool::RequestBody::Empty, exchange.started)
    } else {
        shard.upstream.room(script.pool).await;
        let room = spool::Room::new(&exchange.conn);
        let body = spool::read(&room, body).await.map_err(|error| error.into_refusal(&room, exchange))?;
        exchange.conn.state.on_body_read();
        (body, Instant::now())
    };
    let head = variables::encode(site, exchange, script, &body);
    let parts = &exchange.parts;
    let call = Call {
        head,
        body,
        repeatable: matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS),
        id: exchange.id,
        received: exchange.started,
        complete,
        client: exchange.remote.map_or(0, client_number),
        route: script.share,
        interim: None,
        share: exchange.conn.share.get().cloned(),
    };
    exchange.front = Front::Php;
    match call_with_interim(shard, exchange, script.pool, call).await {
        Ok(reply) => {
            let (response, ran) = answer::respond(reply, &exchange.parts, exchange.id)?;
            exchange.ran = ran;
            site.handed_over.apply(response, exchange)
        }
        Err(fault) => {
            log_fault(&fault, exchange);
            Err(Refusal::from(&fault))
        }
    }
}

/// Who shares a turn in the waiting queue: an IPv4 address, or an IPv6 network of 64 bits, which is what one client has.
fn client_number(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
    }
}

/// Has the call run. Its interim answers are sent by the connection in HTTP/1.1, by the request's stream in HTTP/2; HTTP/1.0
/// knows none. None of this call can be sent any more when its answer begins: here in HTTP/1.1, in `http2` there.
async fn call_with_interim<U: Upstream>(
    shard: &Shard<U>,
    exchange: &Exchange,
    pool: usize,
    mut call: Call,
) -> Result<Answer<U::Body>, Fault> {
    let (conn, id) = (&exchange.conn, exchange.id);
    match exchange.parts.version {
        Version::HTTP_11 => {
            let open = conn.interim.open();
            call.interim = Some(Arc::new(OfRequest { conn: conn.clone(), number: open.number(), id }));
            let reply = shard.upstream.call(pool, call).await;
            open.close(reply.is_err()).await;
            reply
        }
        Version::HTTP_2 => {
            let stream = exchange.parts.extensions.get::<InterimAnswers>();
            call.interim = stream.map(|stream| Arc::new(stream.of(id)) as _);
            shard.upstream.call(pool, call).await
        }
        _ => shard.upstream.call(pool, call).await,
    }
}

fn log_fault(fault: &Fault, exchange: &Exchange) {
    let (id, target) = (exchange.id, String::from_utf8_lossy(target(&exchange.parts)));
    let target = &*target;
    if fault.kind == FaultKind::ClientGone {
        tracing::debug!(target: "howdah::request", %id, target, %fault, "not answered");
    } else {
        tracing::warn!(target: "howdah::request", %id, target, %fault, "not answered");
    }
}

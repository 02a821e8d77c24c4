//! Attributes of an ended request for its span.

use crate::exchange::{Exchange, Purpose};
use crate::forwarded::split_port;
use howdah_telemetry::{EndedRequest, SocketSpan, Telemetry, Trace, WorkerSpan};
use http::{Version, header};
use std::time::Duration;

/// Ends the trace of a request; if it is sampled, its spans are made and sent.
pub(super) fn end(telemetry: &Telemetry, trace: &Trace, exchange: &Exchange, took: Duration) {
    if !trace.is_sampled() {
        return;
    }
    let (head, peer, site) = (&exchange.head, &exchange.connection.peer, &exchange.site);
    let (name, port) = split_port(exchange.host_text());
    let port = port.unwrap_or_else(|| exchange.client.server_port(peer)).parse().ok();
    let route = exchange.route.checked_sub(1).and_then(|at| site.settings.rules.routes().get(at));
    let inner = exchange.ran.stats().map(|stats| WorkerSpan {
        pool: &stats.pool,
        worker: stats.worker,
        queue: Duration::from_micros(stats.queue_us),
        php: Duration::from_micros(stats.php_us),
        replays: stats.replays,
    });
    let event = exchange
        .purpose
        .and_then(Purpose::socket_event)
        .map(|event| SocketSpan { event: event.name(), connection: exchange.websocket_id().unwrap_or_default() });
    telemetry.end(
        trace,
        &EndedRequest {
            method: head.method.as_str(),
            path: head.target.path(),
            https: exchange.client.https,
            version: version(head.version),
            status: exchange.status,
            host: Some(name).filter(|name| !name.is_empty()),
            port,
            client: exchange.client.ip,
            peer: peer.addr,
            user_agent: head.headers.get(header::USER_AGENT).map(http::HeaderValue::as_bytes),
            request_id: &exchange.id.to_string(),
            route: route.and_then(|route| route.path.as_deref()),
            site: (!exchange.misdirected).then_some(&site.settings.name),
            front: exchange.front.label(),
            time: exchange.time,
            started: exchange.started,
            took,
            bytes: exchange.bytes,
            inner,
            event,
        },
    );
}

/// The version as the semantic conventions write it.
fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

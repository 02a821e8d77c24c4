//! Phase "access_log": the last one, run when an exchange has ended. Counts it, and writes its line if a log is kept.

use crate::conn::request_line::target;
use crate::exchange::Exchange;
use howdah_observe::AccessEntry;
use http::{Version, header};

/// Counts and logs an exchange that has ended.
pub(crate) fn record(exchange: &Exchange) {
    let site = &exchange.conn.site;
    let took = exchange.started.elapsed();
    site.metrics.request(exchange.front, exchange.status, took, exchange.bytes);
    let Some(log) = &site.access_log else { return };
    let parts = &exchange.parts;
    let stats = exchange.ran.stats();
    let id = exchange.id.to_string();
    log.log(&AccessEntry {
        time: exchange.time,
        remote: exchange.remote,
        user: None,
        method: parts.method.as_str(),
        target: target(parts),
        proto: protocol(parts.version),
        status: exchange.status,
        bytes: exchange.bytes,
        referer: parts.headers.get(header::REFERER).map(http::HeaderValue::as_bytes),
        user_agent: parts.headers.get(header::USER_AGENT).map(http::HeaderValue::as_bytes),
        request_id: &id,
        pool: stats.map(|stats| &*stats.pool),
        worker: stats.map(|stats| stats.worker),
        queue_us: stats.map(|stats| stats.queue_us),
        php_us: stats.map(|stats| stats.php_us),
        total_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        compression: exchange.coding,
    });
}

/// The protocol's name, as in `SERVER_PROTOCOL`.
pub(crate) fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

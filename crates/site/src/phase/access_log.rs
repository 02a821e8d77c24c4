//! Phase "access_log": the last one, run when an exchange ends. Updates the metrics, and writes the log line if there
//! is an access log and nothing excludes the request.

use crate::exchange::{Exchange, Purpose};
use crate::phase::{access_log_fpm, traces};
use crate::request_id;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use howdah_observe::AccessEntry;
use http::{HeaderMap, Version, header};

/// In `drop`, because every exchange is dropped exactly once, however it ends.
impl Drop for Exchange {
    fn drop(&mut self) {
        record(self);
    }
}

fn record(exchange: &Exchange) {
    if exchange.purpose.is_some_and(|purpose| !purpose.is_recorded()) {
        return;
    }
    let site = &exchange.site;
    let took = exchange.started.elapsed();
    let cells = match exchange.misdirected {
        true => &site.server.misdirected,
        false => &site.requests[exchange.route.min(site.requests.len() - 1)],
    };
    cells.count(exchange.front, exchange.status, took, exchange.bytes);
    if let Some((trace, telemetry)) = exchange.trace.as_ref().zip(site.server.telemetry()) {
        traces::end(telemetry, trace, exchange, took);
        if let Some((trace, span)) = trace.sampled_ids() {
            cells.note_trace(trace, span, took, exchange.time);
        }
    }
    let log = if exchange.misdirected { &site.server.access_log } else { &site.access_log };
    let Some(log) = log else { return };
    let of_server = exchange.purpose.is_some_and(|purpose| !purpose.is_logged(exchange.status));
    if of_server || exchange.ruled.as_ref().is_some_and(|ruled| ruled.outcome.access_log == Some(false)) {
        return;
    }
    if let Some(params) = &exchange.variables
        && access_log_fpm::is_for(exchange)
    {
        let user = user(&exchange.head.headers);
        return access_log_fpm::log(exchange, params, log, took, user.as_deref());
    }
    let head = &exchange.head;
    let stats = exchange.ran.stats();
    let (id, user) = (request_id::digits(exchange.id), user(&head.headers));
    let trace = exchange.trace.as_ref().map(|trace| trace.id().to_string());
    let event = exchange.purpose.and_then(Purpose::socket_event);
    log.log(&AccessEntry {
        time: exchange.time,
        remote: exchange.client.ip,
        user: user.as_deref(),
        method: match event {
            Some(event) => event.method(),
            None => head.method.as_str(),
        },
        target: head.target.as_bytes(),
        proto: if exchange.variables.is_some() { "FastCGI" } else { protocol(head.version) },
        status: exchange.status,
        bytes: exchange.bytes,
        referer: head.headers.get(header::REFERER).map(http::HeaderValue::as_bytes),
        user_agent: head.headers.get(header::USER_AGENT).map(http::HeaderValue::as_bytes),
        request_id: std::str::from_utf8(&id).unwrap_or("-"),
        pool: stats.map(|stats| &*stats.pool),
        worker: stats.map(|stats| stats.worker),
        queue_us: stats.map(|stats| stats.queue_us),
        php_us: stats.map(|stats| stats.php_us),
        memory: stats.map(|stats| stats.peak_memory).filter(|&bytes| bytes > 0),
        total_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        compression: exchange.coding,
        site: if exchange.misdirected { None } else { Some(&site.settings.name) },
        host: exchange.host(),
        cut_off: exchange.cut_off,
        trace: trace.as_deref(),
        refused: None,
    });
}

/// Returns the user name of Basic authentication, verified or not, like nginx's `$remote_user` and `PHP_AUTH_USER`.
fn user(headers: &HeaderMap) -> Option<Vec<u8>> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, credentials) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let mut user = STANDARD.decode(credentials.trim_ascii()).ok()?;
    let length = user.iter().position(|&b| b == b':')?;
    user.truncate(length);
    (length > 0).then_some(user)
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn the_user_is_the_one_of_basic_authentication() {
        let found = |value: &'static str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(value))]);
            user(&headers).map(|user| String::from_utf8(user).unwrap())
        };
        assert_eq!(found("Basic YW5uYTpzZWNyZXQ=").as_deref(), Some("anna"));
        assert_eq!(found("bAsIc   YW5uYTo6Og==").as_deref(), Some("anna"));
        for none in
            ["", "Basic", "Basic ", "Basic !!!", "Basic YW5uYQ==", "Basic OnNlY3JldA==", "Bearer YW5uYTpzZWNyZXQ="]
        {
            assert_eq!(found(none), None, "{none}");
        }
        assert_eq!(user(&HeaderMap::new()), None);
    }
}

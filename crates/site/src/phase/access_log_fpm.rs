//! The access log of a pool of `howdah-fpm`: lines in the format of `access.format`.

use crate::exchange::Exchange;
use howdah_config::FpmAccess;
use howdah_observe::{AccessLog, FpmEntry, Front};
use howdah_protocol::Params;
use http::{HeaderMap, Method};
use std::time::Duration;

/// `true` if the request is for a pool of `howdah-fpm`.
pub(super) fn is_for(exchange: &Exchange) -> bool {
    format_of(exchange).is_some()
}

fn format_of(exchange: &Exchange) -> Option<&FpmAccess> {
    let site = &exchange.site;
    Some(&site.server.settings.pools.get(site.pool)?.fpm.as_ref()?.access)
}

/// `true` if the request's log line has the processor time or the memory that it used.
pub(crate) fn needs_usage(exchange: &Exchange) -> bool {
    format_of(exchange).is_some_and(FpmAccess::needs_usage)
}

/// Keeps the response's header fields for the log line, if the format uses any of them.
pub(crate) fn note_head(exchange: &mut Exchange, headers: &HeaderMap) {
    if exchange.variables.is_some() && format_of(exchange).is_some_and(FpmAccess::needs_headers) {
        exchange.logged_headers = Some(Box::new(headers.clone()));
    }
}

pub(super) fn log(exchange: &Exchange, params: &Params, log: &AccessLog, total: Duration, user: Option<&[u8]>) {
    let Some(access) = format_of(exchange) else { return };
    let of = |name: &str| params.get(name);
    let path = of("ORIG_SCRIPT_NAME").or_else(|| of("SCRIPT_NAME")).unwrap_or_default();
    let query = of("QUERY_STRING").unwrap_or_default();
    let length = of("CONTENT_LENGTH").and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(0);
    if is_suppressed(exchange, access, path, query, length) {
        return;
    }
    let own = std::process::id();
    let stats = exchange.ran.stats();
    let entry = FpmEntry {
        time: exchange.time,
        total,
        status: exchange.status,
        method: exchange.head.method.as_str().as_bytes(),
        path,
        query,
        script: of("SCRIPT_FILENAME").filter(|_| exchange.front == Front::Php),
        length,
        pool: &exchange.site.settings.name,
        process: stats.map_or(own, |stats| stats.pid),
        parent: own,
        memory: stats.map_or(0, |stats| stats.peak_memory),
        cpu_us: stats.map_or(0, |stats| stats.cpu_us),
        system_us: stats.map_or(0, |stats| stats.system_us),
        remote: exchange.connection.peer.addr,
        user: user.unwrap_or_default(),
        variable: &|name| params.get(name),
        header: &|name| Some(exchange.logged_headers.as_ref()?.get(name)?.as_bytes()),
    };
    log.log_fpm(&entry, &access.format);
}

/// As in PHP-FPM, omits only successful GET and HEAD requests, without a query or body, for a path in the settings.
fn is_suppressed(exchange: &Exchange, access: &FpmAccess, path: &[u8], query: &[u8], length: u64) -> bool {
    matches!(exchange.head.method, Method::GET | Method::HEAD)
        && query.is_empty()
        && length == 0
        && (200..300).contains(&exchange.status)
        && access.suppressed.iter().any(|own| own.as_bytes() == path)
}

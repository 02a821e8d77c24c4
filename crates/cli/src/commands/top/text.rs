//! `howdah top` as plain lines, for pipes, logs and simple terminals.

use super::sample::{Latency, Sample};
use crate::commands::status::text::duration;
use std::fmt::Write as _;
use std::time::SystemTime;

pub(crate) fn render(sample: &Sample) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "howdah {}, up {} s, {} connections, {}",
        sample.version,
        sample.uptime_s,
        sample.connections,
        latency(sample.total)
    );
    let _ = writeln!(out, "\n{:<16} {:<9} {:>9} {:>7} {:>9}  in PHP", "POOL", "MODE", "BUSY", "QUEUE", "WAIT ms");
    for pool in &sample.pools {
        let busy = format!("{}/{}", pool.busy, pool.workers);
        let down = if pool.down { "  PHP DOES NOT START" } else { "" };
        let _ = writeln!(
            out,
            "{:<16} {:<9} {busy:>9} {:>7} {:>9}  {}{down}",
            pool.name,
            pool.mode,
            pool.queued,
            pool.oldest_wait_ms,
            latency(pool.php)
        );
    }
    if !sample.hubs.is_empty() {
        let _ = writeln!(out, "\n{:<32} {:>10} {:>10} {:>10}", "LIVE", "WEBSOCKETS", "MERCURE", "CHANNELS");
    }
    for hub in &sample.hubs {
        let _ = writeln!(out, "{:<32} {:>10} {:>10} {:>10}", hub.site, hub.websockets, hub.subscribers, hub.channels);
    }
    let _ = writeln!(
        out,
        "\n{:<16} {:>6} {:>8} {:<9} {:>8} {:>9} {:>8} {:>6} {:>8}  REQUEST",
        "POOL", "WORKER", "PID", "STATE", "AGE s", "REQUESTS", "MEMORY", "CPU %", "RUNS ms"
    );
    for worker in &sample.workers {
        let _ = writeln!(
            out,
            "{:<16} {:>6} {:>8} {:<9} {:>8} {:>9} {:>8} {:>6} {:>8}  {}",
            worker.pool,
            worker.worker,
            worker.pid,
            worker.phase,
            worker.age_s,
            worker.requests,
            memory(worker.memory),
            percent(worker.cpu),
            worker.running_ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string()),
            worker.request
        );
    }
    let _ = writeln!(out, "\nSLOWEST ROUTES");
    for route in &sample.routes {
        let name = route_name(&route.site, &route.route);
        let _ = writeln!(out, "{name:<32} {}, {} errors", latency(route.requests), route.errors);
    }
    if !sample.demoted.is_empty() {
        let _ = writeln!(out, "\nIN CLASSIC MODE");
    }
    for route in &sample.demoted {
        let since = lasted(route.since);
        let _ = writeln!(out, "{:<16} {:<32} for {since}: {}", route.pool, route.route, route.reason);
    }
    out
}

pub(crate) fn route_name(site: &str, route: &str) -> String {
    match (site, route) {
        ("", _) => "(no site)".to_owned(),
        (site, "") => site.to_owned(),
        (site, route) => format!("{site} {route}"),
    }
}

/// Formats the time since a moment, given in seconds since the epoch.
pub(crate) fn lasted(since: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs());
    duration(now.saturating_sub(since))
}

pub(crate) fn memory(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{:.1} M", bytes as f64 / f64::from(1 << 20)))
}

pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{share:.0}"))
}

pub(crate) fn ms(duration: Option<f64>) -> String {
    match duration {
        None => "-".to_owned(),
        Some(ms) if ms < 10.0 => format!("{ms:.2}"),
        Some(ms) => format!("{ms:.0}"),
    }
}

fn latency(of: Latency) -> String {
    format!("{:.1} requests/s, p50 {} p95 {} p99 {} ms", of.per_second, ms(of.p50), ms(of.p95), ms(of.p99))
}

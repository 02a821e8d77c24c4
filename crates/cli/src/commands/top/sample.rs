//! Data of `howdah top`: the difference between two responses of `GET /status`. Unknown or missing fields count as
//! zero, so that it works with newer and older servers.

use crate::commands::status::text::{hub_members, list, number};
use crate::output::plain;
use serde_json::Value;

/// Figures for the interval between two responses.
#[derive(Debug, Default, Clone)]
pub(crate) struct Sample {
    pub(crate) version: String,
    pub(crate) uptime_s: u64,
    pub(crate) connections: i64,
    pub(crate) total: Latency,
    pub(crate) pools: Vec<PoolRow>,
    pub(crate) workers: Vec<WorkerRow>,
    /// Slowest routes first.
    pub(crate) routes: Vec<RouteRow>,
    pub(crate) demoted: Vec<DemotedRow>,
    pub(crate) hubs: Vec<HubRow>,
}

/// Requests of a kind: rate per second, and percentiles of their duration in milliseconds.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(crate) struct Latency {
    pub(crate) per_second: f64,
    pub(crate) p50: Option<f64>,
    pub(crate) p95: Option<f64>,
    pub(crate) p99: Option<f64>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct PoolRow {
    pub(crate) name: String,
    pub(crate) mode: String,
    pub(crate) workers: usize,
    pub(crate) busy: usize,
    pub(crate) queued: u64,
    pub(crate) oldest_wait_ms: u64,
    /// Time in PHP.
    pub(crate) php: Latency,
    pub(crate) faults: u64,
    pub(crate) down: bool,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct WorkerRow {
    pub(crate) pool: String,
    pub(crate) worker: u64,
    pub(crate) pid: u64,
    pub(crate) phase: String,
    pub(crate) age_s: u64,
    pub(crate) requests: u64,
    pub(crate) memory: Option<u64>,
    /// Percentage of one processor.
    pub(crate) cpu: Option<f64>,
    pub(crate) running_ms: Option<u64>,
    pub(crate) request: String,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct RouteRow {
    pub(crate) site: String,
    pub(crate) route: String,
    pub(crate) requests: Latency,
    pub(crate) errors: u64,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct DemotedRow {
    pub(crate) pool: String,
    pub(crate) route: String,
    /// Seconds since the epoch.
    pub(crate) since: u64,
    pub(crate) reason: String,
}

/// A site's clients that wait for messages.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct HubRow {
    pub(crate) site: String,
    /// WebSocket connections.
    pub(crate) websockets: u64,
    /// Mercure subscribers.
    pub(crate) subscribers: u64,
    /// Channels and topics with a subscriber.
    pub(crate) channels: u64,
}

/// The difference between two responses, `seconds` apart.
pub(crate) fn between(before: &Value, now: &Value, seconds: f64) -> Sample {
    let bounds: Vec<f64> = list(&now["duration_bounds_us"]).filter_map(Value::as_f64).collect();
    let latency = |before: &Value, now: &Value| Latency::between(&bounds, before, now, seconds);
    let mut sample = Sample {
        version: text(&now["version"]),
        uptime_s: number(&now["uptime_s"]),
        connections: now["connections"]["open"].as_i64().unwrap_or(0),
        total: latency(&before["requests"], &now["requests"]),
        ..Sample::default()
    };
    for pool in list(&now["pools"]) {
        let then = same(&before["pools"], pool, &["name"]);
        let workers: Vec<&Value> = list(&pool["workers"]).collect();
        let failed = |pool: &Value| -> u64 {
            pool["faults"].as_object().into_iter().flatten().map(|(_, count)| number(count)).sum()
        };
        sample.pools.push(PoolRow {
            name: text(&pool["name"]),
            mode: text(&pool["mode"]),
            workers: workers.len(),
            busy: workers.iter().filter(|worker| worker["busy"] == true).count(),
            queued: number(&pool["queued"]),
            oldest_wait_ms: number(&pool["oldest_wait_ms"]),
            php: latency(&then["php_time"], &pool["php_time"]),
            faults: failed(pool).saturating_sub(failed(then)),
            down: pool["down"].is_string(),
        });
        sample.demoted.extend(list(&pool["demoted"]).map(|route| DemotedRow {
            pool: text(&pool["name"]),
            route: text(&route["route"]),
            since: number(&route["since"]),
            reason: text(&route["reason"]),
        }));
        for worker in workers {
            let then = same(&then["workers"], worker, &["worker", "pid"]);
            let cpu = worker["cpu_ms"].as_f64().zip(then["cpu_ms"].as_f64());
            sample.workers.push(WorkerRow {
                pool: text(&pool["name"]),
                worker: number(&worker["worker"]),
                pid: number(&worker["pid"]),
                phase: if worker["busy"] == true { "busy".to_owned() } else { text(&worker["phase"]) },
                age_s: number(&worker["age_s"]),
                requests: number(&worker["requests"]),
                memory: worker["memory"].as_u64(),
                cpu: cpu.map(|(now, then)| (now - then).max(0.0) / 10.0 / seconds.max(0.001)),
                running_ms: worker["running_ms"].as_u64(),
                request: text(&worker["label"]),
            });
        }
    }
    for route in list(&now["routes"]) {
        let then = same(&before["routes"], route, &["site", "route"]);
        let errors = |route: &Value| number(&route["status"]["5xx"]);
        sample.routes.push(RouteRow {
            site: text(&route["site"]),
            route: text(&route["route"]),
            requests: latency(&then["requests"], &route["requests"]),
            errors: errors(route).saturating_sub(errors(then)),
        });
    }
    sample.hubs = list(&now["hubs"]).map(HubRow::of).collect();
    // Newest first.
    sample.demoted.sort_by_key(|route| std::cmp::Reverse(route.since));
    sample.routes.retain(|route| route.requests.per_second > 0.0);
    let p95 = |route: &RouteRow| route.requests.p95.unwrap_or(0.0);
    sample.routes.sort_by(|a, b| p95(b).total_cmp(&p95(a)));
    sample
}

impl HubRow {
    fn of(hub: &Value) -> Self {
        let (websockets, subscribers) = hub_members(hub);
        Self { site: text(&hub["site"]), websockets, subscribers, channels: number(&hub["topics"]) }
    }
}

impl Latency {
    fn between(bounds: &[f64], before: &Value, now: &Value, seconds: f64) -> Self {
        let then: Vec<u64> = list(&before["cumulative"]).map(number).collect();
        let cumulative: Vec<u64> = list(&now["cumulative"])
            .enumerate()
            .map(|(at, count)| number(count).saturating_sub(then.get(at).copied().unwrap_or(0)))
            .collect();
        let count = number(&now["count"]).saturating_sub(number(&before["count"]));
        let of = |share| quantile(bounds, &cumulative, count, share).map(|us| us / 1000.0);
        Self { per_second: count as f64 / seconds.max(0.001), p50: of(0.5), p95: of(0.95), p99: of(0.99) }
    }
}

/// Returns the duration in microseconds that this share of `count` does not exceed. Assumes that durations are evenly
/// distributed within a bucket; durations beyond the last bound count as that bound.
fn quantile(bounds: &[f64], cumulative: &[u64], count: u64, share: f64) -> Option<f64> {
    if count == 0 {
        return None;
    }
    let rank = share * count as f64;
    let at = cumulative.iter().position(|below| *below as f64 >= rank);
    let Some(at) = at.filter(|at| *at < bounds.len()) else { return bounds.last().copied() };
    let (from, below) = match at.checked_sub(1) {
        Some(previous) => (bounds[previous], cumulative[previous]),
        None => (0.0, 0),
    };
    let within = cumulative[at].saturating_sub(below) as f64;
    let part = if within > 0.0 { (rank - below as f64) / within } else { 1.0 };
    Some(from + (bounds[at] - from) * part)
}

/// Returns the list entry that has the same values under these keys.
fn same<'a>(all: &'a Value, wanted: &Value, keys: &[&str]) -> &'a Value {
    let found = list(all).find(|entry| keys.iter().all(|key| entry[*key] == wanted[*key]));
    found.unwrap_or(&Value::Null)
}

/// Removes control characters, because the text may come from clients and scripts.
fn text(value: &Value) -> String {
    value.as_str().map(plain).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn quantiles_lie_within_their_bucket() {
        let (bounds, cumulative) = ([100.0, 200.0, 1000.0], [50, 90, 95]);
        assert_eq!(quantile(&bounds, &cumulative, 100, 0.5), Some(100.0));
        assert_eq!(quantile(&bounds, &cumulative, 100, 0.7), Some(150.0));
        assert_eq!(quantile(&bounds, &cumulative, 100, 0.99), Some(1000.0));
        assert_eq!(quantile(&bounds, &[0, 0, 0], 0, 0.5), None);
    }

    #[test]
    fn only_changes_between_the_two_count() {
        let at = |count: u64, cpu: u64| {
            json!({"duration_bounds_us": [100, 1000], "version": "1\u{1b}[2J",
                "requests": {"count": count, "cumulative": [1, count]},
                "routes": [{"site": "a", "route": "r", "status": {"5xx": count}, "requests": {"count": count, "cumulative": [0, count]}}],
                "pools": [{"name": "p", "faults": {"queue_full": count}, "php_time": {"count": count, "cumulative": [count, count]},
                    "workers": [{"worker": 0, "pid": 7, "busy": true, "cpu_ms": cpu, "label": "GET /x"}]}]})
        };
        let sample = between(&at(10, 100), &at(30, 600), 2.0);
        assert_eq!((sample.total.per_second, sample.total.p50), (10.0, Some(0.55)));
        assert_eq!(sample.version, "1\\u{1b}[2J");
        assert_eq!((sample.pools[0].php.per_second, sample.pools[0].faults, sample.pools[0].busy), (10.0, 20, 1));
        assert_eq!((sample.workers[0].cpu, sample.workers[0].request.as_str()), (Some(25.0), "GET /x"));
        assert_eq!((sample.routes[0].errors, sample.routes[0].requests.per_second), (20, 10.0));
        // A new process with the same worker number starts from zero.
        let mut other = at(30, 5);
        other["pools"][0]["workers"][0]["pid"] = 8.into();
        assert_eq!(between(&at(10, 100), &other, 2.0).workers[0].cpu, None);
        assert!(between(&Value::Null, &Value::Null, 1.0).pools.is_empty());
    }

    #[test]
    fn demoted_routes_are_listed_newest_first() {
        let route = |route: &str, since: u64| json!({"route": route, "since": since, "reason": "differs\u{1b}[2J"});
        let now = json!({"pools": [
            {"name": "a", "demoted": [route("/old", 5), route("/new", 9)]}, {"name": "b", "demoted": []}, {"name": "c"},
        ]});
        let demoted = between(&Value::Null, &now, 1.0).demoted;
        assert_eq!(demoted.iter().map(|row| &*row.route).collect::<Vec<_>>(), ["/new", "/old"]);
        assert_eq!((&*demoted[0].pool, &*demoted[0].reason), ("a", "differs\\u{1b}[2J"));
    }
}

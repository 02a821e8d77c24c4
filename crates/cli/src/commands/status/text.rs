//! Formats `GET /status` as text. Some values come from clients (request targets) and scripts: their control characters
//! must not reach a terminal.

use crate::output::{plain, plain_lines};
use howdah_transport::Mode;
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use std::time::SystemTime;

/// Formats the status. Unknown or missing fields are shown as `-`, so that the command works with a newer server.
pub(crate) fn render(status: &Value) -> String {
    let mut out = String::new();
    server(&mut out, status);
    certificates(&mut out, status);
    list(&status["pools"]).for_each(|one| pool(&mut out, one));
    out
}

/// The entries of a list; none for other values.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A number; 0 for other values.
pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(s) => plain(s),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

/// The server as a whole: its process, budgets, logs, hubs and proxies.
fn server(out: &mut String, status: &Value) {
    let (version, pid) = (shown(&status["version"]), shown(&status["pid"]));
    let _ = writeln!(out, "howdah {version}, process {pid}, up {}", duration(number(&status["uptime_s"])));
    let connections = &status["connections"];
    if status["budgets"].is_array() {
        let budgets: Vec<String> = list(&status["budgets"]).map(budget).collect();
        let (open, budgets) = (shown(&connections["open"]), budgets.join(", "));
        let _ = writeln!(out, "{open} open connections; waiting data: {budgets}");
    }
    for (name, what) in
        [("error_log_dropped", "error log"), ("access_log_dropped", "access log"), ("slow_log_dropped", "slow log")]
    {
        if let lines @ 1.. = number(&status[name]) {
            let _ = writeln!(out, "lines of the {what} lost: {lines}");
        }
    }
    if let open @ 1.. = number(&connections["upgraded"]) {
        let _ = writeln!(out, "of these upgraded (WebSocket): {open}");
    }
    for hub in list(&status["hubs"]) {
        let (site, topics) = (shown(&hub["site"]), shown(&hub["topics"]));
        let (connections, others) = hub_members(hub);
        let _ = writeln!(out, "hub of {site}: {connections} WebSockets, {others} Mercure subscribers, {topics} topics");
    }
    for upstream in list(&status["upstreams"]) {
        let _ = writeln!(
            out,
            "proxy {}, {}: {}; {} requests, {} under way, {} connections opened, {} failures",
            shown(&upstream["proxy"]),
            shown(&upstream["server"]),
            if upstream["up"] == true { "up" } else { "OUT" },
            shown(&upstream["requests"]),
            shown(&upstream["active"]),
            shown(&upstream["connections"]),
            shown(&upstream["failures"]),
        );
    }
}

/// Number of a hub's WebSocket connections, and of its other subscribers.
pub(crate) fn hub_members(hub: &Value) -> (u64, u64) {
    let connections = number(&hub["connections"]);
    (connections, number(&hub["subscribers"]).saturating_sub(connections))
}

fn budget(budget: &Value) -> String {
    let mib = |name: &str| budget[name].as_f64().unwrap_or(0.0) / f64::from(1 << 20);
    let refused = match number(&budget["refused"]) {
        0 => String::new(),
        refused => format!(" (refused {refused} times)"),
    };
    format!("{} {:.1} of {:.0} MiB{refused}", shown(&budget["name"]), mib("used"), mib("limit"))
}

fn pool(out: &mut String, pool: &Value) {
    let is_multiplexed = Mode::deserialize(&pool["mode"]).is_ok_and(Mode::is_multiplexed);
    let each = match is_multiplexed {
        true => format!(", {} at once in each worker", shown(&pool["concurrency"])),
        false => String::new(),
    };
    let (name, mode) = (shown(&pool["name"]), shown(&pool["mode"]));
    let (version, generation) = (shown(&pool["php_version"]), shown(&pool["generation"]));
    let _ = writeln!(out, "\npool {name} ({mode} mode{each}, PHP {version}, generation {generation})");
    boot(out, pool);
    let _ = writeln!(
        out,
        "  requests {}, mean {} in PHP; waiting {} of {} (longest {} ms); run again {}, workers replaced {}, reloads {}",
        shown(&pool["requests"]),
        mean(pool),
        shown(&pool["queued"]),
        shown(&pool["queue_limit"]),
        shown(&pool["oldest_wait_ms"]),
        shown(&pool["replays"]),
        shown(&pool["restarts"]),
        shown(&pool["reloads"]),
    );
    let _ = writeln!(out, "  {}", manager(pool));
    if pool["overloaded"] == true {
        let _ = writeln!(out, "  OVERLOADED: more requests than can be served; those that wait too long are refused");
    }
    let (resets, replaced) = (number(&pool["snapshot_sessions_reset"]), number(&pool["snapshot_workers_replaced"]));
    if resets + replaced > 0 {
        let _ = writeln!(out, "  snapshot: sessions reset {resets}, workers replaced {replaced}");
    }
    for (label, count) in pool["faults"].as_object().into_iter().flatten() {
        let _ = writeln!(out, "  failed: {} {count}", plain(label));
    }
    compared_with(out, pool);
    for connections in list(&pool["connection_pools"]) {
        let _ = writeln!(out, "  {}", connection_pool(connections));
    }
    list(&pool["workers"]).for_each(|one| worker(out, one, is_multiplexed));
}

/// The boot of a pool's workers, and their sandbox.
fn boot(out: &mut String, pool: &Value) {
    if let Some(why) = pool["down"].as_str().or_else(|| pool["last_error"].as_str()) {
        let _ = writeln!(out, "  PHP DOES NOT START: {}", plain_lines(why));
    }
    if let Some(pid) = pool["snapshot_template"].as_u64() {
        let _ = writeln!(out, "  workers share one boot, that of process {pid}");
    } else if let Some(why) = pool["snapshot_unshared"].as_str() {
        let _ = writeln!(out, "  each worker boots separately: {}", plain_lines(why));
    }
    if pool["snapshot_warmup_refused"] == true {
        let _ = writeln!(out, "  SERVING WITHOUT WARM-UP, which failed or would share values between visitors:");
    }
    for finding in list(&pool["snapshot_warmup"]) {
        let _ = writeln!(out, "  warm-up: {}", shown(finding));
    }
    for path in list(&pool["snapshot_not_learnt"]) {
        let _ = writeln!(out, "  warm-up: frequent paths that are not learned: {}", shown(path));
    }
    if let Some(profile @ ("app" | "learn")) = pool["sandbox"].as_str() {
        let learnt = match profile {
            "learn" => {
                let needs = list(&pool["sandbox_needs"]).count();
                format!(", {needs} needs found: `howdah status --sandbox`")
            }
            _ => String::new(),
        };
        let _ = writeln!(out, "  sandbox {profile}{learnt}");
    }
}

fn worker(out: &mut String, worker: &Value, is_multiplexed: bool) {
    let state = match (worker["busy"] == true, &worker["in_flight"]) {
        (true, Value::Number(running)) if is_multiplexed => format!("runs {running}"),
        (true, _) => "busy".to_owned(),
        (false, _) => shown(&worker["phase"]),
    };
    let _ = write!(
        out,
        "  worker {:>3}  pid {:>7}  {state:<9} requests {:>8}  age {}",
        shown(&worker["worker"]),
        shown(&worker["pid"]),
        shown(&worker["requests"]),
        duration(number(&worker["age_s"])),
    );
    if let Some(bytes) = worker["memory"].as_f64() {
        let _ = write!(out, "  {:.1} MiB", bytes / f64::from(1 << 20));
    }
    if let Some(way) = worker["snapshot_pages"].as_str() {
        let _ = write!(
            out,
            "  restores by {}, {} searches, last {} pages in {:.1} us",
            plain(way),
            shown(&worker["snapshot_searches"]),
            shown(&worker["snapshot_restored_pages"]),
            worker["snapshot_restore_us"].as_f64().unwrap_or(0.0),
        );
    }
    if let Some(label) = worker["label"].as_str() {
        let _ = write!(out, "  {} ms  {}", shown(&worker["running_ms"]), plain(label));
    }
    out.push('\n');
}

/// Appends text about a pool's comparisons, if it has any.
pub(crate) fn compared_with(out: &mut String, pool: &Value) {
    let Some(classic) = pool["compared_with"].as_str() else { return };
    let count = |name: &str| number(&pool["compared"][name]);
    let (same, slower, differ) = (count("same"), count("slower"), count("differs"));
    let all = same + slower + differ;
    let _ = write!(out, "  compared with {}: {all} responses, {differ} differed", plain(classic));
    if slower > 0 {
        let _ = write!(out, ", {slower} took longer");
    }
    let untold = count("inconclusive") + count("skipped");
    let _ = if untold > 0 { writeln!(out, "; {untold} not compared") } else { writeln!(out) };
    for route in list(&pool["suspected"]) {
        let (searched, came) = (number(&route["searched"]), number(&route["came"]));
        if searched * 2 > came {
            let name = shown(&route["route"]);
            let _ = writeln!(out, "  not warm: {name}: {searched} of {came} restores searched for written pages");
        }
    }
    for route in list(&pool["demoted"]) {
        let since = duration(now().saturating_sub(number(&route["since"])));
        let _ = writeln!(out, "  IN CLASSIC MODE for {since}: {}: {}", shown(&route["route"]), shown(&route["reason"]));
    }
}

/// One line per certificate that the server obtained or created, and a second line if there is a problem. With
/// thousands of certificates, those with problems come first.
fn certificates(out: &mut String, status: &Value) {
    const MAX_ROWS: usize = 40;
    let now = now();
    let mut all: Vec<&Value> = list(&status["certificates"]).collect();
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|one| (one["last_error"].is_null() && !one["until"].is_null(), one["until"].as_u64()));
    let _ = writeln!(out, "\ncertificates");
    for one in all.iter().take(MAX_ROWS) {
        let next = one["next"].as_u64().map(|next| duration(next.saturating_sub(now)));
        let state = match one["until"].as_u64() {
            Some(until) if until > now => format!("valid for {}", duration(until - now)),
            Some(until) => format!("EXPIRED {} ago", duration(now - until)),
            None => "NONE YET".to_owned(),
        };
        let source = if one["source"] == "local" { ", from the local CA" } else { "" };
        let name = shown(&one["name"]);
        let what = if one["last_error"].is_null() { "renewal" } else { "next attempt" };
        let next = next.map(|next| format!(", {what} in {next}")).unwrap_or_default();
        let _ = writeln!(out, "  {name:<30} {state}{next}{source}");
        if let Some(error) = one["last_error"].as_str() {
            let failures = number(&one["failures"]);
            let times = if failures > 1 { format!(" ({failures} times)") } else { String::new() };
            let _ = writeln!(out, "    FAILED{times}: {}", plain_lines(error));
        }
    }
    if all.len() > MAX_ROWS {
        let _ = writeln!(out, "  and {} more: `howdah status --json`", all.len() - MAX_ROWS);
    }
}

/// One line about the connection pools of all workers; zero counts are left out.
fn connection_pool(numbers: &Value) -> String {
    let number = |name: &str| number(&numbers[name]);
    let mut line = format!(
        "connections {}: {} of {} open, {} in use, {} idle, {} waiting; taken {}",
        shown(&numbers["name"]),
        number("open"),
        number("limit"),
        number("in_use"),
        number("idle"),
        number("waiting"),
        number("acquired"),
    );
    let waits = number("waits");
    if waits > 0 {
        let ms = |us: u64| us as f64 / 1000.0;
        let mean = ms(number("wait_us")) / waits as f64;
        let _ = write!(line, ", waited {waits} (mean {mean:.2} ms, longest {:.2} ms)", ms(number("wait_max_us")));
    }
    for (name, what) in [
        ("timeouts", "timeouts"),
        ("opened", "opened"),
        ("closed", "closed"),
        ("open_failures", "not opened"),
        ("check_failures", "failed checks"),
        ("forgotten", "not given back"),
        ("open_transactions", "open transactions"),
    ] {
        if number(name) > 0 {
            let _ = write!(line, ", {what} {}", number(name));
        }
    }
    line
}

/// Worker limits of a pool, and cold starts of an on-demand pool.
fn manager(pool: &Value) -> String {
    let (min, max) = (number(&pool["workers_min"]), number(&pool["workers_max"]));
    let mut text = format!("workers {}, ", list(&pool["workers"]).count());
    let _ = match pool["manager"].as_str() {
        Some("ondemand") => write!(text, "on demand up to {max}"),
        Some("dynamic") => write!(text, "from {min} to {max}, {} ready", number(&pool["workers_spare"])),
        _ => write!(text, "always {max}"),
    };
    let cold = &pool["cold_starts"];
    if number(&cold["requests"]) > 0 {
        let ms = |name: &str| cold[name].as_f64().unwrap_or(0.0);
        let _ = write!(
            text,
            "; {} requests found no worker and waited {:.1} ms (p50), {:.1} ms (p99)",
            cold["requests"],
            ms("p50_ms"),
            ms("p99_ms"),
        );
    }
    text
}

fn mean(pool: &Value) -> String {
    match (pool["php_us"].as_u64(), pool["requests"].as_u64()) {
        (Some(us), Some(requests)) if requests > 0 => format!("{:.2} ms", us as f64 / requests as f64 / 1000.0),
        _ => "-".to_owned(),
    }
}

/// Seconds since the epoch.
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

pub(crate) fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_observe::escape;
    use serde_json::json;

    #[test]
    fn a_pool_that_does_not_start_is_shown_with_the_reason() {
        let status = json!({"version": "1", "pid": 7, "uptime_s": 61, "pools": [
            {"name": "default", "mode": "classic", "down": "PHP did not start: no such extension", "requests": 0, "php_us": 0},
        ]});
        let text = render(&status);
        assert!(text.contains("process 7, up 1 min"), "{text}");
        assert!(text.contains("PHP DOES NOT START: PHP did not start: no such extension"), "{text}");
    }

    #[test]
    fn a_worker_that_runs_several_requests_shows_how_many() {
        let status = json!({"pools": [{"name": "p", "mode": "async", "concurrency": 50, "workers": [
            {"worker": 0, "pid": 9, "phase": "serving", "busy": true, "in_flight": 7, "requests": 3, "age_s": 5, "label": "GET /slow", "running_ms": 12},
        ]}]});
        let text = render(&status);
        assert!(text.contains("async mode, 50 at once in each worker"), "{text}");
        assert!(text.contains("runs 7") && text.contains("12 ms  GET /slow"), "{text}");
    }

    #[test]
    fn certificates_with_problems_come_first() {
        let in_ten_days = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() + 864_030;
        let status = json!({"certificates": [
            {"name": "a.org", "source": "acme", "until": in_ten_days, "next": in_ten_days - 86400, "failures": 0},
            {"name": "shop.test", "source": "local", "until": in_ten_days},
            {"name": "b.org", "source": "acme", "until": null, "next": 5, "failures": 3, "last_error": "no \u{1b}[2J way"},
        ]});
        let text = render(&status);
        assert!(text.contains("a.org                          valid for 10 d 0 h, renewal in 9 d 0 h\n"), "{text}");
        assert!(text.contains("valid for 10 d 0 h, from the local CA\n"), "{text}");
        assert!(text.contains("NONE YET, next attempt in 0 s\n    FAILED (3 times): no \\u{1b}[2J way\n"), "{text}");
        assert!(text.find("b.org") < text.find("a.org"), "{text}");
    }

    #[test]
    fn connections_of_all_workers_have_a_line() {
        let status = json!({"pools": [{"name": "p", "connection_pools": [
            {"name": "shop", "limit": 40, "open": 3, "in_use": 1, "idle": 2, "waiting": 0, "acquired": 10, "waits": 4,
             "wait_us": 2000, "wait_max_us": 1500, "timeouts": 0, "opened": 5, "closed": 2, "open_transactions": 1},
        ]}]});
        let expected = "  connections shop: 3 of 40 open, 1 in use, 2 idle, 0 waiting; taken 10, waited 4 (mean 0.50 ms, longest 1.50 ms), opened 5, closed 2, open transactions 1\n";
        assert!(render(&status).contains(expected), "{}", render(&status));
    }

    #[test]
    fn control_characters_of_clients_and_scripts_do_not_reach_the_terminal() {
        let evil = "a\u{9b}31m\u{1b}[2J\r\u{7f}\u{85}\u{2028}\u{202e}\u{2066}";
        let status = json!({"version": evil, "pools": [{"name": evil, "mode": evil, "php_version": evil, "down": evil,
            "snapshot_unshared": evil, "faults": {evil: 1}, "connection_pools": [{"name": evil}],
            "workers": [{"phase": evil, "label": evil, "snapshot_pages": evil}]}]});
        let shown = render(&status);
        assert!(shown.contains("\\u{9b}31m\\u{1b}[2J"), "{shown:?}");
        let raw = shown.chars().find(|c| !escape::is_plain(*c) && *c != '\n');
        assert_eq!(raw, None, "{shown:?}");
        assert_eq!(plain_lines("one\ntwo\u{9b}"), "one\n    two\\u{9b}");
        let json = escape::of_json(&status.to_string());
        assert_eq!(json.chars().find(|c| !escape::is_plain(*c)), None);
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), status);
    }

    #[test]
    fn a_busy_worker_shows_its_request() {
        let status = json!({"pools": [{"name": "p", "requests": 4, "php_us": 8000, "workers": [
            {"worker": 0, "pid": 9, "phase": "serving", "busy": true, "requests": 3, "age_s": 5, "memory": 3_145_728, "label": "GET /slow", "running_ms": 12},
        ]}]});
        let text = render(&status);
        assert!(text.contains("mean 2.00 ms in PHP"), "{text}");
        assert!(text.contains("busy") && text.contains("age 5 s  3.0 MiB  12 ms  GET /slow"), "{text}");
    }
}

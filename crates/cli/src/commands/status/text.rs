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
    let text = |value: &Value| match value {
        Value::String(s) => plain(s),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    let _ = writeln!(
        out,
        "howdah {}, process {}, up {}",
        text(&status["version"]),
        text(&status["pid"]),
        duration(status["uptime_s"].as_u64().unwrap_or(0)),
    );
    if let Some(budgets) = status["budgets"].as_array() {
        let shown = budgets.iter().map(|budget| {
            let mib = |name: &str| budget[name].as_f64().unwrap_or(0.0) / f64::from(1 << 20);
            let refused = budget["refused"].as_u64().filter(|refused| *refused > 0);
            let refused = refused.map(|refused| format!(" (refused {refused} times)")).unwrap_or_default();
            format!("{} {:.1} of {:.0} MiB{refused}", text(&budget["name"]), mib("used"), mib("limit"))
        });
        let connections = &status["connections"];
        let _ = writeln!(
            out,
            "connections {}; what waits takes: {}",
            text(&connections["open"]),
            shown.collect::<Vec<_>>().join(", ")
        );
    }
    for (name, what) in
        [("error_log_dropped", "error log"), ("access_log_dropped", "access log"), ("slow_log_dropped", "slow log")]
    {
        if let Some(lines) = status[name].as_u64().filter(|lines| *lines > 0) {
            let _ = writeln!(out, "lines of the {what} lost: {lines}");
        }
    }
    if let Some(open) = status["connections"]["upgraded"].as_u64().filter(|open| *open > 0) {
        let _ = writeln!(out, "of these upgraded (WebSocket): {open}");
    }
    for hub in status["hubs"].as_array().into_iter().flatten() {
        let (site, subscribers, topics) = (text(&hub["site"]), text(&hub["subscribers"]), text(&hub["topics"]));
        let _ = writeln!(out, "hub of {site}: {subscribers} subscribers (WebSocket, Mercure), {topics} topics");
    }
    for upstream in status["upstreams"].as_array().into_iter().flatten() {
        let _ = writeln!(
            out,
            "proxy {}, {}: {}; {} requests, {} under way, {} connections opened, {} failures",
            text(&upstream["proxy"]),
            text(&upstream["server"]),
            if upstream["up"] == true { "up" } else { "OUT" },
            text(&upstream["requests"]),
            text(&upstream["active"]),
            text(&upstream["connections"]),
            text(&upstream["failures"]),
        );
    }
    certificates(&mut out, status);
    for pool in status["pools"].as_array().into_iter().flatten() {
        let is_multiplexed = Mode::deserialize(&pool["mode"]).is_ok_and(Mode::is_multiplexed);
        let each = if is_multiplexed {
            format!(", {} at once in each worker", text(&pool["concurrency"]))
        } else {
            String::new()
        };
        let _ = writeln!(
            out,
            "\npool {} ({} mode{each}, PHP {}, generation {})",
            text(&pool["name"]),
            text(&pool["mode"]),
            text(&pool["php_version"]),
            text(&pool["generation"]),
        );
        if let Some(why) = pool["down"].as_str().or_else(|| pool["last_error"].as_str()) {
            let _ = writeln!(out, "  PHP DOES NOT START: {}", plain_lines(why));
        }
        if let Some(pid) = pool["snapshot_template"].as_u64() {
            let _ = writeln!(out, "  workers share one boot, that of process {pid}");
        } else if let Some(why) = pool["snapshot_unshared"].as_str() {
            let _ = writeln!(out, "  each worker boots on its own: {}", plain_lines(why));
        }
        if pool["snapshot_warmup_refused"] == true {
            let _ = writeln!(out, "  SERVES WITHOUT ITS WARM-UP, which would give all visitors the same:");
        }
        for finding in pool["snapshot_warmup"].as_array().into_iter().flatten() {
            let _ = writeln!(out, "  warm-up: {}", text(finding));
        }
        for path in pool["snapshot_not_learnt"].as_array().into_iter().flatten() {
            let _ = writeln!(out, "  warm-up: frequent paths that are not learned: {}", text(path));
        }
        if let Some(profile @ ("app" | "learn")) = pool["sandbox"].as_str() {
            let learnt = pool["sandbox_needs"].as_array().map_or(0, Vec::len);
            let learnt = if profile == "learn" {
                format!(", {learnt} needs found: `howdah status --sandbox`")
            } else {
                String::new()
            };
            let _ = writeln!(out, "  sandbox {profile}{learnt}");
        }
        let _ = writeln!(
            out,
            "  requests {}, mean {} in PHP; waiting {} of {} (longest {} ms); run again {}, workers replaced {}, reloads {}",
            text(&pool["requests"]),
            mean(pool),
            text(&pool["queued"]),
            text(&pool["queue_limit"]),
            text(&pool["oldest_wait_ms"]),
            text(&pool["replays"]),
            text(&pool["restarts"]),
            text(&pool["reloads"]),
        );
        let _ = writeln!(out, "  {}", manager(pool));
        if pool["overloaded"] == true {
            let _ =
                writeln!(out, "  OVERLOADED: more requests than can be served; those that wait for 2 s are refused");
        }
        let number = |name: &str| pool[name].as_u64().unwrap_or(0);
        let (resets, replaced) = (number("snapshot_sessions_reset"), number("snapshot_workers_replaced"));
        if resets + replaced > 0 {
            let _ = writeln!(out, "  snapshot: sessions reset {resets}, workers replaced {replaced}");
        }
        for (label, count) in pool["faults"].as_object().into_iter().flatten() {
            let _ = writeln!(out, "  failed: {} {count}", plain(label));
        }
        compared_with(&mut out, pool);
        for connections in pool["connection_pools"].as_array().into_iter().flatten() {
            let _ = writeln!(out, "  {}", connection_pool(connections));
        }
        for worker in pool["workers"].as_array().into_iter().flatten() {
            let state = if worker["busy"] == true { "busy".to_owned() } else { text(&worker["phase"]) };
            let state = match (is_multiplexed, &worker["in_flight"]) {
                (true, Value::Number(running)) if state == "busy" => format!("runs {running}"),
                _ => state,
            };
            let _ = write!(
                out,
                "  worker {:>3}  pid {:>7}  {state:<9} requests {:>8}  age {}",
                text(&worker["worker"]),
                text(&worker["pid"]),
                text(&worker["requests"]),
                duration(worker["age_s"].as_u64().unwrap_or(0)),
            );
            if let Some(bytes) = worker["memory"].as_f64() {
                let _ = write!(out, "  {:.1} MiB", bytes / f64::from(1 << 20));
            }
            if let Some(way) = worker["snapshot_pages"].as_str() {
                let _ = write!(
                    out,
                    "  restores by {}, {} searches, last {} pages in {:.1} us",
                    plain(way),
                    text(&worker["snapshot_searches"]),
                    text(&worker["snapshot_restored_pages"]),
                    worker["snapshot_restore_us"].as_f64().unwrap_or(0.0),
                );
            }
            if let Some(label) = worker["label"].as_str() {
                let _ = write!(out, "  {} ms  {}", text(&worker["running_ms"]), plain(label));
            }
            out.push('\n');
        }
    }
    out
}

/// Appends text about a pool's comparisons, if it has any.
pub(crate) fn compared_with(out: &mut String, pool: &Value) {
    let Some(classic) = pool["compared_with"].as_str() else { return };
    let number = |name: &str| pool["compared"][name].as_u64().unwrap_or(0);
    let (same, slower, differ) = (number("same"), number("slower"), number("differs"));
    let all = same + slower + differ;
    let _ = write!(out, "  compared with {}: {all} responses, {differ} differed", plain(classic));
    if slower > 0 {
        let _ = write!(out, ", {slower} took longer");
    }
    let untold = number("inconclusive") + number("skipped");
    let _ = if untold > 0 { writeln!(out, "; {untold} not compared") } else { writeln!(out) };
    for route in pool["suspected"].as_array().into_iter().flatten() {
        let number = |name: &str| route[name].as_u64().unwrap_or(0);
        let (searched, came) = (number("searched"), number("came"));
        if searched * 2 > came {
            let name = plain(route["route"].as_str().unwrap_or("-"));
            let _ = writeln!(out, "  not warm: {name}: {searched} of {came} restores searched for written pages");
        }
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    for route in pool["demoted"].as_array().into_iter().flatten() {
        let text = |name: &str| plain(route[name].as_str().unwrap_or("-"));
        let since = duration(now.saturating_sub(route["since"].as_u64().unwrap_or(0)));
        let _ = writeln!(out, "  IN CLASSIC MODE for {since}: {}: {}", text("route"), text("reason"));
    }
}

/// One line per certificate that the server obtained or created, and a second line if there is a problem. With
/// thousands of certificates, those with problems come first.
fn certificates(out: &mut String, status: &Value) {
    const MAX_ROWS: usize = 40;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut all: Vec<&Value> = status["certificates"].as_array().into_iter().flatten().collect();
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
        let name = plain(one["name"].as_str().unwrap_or("-"));
        let what = if one["last_error"].is_null() { "renewal" } else { "next attempt" };
        let next = next.map(|next| format!(", {what} in {next}")).unwrap_or_default();
        let _ = writeln!(out, "  {name:<30} {state}{next}{source}");
        if let Some(error) = one["last_error"].as_str() {
            let failures = one["failures"].as_u64().unwrap_or(0);
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
    let number = |name: &str| numbers[name].as_u64().unwrap_or(0);
    let mut line = format!(
        "connections {}: {} of {} open, {} in use, {} idle, {} waiting; taken {}",
        plain(numbers["name"].as_str().unwrap_or("-")),
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
    let number = |name: &str| pool[name].as_u64().unwrap_or(0);
    let (min, max) = (number("workers_min"), number("workers_max"));
    let there = pool["workers"].as_array().map_or(0, Vec::len);
    let mut text = format!("workers {there}, ");
    let _ = match pool["manager"].as_str() {
        Some("ondemand") => write!(text, "on demand up to {max}"),
        Some("dynamic") => write!(text, "from {min} to {max}, {} ready", number("workers_spare")),
        _ => write!(text, "always {max}"),
    };
    let cold = &pool["cold_starts"];
    if cold["requests"].as_u64().is_some_and(|requests| requests > 0) {
        let ms = |name: &str| cold[name].as_f64().unwrap_or(0.0);
        let _ = write!(
            text,
            "; {} requests found none and waited {:.1} ms (p50), {:.1} ms (p99)",
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
    fn a_pool_that_does_not_start_says_so() {
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
    fn certificates_that_need_a_look_come_first() {
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

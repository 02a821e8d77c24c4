//! The package's alert rules, dashboard and fail2ban filter match the server's metrics and its access log.

use super::TOP;
use howdah_skip::skip;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Prometheus, Request, run};
use regex_lite::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(TOP).join(path)).unwrap()
}

/// Metrics named in a text, without the suffixes of a histogram's series.
fn metrics(text: &str) -> BTreeSet<String> {
    let name = Regex::new(r"\bhowdah_[a-z0-9_]+").unwrap();
    let names = name.find_iter(text).map(|found| found.as_str());
    names.map(|name| name.trim_end_matches("_bucket").to_owned()).collect()
}

/// Expressions of the dashboard's panels, with its variables replaced.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("packaging/monitoring/grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions = targets.map(|target| target["expr"].as_str().unwrap());
    expressions.map(|text| text.replace("$__rate_interval", "5m").replace("$instance", ".*")).collect()
}

#[test]
fn alerts_and_dashboard_use_metrics_that_exist() {
    let known = metrics(&read("docs/reference/metrics.md"));
    let used = metrics(&(read("packaging/monitoring/alerts.yml") + &expressions().join("\n")));
    assert!(used.len() > 15, "{used:?}");
    assert!(used.is_subset(&known), "{:?}", used.difference(&known));
}

#[test]
fn prometheus_loads_the_alerts_and_evaluates_the_dashboard() {
    let Some(program) = Prometheus::program() else {
        skip!("prometheus", "`scripts/unpack-package.sh` unpacks it");
    };
    let prometheus = Prometheus::start(&program, 1);
    let rules = prometheus.ask("/api/v1/rules", &[]);
    let number = read("packaging/monitoring/alerts.yml").matches("- alert:").count();
    assert_eq!(rules["data"]["groups"][0]["rules"].as_array().map(Vec::len), Some(number), "{rules}");
    for expression in expressions() {
        let answer = prometheus.ask("/api/v1/query", &[&format!("query={expression}")]);
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
    }
}

#[test]
fn fail2ban_finds_wrong_passwords_and_too_many_requests_in_the_access_log() {
    let filter = read("packaging/monitoring/fail2ban-filter.conf");
    let pattern = filter.lines().find_map(|line| line.strip_prefix("failregex = ")).unwrap();
    let pattern = Regex::new(&pattern.replace("<HOST>", r"(\S+)")).unwrap();
    let rules = concat!(
        r#"[{ path = "/staff", auth = { realm = "Staff", users = { anna = "$2y$05$xZEHREeI1mL1Th6Ky4Ku3.sw.6qzbgb"#,
        r#"/eK/QUvyOkgzX72r1jvWNW" } } }, { path = "/often.php", limit = { rate = "1/h" } }]"#
    );
    run(
        Mode::Classic,
        |s| {
            let s = s.php("often.php", "").setting("rule", rules);
            s.setting("log.access", "\"@TOP@/access.log\"").setting("log.format", "\"text\"")
        },
        |site| {
            assert_eq!([site.get("/often.php").status, site.get("/often.php").status], [200, 429]);
            let wrong = Request::get("/staff").header("Authorization", "Basic YW5uYTp3cm9uZw==");
            assert_eq!(site.send(&wrong).status, 401);
            let log = || fs::read_to_string(site.place().top.join("access.log")).unwrap_or_default();
            assert!(eventually(PATIENCE, || log().contains(" 401 ")), "{}", log());
            let found = |status: &str| {
                let log = log();
                log.lines().filter(|line| line.contains(status) && pattern.is_match(line)).count()
            };
            assert_eq!((found(" 200 "), found(" 429 "), found(" 401 ")), (0, 1, 1), "{}", log());
        },
    );
}

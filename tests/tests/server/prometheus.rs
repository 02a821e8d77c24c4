//! A real Prometheus that scrapes the server: quantiles of its histograms, exemplars of their buckets, its alert rules.

use super::admin::OnAddress;
use howdah_skip::skip;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Collector, Conn, Prometheus, Request};
use std::time::Instant;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

const WAITS: &str = "<?php usleep((int) ($_GET['us'] ?? 0)); echo 'waited';";

/// Requests a script that waits, and returns the duration.
fn wait(site: &OnAddress, us: u32) -> f64 {
    let since = Instant::now();
    let request = Request::get(&format!("/wait.php?us={us}")).header("traceparent", PARENT).close();
    assert_eq!(Conn::open(&site.visitors()).exchange(&request).expect(200).text(), "waited");
    since.elapsed().as_secs_f64()
}

#[test]
fn prometheus_computes_quantiles_and_links_traces() {
    let Some(program) = Prometheus::program() else {
        skip!("prometheus", "scripts/unpack-package.sh unpacks Debian's package");
    };
    let collector = Collector::start();
    let traces = format!("telemetry = {}", collector.section("parent = \"always\""));
    let site = OnAddress::start_with(&[("wait.php", WAITS)], &[&traces]);
    let prometheus = Prometheus::start(&program, site.admin);
    let eventually_finds = |expression: &str, is_right: &dyn Fn(f64) -> bool| {
        let mut last = None;
        let is_found = eventually(PATIENCE, || {
            last = prometheus.value(expression);
            last.is_some_and(is_right)
        });
        assert!(is_found, "{expression}: {last:?}\n{}\n{}", prometheus.log(), site.log());
        last.unwrap()
    };
    let count = "howdah_request_duration_seconds_count";
    let _ = eventually_finds(count, &|count| count == 0.0);
    let longest = (0..20).map(|_| wait(&site, 20_000)).fold(0.0, f64::max);
    let _ = eventually_finds(count, &|count| count == 20.0);
    let _ = eventually_finds("howdah_request_duration_seconds_sum", &|sum| sum > 0.4);
    for of in ["howdah_request_duration_seconds", "howdah_pool_php_duration_seconds"] {
        // Between the bounds of the bucket of 20 ms and that of the longest request.
        let expression = format!("histogram_quantile(0.95, sum by (le) (rate({of}_bucket[1m])))");
        let quantile = eventually_finds(&expression, &f64::is_finite);
        assert!((0.01..longest.max(0.02) * 3.0).contains(&quantile), "{expression}: {quantile}, {longest}");
    }
    let one = "howdah_site_request_duration_seconds_count{site=\"default\"}";
    let _ = eventually_finds(one, &|count| count == 20.0);
    let is_linked = || prometheus.exemplars("howdah_request_duration_seconds_bucket").contains(TRACE);
    assert!(eventually(PATIENCE, is_linked), "{}", prometheus.exemplars("howdah_request_duration_seconds_bucket"));
    assert!(!prometheus.log().contains("level=error"), "{}", prometheus.log());
}

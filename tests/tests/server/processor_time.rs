//! Processor time of a pool's workers and of the server, for capacity planning.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, Site, php, script_scenario};

const OF_POOL: &str = "howdah_pool_processor_seconds_total{pool=\"default\"}";

/// Seconds in this metric.
fn seconds(site: &Site, metric: &str) -> f64 {
    let mut admin = Conn::open(&site.howdah().admin());
    let page = admin.exchange(&Request::get("/metrics").close()).expect(200).text();
    let line = page.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {metric} in {page}"))
}

/// Number of the worker with this process id.
fn number_of(site: &Site, pid: &str) -> u64 {
    let status = site.howdah().status();
    let workers = status["pools"][0]["workers"].as_array().unwrap();
    let pid: u64 = pid.parse().unwrap();
    let found = workers.iter().find(|worker| worker["pid"] == pid);
    found.and_then(|worker| worker["worker"].as_u64()).unwrap_or_else(|| panic!("no worker {pid} in {status}"))
}

script_scenario!(
    processor_time_counts_workers_that_run_and_that_have_ended_and_never_shrinks,
    howdah_only = "PHP-FPM has no such number",
    |s| s.workers(1).php("busy.php", php!("processor_time/busy.php")),
    |site| {
        let mut last = seconds(site, OF_POOL);
        let mut grows = |what: &str| {
            let before = last;
            let grown = eventually(PATIENCE, || {
                let now = seconds(site, OF_POOL);
                assert!(now >= last, "{what}: {now} after {last}");
                last = now;
                now >= before + 0.09
            });
            assert!(grown, "{what}: {before} became {last}: {}", site.log());
        };
        let pid = site.get_ok("/busy.php");
        grows("a worker that runs");
        assert_eq!(site.get_ok("/busy.php"), pid);
        let order = format!("/pools/default/workers/{}/drain", number_of(site, &pid));
        let order = Request::new("POST", &order).header("X-Howdah", "1").close();
        let _ = Conn::open(&site.howdah().admin()).exchange(&order).expect(200);
        grows("a worker that has ended");
        assert!(seconds(site, "howdah_processor_seconds_total") > 0.0);
    }
);

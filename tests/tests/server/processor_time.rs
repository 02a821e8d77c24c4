//! Processor time of a pool's workers and of the server, for capacity planning, and that of an idle server.

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

/// Times that the threads of the server have been woken.
fn wake_ups(site: &Site) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", site.howdah().pid())).unwrap();
    let statuses = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let number = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    statuses.filter_map(number).sum()
}

script_scenario!(
    a_server_without_requests_leaves_the_processor_asleep,
    howdah_only = "counts wake-ups of Howdah's threads",
    |s| {
        s.workers(2)
            .setting("deadline", "\"1s\"")
            .allow_log("past the deadline")
            .allow_log("killed by a signal")
            .php("index.php", "echo 'fast';")
            .php("slow.php", "sleep(20);")
    },
    |site| {
        assert_eq!(site.get_ok("/"), "fast");
        // A server whose ticks of 100 ms and 500 ms do not pause wakes 54 times a second.
        let sleeps = eventually(PATIENCE, || {
            let before = wake_ups(site);
            std::thread::sleep(std::time::Duration::from_secs(1));
            wake_ups(site) - before <= 15
        });
        assert!(sleeps, "{}", site.log());
        // The first request after that is watched from its start.
        let begun = std::time::Instant::now();
        assert_eq!(site.send(&Request::get("/slow.php")).status, 504);
        assert!(begun.elapsed() < std::time::Duration::from_secs(8), "{:?}", begun.elapsed());
    }
);

//! Number of a pool's workers, as an operator sees it: none while there is no work, some spare ones, and more while
//! requests wait. The server measures and reports the cost of starting from none.

use howdah_tests::gate::{Gate, Held};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, Site, scenario, script_scenario};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const PID: &str = "echo getmypid();";
const HOLD: &str = "require 'gate.php'; gate($_GET['g']); echo 'held';";

fn pool_called(site: &Site, name: &str) -> Value {
    let status = site.howdah().status();
    let pools = status["pools"].as_array().unwrap();
    pools.iter().find(|pool| pool["name"] == name).unwrap().clone()
}

fn pool(site: &Site) -> Value {
    pool_called(site, "default")
}

fn workers(pool: &Value) -> usize {
    pool["workers"].as_array().unwrap().len()
}

/// Number of requests that found no worker.
fn cold(site: &Site) -> u64 {
    pool(site)["cold_starts"]["requests"].as_u64().unwrap()
}

fn wait_for_workers(site: &Site, number: usize) {
    let there = || workers(&pool(site));
    assert!(eventually(PATIENCE, || there() == number), "{} workers, not {number}; {}", there(), site.log());
}

fn send(site: &Site, target: &str) -> Conn {
    let mut conn = site.conn();
    conn.send(Request::get(target).bytes());
    conn
}

script_scenario!(
    an_on_demand_pool_starts_workers_for_requests_and_reports_the_cost,
    howdah_only = "PHP-FPM's pools are configured differently",
    |s| s.workers(0).grows_to(3).time("shrink_after", "100ms").php("pid.php", PID),
    |site| {
        wait_for_workers(site, 0);
        let (template, before) = (pool(site)["snapshot_template"].clone(), cold(site));
        let health = site.howdah().command(&["status"]);
        assert!(health.status.success());
        for _ in 0..2 {
            // On a busy machine a second worker may still be starting for the previous request, and take this one.
            let found_none = eventually(PATIENCE, || {
                wait_for_workers(site, 0);
                let counted = cold(site);
                assert!(site.get_ok("/pid.php").parse::<u32>().is_ok());
                cold(site) == counted + 1
            });
            assert!(found_none, "no request found no worker: {}", site.log());
            let cold = pool(site)["cold_starts"].clone();
            assert!(
                cold["p50_ms"].as_f64() > Some(0.0) && cold["p99_ms"].as_f64() >= cold["p50_ms"].as_f64(),
                "{cold}"
            );
            wait_for_workers(site, 0);
        }
        let requests = cold(site);
        assert!(requests >= before + 2);
        assert_eq!(pool(site)["snapshot_template"], template, "the template stays");
        let text = String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
        let shown = format!("on demand up to 3; {requests} requests found no worker and waited");
        assert!(text.contains(&shown), "{text}");
        let mut admin = Conn::open(&site.howdah().admin());
        let metrics = admin.exchange(&Request::get("/metrics")).expect(200).text();
        let counted = format!("howdah_pool_cold_start_wait_seconds_count{{pool=\"default\"}} {requests}");
        assert!(metrics.contains(&counted), "{metrics}");
        assert_eq!(admin.exchange(&Request::get("/health")).status, 200, "the pool counts as healthy");
    },
);

scenario!(
    a_burst_at_a_pool_without_workers_starts_the_maximum_number,
    howdah_only = "PHP-FPM's pools are configured differently",
    |s| s.workers(0).grows_to(3).time("shrink_after", "100ms").php("hold.php", HOLD).php("pid.php", PID),
    |site| {
        wait_for_workers(site, 0);
        let gates: Vec<_> = (0..3).map(|n| site.gate(&format!("g{n}"))).collect();
        let mut held: Vec<_> = (0..3).map(|n| send(site, &format!("/hold.php?g=g{n}"))).collect();
        // Each is held until all have arrived: three run concurrently.
        let busy = || pool(site)["workers"].as_array().unwrap().iter().filter(|w| w["busy"] == true).count();
        assert!(eventually(PATIENCE, || busy() == 3), "{} requests run", busy());
        let mut behind: Vec<_> = (0..40).map(|_| send(site, "/pid.php")).collect();
        assert!(eventually(PATIENCE, || pool(site)["queued"] == 40), "{}", pool(site));
        assert_eq!(workers(&pool(site)), 3);
        for (conn, gate) in held.iter_mut().zip(&gates) {
            gate.wait().release();
            assert_eq!(conn.response("GET").expect(200).text(), "held");
        }
        for conn in &mut behind {
            let _ = conn.response("GET").expect(200);
        }
        wait_for_workers(site, 0);
    },
);

script_scenario!(
    a_request_that_arrives_as_the_last_worker_ends_is_served,
    howdah_only = "PHP-FPM's pools are configured differently",
    |s| s.workers(0).grows_to(2).time("shrink_after", "1ms").php("pid.php", PID),
    |site| {
        // Idle workers end at a tick, every 100 ms, so requests after pauses of all lengths arrive at every phase of that.
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut served = 0_u32;
                        while !stop.load(Ordering::Relaxed) {
                            assert!(site.get_ok("/pid.php").parse::<u32>().is_ok());
                            served += 1;
                            std::thread::sleep(Duration::from_millis(u64::from(served) * 37 % 170));
                        }
                        served
                    })
                })
                .collect();
            let goes = eventually(PATIENCE, || pool(site)["cold_starts"]["requests"].as_u64() > Some(5));
            stop.store(true, Ordering::Relaxed);
            let served: u32 = clients.into_iter().map(|client| client.join().unwrap()).sum();
            assert!(goes && served > 5, "{served} served; {}", pool(site));
        });
        assert_eq!(pool(site)["faults"], serde_json::json!({}));
    },
);

scenario!(
    spare_workers_start_before_requests_wait_and_end_when_too_many_are_idle,
    howdah_only = "PHP-FPM's pools are configured differently",
    |s| s.workers(1).grows_to(4).setting("spare_workers", "\"1-2\"").time("shrink_after", "1h").php("hold.php", HOLD),
    |site| {
        let spare = || pool(site)["workers_spare"].as_u64().unwrap();
        let gates: Vec<_> = (0..4).map(|n| site.gate(&format!("g{n}"))).collect();
        let mut conns = Vec::new();
        for held in 0..4 {
            // No request waits, and still one worker is spare for the next.
            assert!(eventually(PATIENCE, || spare() >= 1), "{}", pool(site));
            conns.push(send(site, &format!("/hold.php?g=g{held}")));
            let busy = || pool(site)["workers"].as_array().unwrap().iter().filter(|w| w["busy"] == true).count();
            assert!(eventually(PATIENCE, || busy() == held + 1), "{}", pool(site));
        }
        for (conn, gate) in conns.iter_mut().zip(&gates) {
            gate.wait().release();
            assert_eq!(conn.response("GET").expect(200).text(), "held");
        }
        wait_for_workers(site, 2);
        assert_eq!(spare(), 2, "two stay, and the others have gone before their idle time is over");
    },
);

script_scenario!(
    a_reload_of_a_pool_without_workers_proves_that_the_new_code_boots,
    howdah_only = "PHP-FPM's pools are configured differently",
    |s| s.workers(0).grows_to(2).time("shrink_after", "100ms").php("pid.php", PID),
    |site| {
        let _ = site.get_ok("/pid.php");
        wait_for_workers(site, 0);
        let reload = site.howdah().command(&["reload"]);
        assert!(reload.status.success(), "{}", String::from_utf8_lossy(&reload.stderr));
        assert_eq!(pool(site)["generation"], 2);
        wait_for_workers(site, 0);
        assert!(site.get_ok("/pid.php").parse::<u32>().is_ok());
    },
);

scenario!(
    pools_share_a_machine_and_each_keeps_its_own_number,
    howdah_only = "howdah.toml is Howdah's",
    |s| s
        .workers(0)
        .grows_to(1)
        .more_processes(2)
        .time("shrink_after", "100ms")
        .setting("pool.fixed.workers", "2")
        .setting("pool.calm.workers", "\"0-2\"")
        .setting("pool.calm.spare_workers", "\"0-2\"")
        .setting("rule", "[{ path = \"/fixed/*\", pool = \"fixed\" }, { path = \"/calm/*\", pool = \"calm\" }]")
        .php("pid.php", PID)
        .php("fixed/pid.php", PID)
        .php("calm/pid.php", PID),
    |site| {
        let numbers = || ["default", "fixed", "calm"].map(|name| workers(&pool_called(site, name)));
        assert!(eventually(PATIENCE, || numbers() == [0, 2, 0]), "{:?}", numbers());
        let calm = site.get_ok("/calm/pid.php");
        let _ = site.get_ok("/fixed/pid.php");
        let _ = site.get_ok("/pid.php");
        assert!(eventually(PATIENCE, || numbers() == [0, 2, 1]), "{:?}", numbers());
        assert_eq!(site.get_ok("/calm/pid.php"), calm, "its worker stays");
        assert_eq!(pool_called(site, "calm")["cold_starts"]["requests"], 1);
    },
);

script_scenario!(
    workers_above_the_pools_memory_limit_end_after_their_requests,
    howdah_only = "PHP-FPM's pools are configured differently",
    |s| {
        s.workers(1)
            .grows_to(4)
            .setting("spare_workers", "3")
            .time("shrink_after", "1h")
            .setting("max_pool_memory", "\"120M\"")
            .php(
                "fill.php",
                "$held = str_repeat('x', 80 << 20); require 'gate.php'; gate($_GET['g']); echo strlen($held);",
            )
    },
    |site| {
        // In async mode, existing workers count as partly idle.
        assert!(eventually(PATIENCE, || workers(&pool(site)) >= 3), "{}", site.log());
        let pids = || -> Vec<u64> {
            let status = pool(site);
            status["workers"].as_array().unwrap().iter().filter_map(|worker| worker["pid"].as_u64()).collect()
        };
        let first = pids();
        // Twice 80 MB exceed the limit. A worker that ends has finished its request.
        let gates: Vec<_> = (0..2).map(|n| site.gate(&format!("g{n}"))).collect();
        let mut busy: Vec<_> = (0..2).map(|n| send(site, &format!("/fill.php?g=g{n}"))).collect();
        let held: Vec<_> = gates.iter().map(Gate::wait).collect();
        let _ = site.wait_for_log(&["more than `max_pool_memory`:", "stopping one"]);
        held.into_iter().for_each(Held::release);
        for conn in &mut busy {
            assert_eq!(conn.response("GET").expect(200).text(), (80 << 20).to_string());
        }
        let one_has_gone = || {
            let now = pids();
            first.iter().any(|pid| !now.contains(pid))
        };
        assert!(eventually(PATIENCE, one_has_gone), "{}", site.log());
        let metrics = Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics").close()).text();
        let memory = metrics.lines().find_map(|line| line.strip_prefix("howdah_pool_memory_bytes{pool=\"default\"} "));
        assert!(memory.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap() > 1 << 20, "{}", metrics);
    },
);

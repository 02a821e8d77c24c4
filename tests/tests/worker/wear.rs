//! A worker that grows, or becomes slower, is replaced after a request, and no client notices.

use howdah_tests::{Mode, Request, Setup, php, run};
use std::collections::BTreeMap;

fn worker(setup: Setup, code: &str) -> Setup {
    let script = format!("require 'gate.php'; {code}\nwhile (frankenphp_handle_request($handle)) {{}}");
    setup.workers(1).script("worker.php").php("worker.php", &script)
}

#[test]
fn a_worker_that_would_run_out_of_memory_is_replaced_before_a_request_does() {
    run(
        Mode::Worker,
        |s| worker(s.measures_memory().ini("memory_limit", "64M"), php!("wear/grows.php")),
        |site| {
            let mut requests = BTreeMap::<String, u32>::new();
            for _ in 0..60 {
                *requests.entry(site.get_ok("/")).or_default() += 1;
            }
            assert!(requests.len() > 1, "{requests:?}");
            assert!(requests.values().all(|requests| *requests < 24), "{requests:?}: more than 48 MiB");
            let _ = site.wait_for_log(&["MiB of memory_limit; max_memory sets another bound"]);
        },
    );
}

#[test]
fn a_worker_whose_requests_take_twice_as_long_as_at_first_is_replaced() {
    run(
        Mode::Worker,
        |s| worker(s, php!("wear/slows.php")),
        |site| {
            let mut conn = site.conn();
            let mut get = |path: &str| conn.exchange(&Request::get(path)).text();
            let first = get("/");
            let replaced = (0..1500).position(|_| get("/") != first);
            // The windows that were slow throughout are the third and the fourth.
            assert!(replaced.is_some_and(|at| (1000..1100).contains(&at)), "{replaced:?}");
            let second = get("/?even=1");
            assert!((0..1100).all(|_| get("/?even=1") == second), "the second worker is not replaced");
            let log = site.wait_for_log(&["ms of processor time, and took"]);
            assert_eq!(log.matches("ms of processor time, and took").count(), 1, "{log}");
        },
    );
}

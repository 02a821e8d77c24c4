//! Misused connections in async mode: one connection used by two coroutines, a transaction left open; and the counters
//! of pools as an operator sees them.

use crate::async_mode::library::{passes, setup};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::servers::Server;
use howdah_tests::{Conn, Mode, Request, Setup, Site, php, run};
use serde_json::Value;

#[test]
fn concurrent_use_of_a_connection_reports_both_stacks() {
    let (sql, redis) = (Server::mariadb(), Server::redis(false));
    run(
        Mode::Async,
        |s| {
            setup(s, &[("concurrent.php", include_str!("php/library/concurrent.php"))])
                .expect_log("is using this PDO")
                .expect_log("is using this mysqli")
                .expect_log("is using this Redis")
                .expect_log("waiting for an answer on the same connection")
        },
        |site| {
            passes(site, &format!("/?case=concurrent&sql={}&redis={}", sql.port, redis.port));
            for connection in ["this PDO", "this mysqli", "this Redis", "the same connection"] {
                let line = site.wait_for_log(&["Another coroutine", connection]);
                let (own, other) = line.split_once("The other one (").expect("two stacks");
                assert!(own.contains("wants(") && !own.contains("holds("), "{line}");
                assert!(other.contains("holds(") && !other.contains("wants("), "{line}");
                assert!(line.contains("case=concurrent"), "{line}");
            }
        },
    );
}

#[test]
fn a_transaction_left_open_is_an_error_with_its_locations() {
    let (sql, redis) = (Server::mariadb(), Server::redis(false));
    run(
        Mode::Async,
        |s| {
            setup(s, &[("transactions.php", include_str!("php/library/transactions.php"))])
                .expect_log("A connection was returned to the pool \"shop\" with an open transaction, which was rolled back; returned at")
                .expect_log("A connection of the pool \"shop\" was left with an open transaction at its coroutine's end")
                .allow_log("with an open transaction")
        },
        |site| {
            passes(site, &format!("/?case=transactions&sql={}&redis={}", sql.port, redis.port));
            for texts in [["\"shop\"", "returned at"], ["\"shop\"", "coroutine's end"], ["\"redis\"", "returned at"]] {
                let line = site.wait_for_log(&texts);
                assert!(
                    line.contains("taken at") && line.contains("begins(") && line.contains("case=transactions"),
                    "{line}"
                );
            }
            assert!(site.log().contains("WARN php: A connection was returned to the pool \"shop\""));
        },
    );
}

/// The message is logged while the request is still known, and with complete stacks if requested.
#[test]
fn a_transaction_left_open_at_a_requests_end_is_logged_with_the_request() {
    let sql = Server::mariadb();
    let code =
        php!("connections/a_transaction_left_open_at_a_requests_end_is_logged_with_the_request.php", PORT = sql.port);
    run(
        Mode::Async,
        |s| {
            setup(s, &[("leave.php", &format!("<?php {code}"))]).ini("howdah.traces", "1").expect_log(
                "A connection of the pool \"mysql\" was left with an open transaction at its coroutine's end",
            )
        },
        |site| {
            for _ in 0..3 {
                // The pool has one connection: it was returned, and the transaction was rolled back.
                passes(site, "/?case=leave");
            }
            let line = site.wait_for_log(&["coroutine's end", "label=\"GET /?case=leave\""]);
            let (taken, begun) = line.split_once("begun at:").expect("both places");
            assert!(taken.contains("Kept::deep()") && begun.contains("Kept::deep()"), "{line}");
        },
    );
}

const POOLS: &str = php!("connections/pools.php");

fn pools(workers: usize, body: impl FnOnce(&Site)) {
    run(
        Mode::Async,
        |s: Setup| s.workers(workers).setting("concurrency", "4").script("worker.php").php("worker.php", POOLS),
        |site| body(site),
    );
}

/// These numbers of the connection pool with this name, as in the status.
fn numbers(of: &Value, name: &str, which: &[&str]) -> Vec<u64> {
    let pools = of["connection_pools"].as_array().expect("connection pools");
    let pool = pools.iter().find(|pool| pool["name"] == name);
    pool.map_or_else(Vec::new, |pool| which.iter().map(|key| pool[key].as_u64().expect("number")).collect())
}

fn becomes(site: &Site, name: &str, which: &[&str], expected: &[u64]) {
    let reached = eventually(PATIENCE, || numbers(&site.howdah().pool(), name, which) == expected);
    assert!(reached, "{name} {which:?}: {:?} instead of {expected:?}", numbers(&site.howdah().pool(), name, which));
}

fn metrics(site: &Site) -> String {
    Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics")).expect(200).text()
}

#[test]
fn numbers_of_connection_pools_are_in_status_and_metrics() {
    pools(2, |site| {
        becomes(site, "shop", &["limit", "open"], &[4, 0]);
        let held: Vec<_> = (0..6)
            .map(|_| {
                let mut conn = site.conn();
                conn.send(Request::get("/?do=hold").bytes());
                conn
            })
            .collect();
        // Six requests, two to four in each worker, two connections in each pool.
        becomes(site, "shop", &["open", "in_use", "idle", "waiting", "acquired"], &[4, 4, 0, 2, 6]);
        for worker in site.howdah().pool()["workers"].as_array().expect("workers") {
            assert_eq!(numbers(worker, "shop", &["limit", "open", "in_use"]), [2, 2, 2]);
        }
        assert_eq!(site.get_ok("/?do=vain"), "in vain");
        assert_eq!(site.get_ok("/?do=fail"), "failed");
        becomes(site, "shop", &["timeouts", "waits"], &[1, 3]);
        becomes(site, "objects", &["open", "limit", "open_failures", "opened"], &[0, 10, 1, 0]);
        let text = metrics(site);
        for line in [
            "# TYPE howdah_connection_pool_connections gauge",
            "howdah_connection_pool_connections{pool=\"default\",name=\"shop\",state=\"in_use\"} 4",
            "howdah_connection_pool_events_total{pool=\"default\",name=\"shop\",event=\"timed_out\"} 1",
            "howdah_connection_pool_events_total{pool=\"default\",name=\"objects\",event=\"open_failed\"} 1",
        ] {
            assert!(text.lines().any(|have| have == line), "missing: {line}\n{text}");
        }
        let text = String::from_utf8(site.howdah().command(&["status"]).stdout).expect("text");
        assert!(text.contains("connections shop: 4 of 4 open, 4 in use, 0 idle, 2 waiting; taken 7"), "{text}");
        std::fs::write(site.place().top.join("marks/go"), "go").expect("mark");
        for mut conn in held {
            assert_eq!(conn.response("GET").expect(200).text(), "held");
        }
        becomes(site, "shop", &["open", "in_use", "idle", "waiting", "waits"], &[4, 0, 4, 0, 3]);
        let shop = site.howdah().pool()["connection_pools"]
            .as_array()
            .expect("pools")
            .iter()
            .find(|p| p["name"] == "shop")
            .cloned();
        let shop = shop.expect("shop");
        assert!(
            shop["wait_us"].as_u64() > Some(0) && shop["wait_max_us"].as_u64() <= shop["wait_us"].as_u64(),
            "{shop}"
        );
    });
}

#[test]
fn counts_of_connection_pools_outlive_them_and_their_workers() {
    pools(1, |site| {
        // A second pool of the same name, which ends with its request; and two pools without a name.
        assert_eq!(site.get_ok("/?do=same"), "shop objects-2");
        becomes(site, "shop", &["limit", "acquired", "opened", "open"], &[2, 1, 1, 0]);
        assert_eq!(site.get_ok("/?do=vain"), "");
        becomes(site, "shop", &["acquired", "opened", "open"], &[2, 2, 1]);
        let pid: i32 = site.get_ok("/?pid=1").parse().expect("pid");
        howdah_tests::process::signal(pid as u32, rustix::process::Signal::KILL);
        assert!(eventually(PATIENCE, || site.howdah().pool()["restarts"] == 1));
        becomes(site, "shop", &["limit", "acquired", "opened", "open", "closed"], &[2, 2, 2, 0, 2]);
        assert_eq!(site.get_ok("/?do=same"), "shop objects-2");
        becomes(site, "shop", &["acquired", "opened"], &[3, 3]);
    });
}

#[test]
fn more_connection_pools_than_can_be_shown_do_no_harm() {
    pools(1, |site| {
        assert_eq!(site.get_ok("/?do=names"), "made");
        becomes(site, &format!("1{}", "n".repeat(55)), &["limit"], &[16]);
        becomes(site, "shop", &["limit"], &[2]);
        let shown = site.howdah().pool()["connection_pools"].as_array().expect("pools").len();
        assert_eq!((shown, metrics(site).matches("howdah_connection_pool_limit{").count()), (21, 21));
    });
}

//! Workers that run several requests at once, as an operator sees them: the limit, the queue, deadlines, crashes,
//! clients that leave or are slow, reloads. The handler's own view is tested elsewhere.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, Site, php, run};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The paths of the requests. `hold` waits, like every waiting script, without blocking its worker.
const SCRIPT: &str = php!("pool/script.php");

/// Short enough for tests to wait for it, and longer than any short request takes, even on a machine that stalls for
/// seconds.
const DEADLINE: &str = "\"6s\"";

fn site(workers: usize, concurrency: usize, setup: impl FnOnce(Setup) -> Setup, body: impl FnOnce(&Site)) {
    run(
        Mode::Async,
        |s| {
            let s = s.workers(workers).script("worker.php");
            setup(s.setting("concurrency", &concurrency.to_string()).php("worker.php", SCRIPT))
        },
        |site| body(site),
    );
}

/// Releases all held requests.
fn go(site: &Site) {
    std::fs::write(site.place().top.join("marks/go"), "go").unwrap();
}

fn running(site: &Site) -> u64 {
    site.howdah().pool()["workers"].as_array().unwrap().iter().filter_map(|worker| worker["in_flight"].as_u64()).sum()
}

fn pid(site: &Site) -> String {
    site.get_ok("/").trim().to_owned()
}

#[test]
fn requests_begin_although_many_others_compute_and_none_ends() {
    site(
        1,
        40,
        |s| s.ini("howdah.time_slice", "1"),
        |site| {
            let mut spinning: Vec<_> = (0..30).map(|_| site.conn()).collect();
            spinning.iter_mut().for_each(|conn| conn.send(Request::get("/?do=spin").bytes()));
            site.wait_for_mark("spinning", 30);
            go(site);
            for mut conn in spinning {
                assert_eq!(conn.response("GET").expect(200).text(), "spun");
            }
        },
    );
}

#[test]
fn requests_beyond_the_concurrency_wait_in_the_queue() {
    site(
        2,
        3,
        |s| s,
        |site| {
            let held: Vec<_> = (0..9)
                .map(|_| {
                    let mut conn = site.conn();
                    conn.send(Request::get("/?do=hold").bytes());
                    conn
                })
                .collect();
            site.wait_for_mark("here", 6);
            assert!(eventually(PATIENCE, || site.howdah().pool()["queued"] == 3));
            let pool = site.howdah().pool();
            let in_flight: Vec<_> =
                pool["workers"].as_array().unwrap().iter().map(|w| w["in_flight"].as_u64()).collect();
            assert_eq!((in_flight, pool["concurrency"].as_u64()), (vec![Some(3), Some(3)], Some(3)));
            let text = String::from_utf8(site.howdah().command(&["status"]).stdout).unwrap();
            assert!(text.contains("3 at once in each worker") && text.contains("runs 3"), "{text}");
            assert_eq!(site.marks("here"), 6);
            go(site);
            for mut conn in held {
                assert_eq!(conn.response("GET").expect(200).text(), "held");
            }
            assert!(eventually(PATIENCE, || running(site) == 0));
        },
    );
}

#[test]
fn only_the_request_past_its_deadline_is_cancelled() {
    let setup = |s: Setup| s.setting("deadline", DEADLINE).expect_log("past the deadline");
    site(1, 10, setup, |site| {
        let before = pid(site);
        let mut late = site.conn();
        late.send(Request::get("/?do=wait").bytes());
        site.wait_for_mark("waiting", 1);
        let answered = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(late.response("GET").status, 504);
                answered.store(true, Ordering::Relaxed);
            });
            while !answered.load(Ordering::Relaxed) {
                assert_eq!(pid(site), before);
            }
        });
        assert!(eventually(PATIENCE, || running(site) == 0), "the request has not ended in the worker");
        assert_eq!((pid(site), site.howdah().pool()["restarts"].as_u64()), (before, Some(0)));
    });
}

#[test]
fn a_worker_that_computes_past_a_deadline_is_replaced_and_others_serve_meanwhile() {
    let setup = |s: Setup| s.setting("deadline", DEADLINE).expect_log("past the deadline");
    site(2, 10, setup, |site| {
        let mut late = site.conn();
        late.send(Request::get("/?do=spin").bytes());
        site.wait_for_mark("spinning", 1);
        // Some of these are sent to the computing worker, and are taken back from it.
        for n in 0..20 {
            assert!(site.get_ok(&format!("/?n={n}")).ends_with(&format!(" {n}")));
        }
        assert_eq!(late.response("GET").status, 504);
        let line = site.wait_for_log(&["worker killed; PHP stack", "do=spin"]);
        assert!(line.contains("worker.php"), "{line}");
        assert!(eventually(PATIENCE, || {
            let pool = site.howdah().pool();
            pool["restarts"] == 1 && pool["workers"].as_array().unwrap().iter().all(|w| w["phase"] == "serving")
        }));
        assert_eq!(site.get("/?n=1").status, 200);
    });
}

#[test]
fn bystanders_of_a_request_that_kills_its_worker_are_run_again() {
    site(
        1,
        20,
        |s| s,
        |site| {
            let mut beside: Vec<_> = (0..5)
                .map(|_| {
                    let mut conn = site.conn();
                    conn.send(Request::get("/?do=hold").bytes());
                    conn
                })
                .collect();
            site.wait_for_mark("here", 5);
            assert_eq!(site.get_ok("/?do=kill&times=2"), "alive");
            assert_eq!(site.marks("dead"), 2);
            go(site);
            for conn in &mut beside {
                assert_eq!(conn.response("GET").expect(200).text(), "held");
            }
        },
    );
}

#[test]
fn a_request_that_kills_every_worker_fails_and_bystanders_succeed() {
    site(
        1,
        20,
        |s| s.expect_log("worker_died"),
        |site| {
            let mut beside = site.conn();
            beside.send(Request::get("/?do=hold").bytes());
            site.wait_for_mark("here", 1);
            assert_eq!(site.get("/?do=kill&times=100").status, 502);
            assert_eq!(site.marks("dead"), 3);
            go(site);
            assert_eq!(beside.response("GET").expect(200).text(), "held");
        },
    );
}

#[test]
fn a_script_that_prints_learns_that_its_client_has_left() {
    site(
        1,
        20,
        |s| s,
        |site| {
            let before = pid(site);
            let mut leaving = site.conn();
            leaving.send(Request::get("/?do=print").bytes());
            site.wait_for_mark("printing", 1);
            assert_eq!(running(site), 1);
            drop(leaving);
            assert!(eventually(PATIENCE, || running(site) == 0));
            assert_eq!(pid(site), before);
        },
    );
}

#[test]
fn large_uploads_at_once_reach_their_own_requests() {
    site(
        2,
        50,
        |s| s,
        |site| {
            std::thread::scope(|scope| {
                for thread in 0..16usize {
                    scope.spawn(move || {
                        // Some travel inside the call, some as a descriptor, some through a temporary file of the
                        // server.
                        for size in [100, 20_000, 200_000 + thread, 3_000_000] {
                            let body: Vec<u8> = (0..size).map(|at| (at * 7 + thread) as u8).collect();
                            let ours =
                                site.send(&Request::post("/?do=upload", "application/octet-stream", &body)).expect(200);
                            let length = ours.text().split(' ').next().unwrap().to_owned();
                            assert_eq!(length, size.to_string());
                            let alone =
                                site.send(&Request::post("/?do=upload", "application/octet-stream", &body)).expect(200);
                            assert_eq!(ours.text(), alone.text());
                        }
                    });
                }
            });
        },
    );
}

#[test]
fn a_client_that_does_not_read_delays_no_other() {
    site(
        1,
        20,
        |s| s,
        |site| {
            let mut slow = site.conn();
            slow.shrink_receive_buffer();
            slow.send(Request::get("/?do=stream").bytes());
            site.wait_for_mark("streaming", 1);
            for _ in 0..20 {
                let _ = pid(site);
            }
            // All of it is written although no client reads.
            site.wait_for_mark("streamed", 1);
            assert!(eventually(PATIENCE, || running(site) == 0));
        },
    );
}

#[test]
fn reloads_under_load_lose_nothing() {
    site(
        2,
        8,
        |s| s,
        |site| {
            let stop = AtomicBool::new(false);
            let served = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for thread in 0..24 {
                    let (stop, served) = (&stop, &served);
                    scope.spawn(move || {
                        let mut conn = site.conn();
                        let mut n = 0;
                        while !stop.load(Ordering::Relaxed) {
                            n += 1;
                            // POST: a lost response would not be retried.
                            let response =
                                conn.exchange(&Request::form(&format!("/?n={thread}-{n}"), "a=1")).expect(200);
                            assert!(response.text().ends_with(&format!(" {thread}-{n}")), "{}", response.text());
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                let reloads = scope.spawn(|| {
                    for _ in 0..4 {
                        // Under load: requests are in flight each time.
                        let before = served.load(Ordering::Relaxed);
                        assert!(eventually(PATIENCE, || served.load(Ordering::Relaxed) > before + 20));
                        assert!(site.howdah().command(&["reload"]).status.success());
                    }
                });
                let outcome = reloads.join();
                stop.store(true, Ordering::Relaxed);
                outcome.unwrap();
            });
        },
    );
}

/// Regression: with as many computing requests as workers, all others waited behind one.
#[test]
fn requests_that_compute_leave_workers_to_others() {
    let processors = std::thread::available_parallelism().unwrap().get();
    site(
        2 * processors,
        20,
        |s| s,
        |site| {
            let served: Mutex<Vec<(bool, String)>> = Mutex::default();
            let stop = AtomicBool::new(false);
            // The last responses of both kinds came from different workers.
            let apart = || {
                let served = served.lock().unwrap();
                let last = |computed| {
                    let pids = served.iter().rev().filter(move |one| one.0 == computed).take(20);
                    pids.map(|one| one.1.as_str()).collect::<Vec<_>>()
                };
                let (computing, others) = (last(true), last(false));
                computing.len() + others.len() == 40 && computing.iter().all(|pid| !others.contains(pid))
            };
            std::thread::scope(|scope| {
                for client in 0..2 * processors + 2 {
                    let (stop, served) = (&stop, &served);
                    let computes = client >= 2;
                    let target = if computes { "/computes?do=compute" } else { "/waits" };
                    scope.spawn(move || {
                        let mut conn = site.conn();
                        while !stop.load(Ordering::Relaxed) {
                            let pid = conn.exchange(&Request::get(target)).expect(200).text().trim().to_owned();
                            served.lock().unwrap().push((computes, pid));
                        }
                    });
                }
                let found = eventually(PATIENCE, apart);
                stop.store(true, Ordering::Relaxed);
                assert!(found, "the same workers serve both kinds");
            });
        },
    );
}

//! Worker pools as an operator sees them: several in one server, boot failures, reloads, watched files.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::site::replace_file;
use howdah_tests::{Mode, Request, Setup, Site, php, repetitions, run};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A worker script that responds with `text` and its process id.
fn answering(text: &str) -> String {
    php!("pools/answering.php", TEXT = text)
}

fn worker(setup: Setup, code: &str) -> Setup {
    setup.script("worker.php").php("worker.php", code)
}

#[test]
fn routes_lead_to_several_worker_scripts_and_all_else_runs_classic() {
    let api = php!("pools/routes_lead_to_several_worker_scripts_and_all_else_runs_classic.php");
    run(
        Mode::Classic,
        |s| {
            s.more_processes(4)
                .setting("pool.api.mode", "\"worker\"")
                .setting("pool.api.script", "\"../root/hidden/../../run/api.php\"")
                .setting("pool.api.workers", "1")
                .setting("pool.shop.mode", "\"worker\"")
                .setting("pool.shop.script", "\"../root/shop.php\"")
                .setting("pool.shop.workers", "1")
                .setting("rule", r#"[{ path = "/api/*", pool = "api" }, { path = "/shop*", pool = "shop" }]"#)
                .php("hidden/x.php", "")
                .php("../run/api.php", api)
                .php("shop.php", &answering("shop"))
                .php("plain.php", "echo 'classic ', Howdah\\mode();")
        },
        |site| {
            for _ in 0..3 {
                assert_eq!(site.get_ok("/api/users?x=1"), "api /api/users?x=1 /api.php");
                assert_eq!(site.get_ok("/shop"), "shop /shop");
                assert_eq!(site.get_ok("/shop/cart"), "shop /shop/cart");
                assert_eq!(site.get_ok("/plain.php"), "classic classic");
            }
            assert_eq!(site.get("/apis").status, 404);
        },
    );
}

#[test]
fn a_script_that_never_asks_for_a_request_is_a_boot_failure() {
    run(
        Mode::Worker,
        |s| {
            worker(
                s.expect_boot_failure().expect_log("ended before it").allow_log("no application"),
                "throw new Exception('no application');",
            )
        },
        |site| {
            let refused = site.get("/");
            assert_eq!(refused.status, 503);
            assert!(!refused.text().contains("no application"), "the response names no internal details");
            let line = site.wait_for_log(&["ended before it was ready", "next attempt in"]);
            assert!(line.contains("no application"), "{line}");
            replace_file(&site.file("worker.php"), format!("<?php\n{}", answering("mended")));
            let mended = eventually(PATIENCE, || site.get("/a").text() == "mended /a");
            assert!(mended, "the next attempt does not find the repaired script");
        },
    );
}

/// Regression: the first check for changes ran concurrently with the start of PHP, so a change that PHP had just missed
/// could go unnoticed.
#[test]
fn files_are_watched_before_php_reads_them() {
    run(
        Mode::Worker,
        |s| worker(s.workers(1).setting("watch", r#"["../root/**/*.php"]"#), &answering("one")),
        |site| {
            // The server reports that it serves once it has begun to start PHP.
            let log = site.log();
            let look = log.find("watching for changes").expect("a first check for changes");
            assert!(look < log.find(" serves ").expect("a start"), "{log}");
        },
    );
}

#[test]
fn a_change_in_a_watched_file_reloads_the_workers() {
    run(
        Mode::Worker,
        |s| worker(s.workers(2).setting("watch", r#"["../root/**/*.php"]"#), &answering("one")),
        |site| {
            assert_eq!(site.get_ok("/a"), "one /a");
            replace_file(&site.file("worker.php"), format!("<?php\n{}", answering("two")));
            assert!(eventually(PATIENCE, || site.get_ok("/a") == "two /a"));
            replace_file(&site.file("ready.txt"), "still ready\n");
            replace_file(&site.file("lib.php"), "<?php\n");
            let _ = site.wait_for_log(&["lib.php has changed"]);
            assert!(!site.log().contains("ready.txt has changed"));
            // The test must not end during the reload.
            let reloaded = || site.log().matches("reload: new workers serve").count() >= 2;
            assert!(eventually(PATIENCE, reloaded), "{}", site.log());
        },
    );
}

#[test]
fn a_reload_that_cannot_boot_keeps_the_old_workers() {
    run(
        Mode::Worker,
        |s| {
            worker(
                s.expect_log("ended before it").allow_log("reload failed").allow_log("broken now"),
                &answering("old"),
            )
        },
        |site| {
            replace_file(&site.file("worker.php"), "<?php throw new Exception('broken now');");
            let reload = site.howdah().command(&["reload"]);
            assert!(!reload.status.success());
            assert_eq!(site.get_ok("/a"), "old /a");
        },
    );
}

#[test]
fn reloads_under_load_lose_nothing() {
    run(
        Mode::Worker,
        |s| worker(s.workers(2), php!("pools/reloads_under_load_lose_nothing.php")),
        |site| {
            let stop = AtomicBool::new(false);
            let served = AtomicU64::new(0);
            let site = &*site;
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let (stop, served) = (&stop, &served);
                    scope.spawn(move || {
                        let mut conn = site.conn();
                        let mut n = 0;
                        while !stop.load(Ordering::Relaxed) {
                            n += 1;
                            let mark = format!("{thread}-{n}");
                            // POST: a lost response would not be retried.
                            let response = conn.exchange(&Request::form(&format!("/?n={mark}"), "a=1")).expect(200);
                            assert_eq!(response.text(), mark);
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                let reloads = scope.spawn(|| {
                    for _ in 0..4 {
                        // Not back to back without a turn for the clients.
                        let enough = served.load(Ordering::Relaxed) + 20;
                        assert!(
                            eventually(PATIENCE, || served.load(Ordering::Relaxed) >= enough),
                            "no client is served"
                        );
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

#[test]
fn a_hundred_parallel_requests_keep_apart() {
    let code = php!("pools/a_hundred_parallel_requests_keep_apart.php");
    run(
        Mode::Worker,
        |s| worker(s.workers(3), code),
        |site| {
            let site = &*site;
            std::thread::scope(|scope| {
                for thread in 0..100 {
                    scope.spawn(move || {
                        for round in 1..=3 {
                            let mark = format!("t{thread}");
                            let request = Request::form(&format!("/?m={mark}"), &format!("m={mark}"))
                                .header("Cookie", &format!("m={mark}"))
                                .header("X-Mark", &mark);
                            let response = site.send(&request).expect(200);
                            assert_eq!(response.header("x-mark"), Some(mark.as_str()));
                            let expected = format!(
                                r#"["{mark}","{mark}","{mark}","{mark}","{mark}","m={mark}",{{"n":{round},"m":"{mark}"}}]"#
                            );
                            assert_eq!(response.text(), expected);
                        }
                    });
                }
            });
        },
    );
}

#[test]
fn sessions_do_not_leak_and_save_handlers_stay() {
    let code = php!("pools/sessions_do_not_leak_and_save_handlers_stay.php");
    run(
        Mode::Worker,
        |s| worker(s.workers(1), code),
        |site| {
            let with = |path: &str, id: &str| {
                let request = Request::get(path).header("Cookie", &format!("PHPSESSID={id}"));
                site.send(&request).expect(200).text()
            };
            assert_eq!(with("/?start=1", "visitora"), r#"[[false,"",1],{"v":1},0]"#);
            assert_eq!(with("/", "visitorb"), r#"[[false,"",1],null,1]"#, "written before the answer, then forgotten");
            assert_eq!(with("/?start=1", "visitorb"), r#"[[false,"",1],{"v":1},1]"#);
            assert_eq!(with("/?start=1", "visitora"), r#"[[false,"",1],{"v":2},2]"#);
            assert_eq!(with("/?start=1&exit=1", "visitora"), "left");
            assert_eq!(with("/", "visitora"), r#"[[false,"",1],null,0]"#, "a fresh process");
        },
    );
}

#[test]
fn memory_stays_flat_over_many_requests() {
    let code = php!("pools/memory_stays_flat_over_many_requests.php");
    run(
        Mode::Worker,
        |s| worker(s.workers(1).measures_memory(), code),
        |site| {
            let mut conn = site.conn();
            let body = "x".repeat(3000);
            let mut serve = |n: usize| {
                for i in 0..n {
                    let request = match i % 3 {
                        0 => Request::get("/?x=1"),
                        1 => Request::form("/?x=2", "a=1&b=2"),
                        _ => Request::post("/", "application/json", &body),
                    };
                    let _ = conn.exchange(&request).expect(200);
                }
                let text = conn.exchange(&Request::get("/?memory=1")).expect(200).text();
                let mut words = text.split(' ').skip(2).map(|w| w.parse::<u64>().unwrap());
                (words.next().unwrap(), words.next().unwrap())
            };
            let total = usize::try_from(repetitions("HOWDAH_LEAK_REQUESTS", 6000, 200)).unwrap();
            let (warm_memory, warm_heap) = serve(total / 10);
            let (memory, heap) = serve(total);
            assert!(heap <= warm_heap + 16 * 1024, "PHP's heap grew from {warm_heap} to {heap} bytes");
            assert!(memory <= warm_memory + 1024, "the process grew from {warm_memory} to {memory} KiB");
        },
    );
}

#[test]
fn workers_that_end_often_lose_nothing() {
    let code = "require 'gate.php'; $n = 0; while (frankenphp_handle_request(function () use (&$n) {
        usleep(300); echo getmypid(); if (++$n === 5 && random_int(0, 1)) { exit(0); }
    })) {}";
    run(
        Mode::Worker,
        |s| worker(s.workers(2).setting("max_requests", "7"), code),
        |site| {
            let site = &*site;
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(move || {
                        let mut conn = site.conn();
                        let mut pids = BTreeSet::new();
                        for n in 0..40 {
                            let request = if n % 2 == 0 { Request::get("/") } else { Request::form("/", "a=1") };
                            pids.insert(conn.exchange(&request).expect(200).text());
                        }
                        assert!(pids.len() > 4, "{pids:?}");
                    });
                }
            });
        },
    );
}

#[test]
fn a_script_without_a_loop_is_run_again_for_each_request() {
    let code = "frankenphp_handle_request(function () { echo getmypid(); });";
    run(
        Mode::Worker,
        |s| worker(s.workers(1), code),
        |site| {
            let pids: BTreeSet<String> = (0..8).map(|_| site.get_ok("/")).collect();
            assert_eq!(pids.len(), 8);
        },
    );
}

#[test]
fn a_pool_that_does_not_boot_does_not_affect_others() {
    run(
        Mode::Classic,
        |s| {
            s.workers(2)
                .setting("pool.api.mode", "\"worker\"")
                .setting("pool.api.script", "\"../apps/api.php\"")
                .setting("rule", r#"[{ path = "/api/*", pool = "api" }]"#)
                .php(
                    "../apps/api.php",
                    "require __DIR__ . '/../root/gate.php'; mark('boots'); throw new Exception('no database');",
                )
                .expect_log("no database")
                .expect_log("next attempt in")
        },
        |site| {
            site.wait_for_mark("boots", 6);
            let line = site.wait_for_log(&["next attempt in 100ms", "failures=1"]);
            assert!(line.contains("no database"), "{line}");
            assert_eq!(site.log().matches("no database").count(), 1, "{}", site.log());
            assert_eq!(site.get_ok("/gate.php"), "");
            assert_eq!(site.get("/api/x").status, 503);
            let status = site.howdah().command(&["status"]);
            let text = String::from_utf8_lossy(&status.stdout);
            assert!(text.contains("PHP DOES NOT START") && text.contains("no database"), "{text}");
        },
    );
}

#[test]
fn a_crash_costs_one_process_and_a_safe_request_nothing() {
    let code = php!("pools/a_crash_costs_one_process_and_a_safe_request_nothing.php");
    run(
        Mode::Worker,
        |s| worker(s.workers(1).expect_log("worker_died").expect_log("died during the request"), code),
        |site| {
            let first = site.get_ok("/");
            let second = site.get_ok("/?crash=1");
            assert_ne!(first, second, "GET is run again by a fresh worker");
            assert_eq!(site.send(&Request::form("/?crash=1", "a=1")).status, 502);
            assert_ne!(site.get_ok("/"), second);
        },
    );
}

#[test]
fn the_deadline_covers_the_handler_and_the_code_after_it() {
    let code = "require 'gate.php'; set_time_limit(0); while (frankenphp_handle_request(function () {
        if (isset($_GET['during'])) { while (true); } echo getmypid();
    })) { if (isset($_GET['after'])) { while (true); } }";
    run(
        Mode::Worker,
        |s| worker(s.workers(1).setting("deadline", "\"2s\"").expect_log("past the deadline"), code),
        |site| {
            let first = answer_in_time(site, "/");
            assert_eq!(site.get("/?during=1").status, 504);
            let second = answer_in_time(site, "/?after=1");
            assert_ne!(second, first);
            assert_ne!(answer_in_time(site, "/"), second, "the request waits for the next worker");
        },
    );
}

/// The response to a request that does not wait: if the machine stalls for as long as the deadline, it is 504.
fn answer_in_time(site: &Site, target: &str) -> String {
    let mut answer = site.get(target);
    for _ in 0..10 {
        if answer.status != 504 {
            break;
        }
        answer = site.get(target);
    }
    answer.expect(200).text()
}

#[test]
fn a_pool_of_workers_grows_while_requests_wait_and_shrinks_when_idle() {
    let code = php!("pools/a_pool_of_workers_grows_while_requests_wait_and_shrinks_when_idle.php");
    run(
        Mode::Classic,
        |s| {
            s.more_processes(2)
                .setting("pool.app.mode", "\"worker\"")
                .setting("pool.app.script", "\"../root/app.php\"")
                .setting("pool.app.workers", "\"1-3\"")
                .setting("rule", r#"[{ path = "/app*", pool = "app" }]"#)
                .php("app.php", code)
        },
        |site| {
            let gate = site.gate("g");
            let mut first = site.conn();
            first.send(Request::get("/app?hold=1").bytes());
            let held = gate.wait();
            // It would wait for ever if there were only one worker.
            let other = site.get_ok("/app");
            let workers = || {
                let status = site.howdah().status();
                let pools = status["pools"].as_array().unwrap();
                pools.iter().find(|pool| pool["name"] == "app").unwrap()["workers"].as_array().unwrap().len()
            };
            // An idle worker stays for ten seconds.
            assert!(workers() > 1);
            held.release();
            assert_ne!(first.response("GET").expect(200).text(), other);
            assert!(eventually(PATIENCE * 2, || workers() == 1), "{} workers are left", workers());
        },
    );
}

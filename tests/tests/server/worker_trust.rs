//! Scripts, and code that has compromised its worker, must not be able to harm others through the server.

use howdah_tests::process::{self, PATIENCE, children, eventually};
use howdah_tests::{Conn, Request, Site, php, scenario, script_scenario};
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

// --- bodies ------------------------------------------------------------------------------------------------------------

const SUM: &str = "$body = file_get_contents('php://input'); echo strlen($body), ' ', crc32($body);";

/// Posts bodies of one size over two connections; returns the statuses other than 200.
fn post(site: &Site, posts: usize, bytes: usize) -> Vec<u16> {
    let (left, failed) = (AtomicUsize::new(posts), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for byte in [b'a', b'b'] {
            let (left, failed) = (&left, &failed);
            scope.spawn(move || {
                let mut conn = site.conn();
                let body = vec![byte; bytes];
                let mut sum = None;
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
                    let request = Request::post("/sum.php", "text/plain", &body);
                    let response = conn.exchange(&request);
                    if response.status == 200 {
                        let text = response.text();
                        assert!(text.starts_with(&format!("{bytes} ")), "{text}");
                        assert_eq!(*sum.get_or_insert_with(|| text.clone()), text);
                    } else {
                        failed.lock().unwrap().push(response.status);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap()
}

/// Bodies that a process of the server still has open: in memory files, or in unnamed files.
fn open_bodies(site: &Site) -> Vec<String> {
    let mut found = Vec::new();
    for process in site.howdah().processes() {
        for (kind, count) in process::descriptors(process.pid) {
            if kind.contains("memfd:howdah-body") || kind.contains("/tmp/") && kind.ends_with("(deleted)") {
                found.push(format!("{} has {count} of {kind}", process.pid));
            }
        }
    }
    found
}

// Regression: descriptors of requests that had been queued behind a slow one and were taken back stayed in its worker's
// socket, with their files. First the disk was full, then the socket, and requests got 500.
script_scenario!(
    uploads_beside_slow_requests_all_arrive_and_leave_nothing,
    howdah_only = "inspects the server's processes",
    |s| s
        .workers(3)
        .ini("opcache.enable", "0")
        .php("slow.php", "require 'gate.php'; gate('slow' . $_GET['n']); echo 'slow';")
        .php("sum.php", SUM),
    |site| {
        let gates = [site.gate("slow0"), site.gate("slow1")];
        let mut slow: Vec<Conn> = Vec::new();
        for n in 0..2 {
            let mut conn = site.conn();
            conn.send(Request::get(&format!("/slow.php?n={n}")).bytes());
            slow.push(conn);
        }
        let held: Vec<_> = gates.iter().map(howdah_tests::gate::Gate::wait).collect();
        assert_eq!(post(site, 900, 40_000), [0_u16; 0]);
        assert_eq!(post(site, 40, 2_000_000), [0_u16; 0]);
        // Clients that leave when their request is complete, or in the middle of it.
        for part in [400_000, 300_000] {
            for _ in 0..20 {
                let bytes = Request::post("/sum.php", "text/plain", vec![b'x'; 400_000]).bytes();
                let mut conn = site.conn();
                conn.send(&bytes[..bytes.len().min(part + 200)]);
                conn.reset();
            }
        }
        let mut left = Vec::new();
        let gone = eventually(PATIENCE, || {
            left = open_bodies(site);
            left.is_empty()
        });
        assert!(gone, "{left:?}");
        held.into_iter().for_each(howdah_tests::gate::Held::release);
        for mut conn in slow {
            assert_eq!(conn.response("GET").expect(200).text(), "slow");
        }
        assert_eq!(post(site, 20, 40_000), [0_u16; 0]);
    },
);

// --- time ----------------------------------------------------------------------------------------------------------------

// Regression: PHP kills a process whose script does not return from a C function within hard_timeout; a GET was run
// three times.
script_scenario!(
    a_script_that_stays_in_a_native_call_past_its_time_limit_is_502_and_runs_once,
    |s| {
        s.expect_log("past max_execution_time")
            .php(
                "native.php",
                php!("worker_trust/a_script_that_stays_in_a_native_call_past_its_time_limit_is_502_and_runs_once.php"),
            )
            .php("ok.php", "echo 'ok';")
    },
    |site| {
        assert_eq!(site.get("/native.php").status, 502);
        assert_eq!(site.marks("tries"), 1);
        assert_eq!(site.get_ok("/ok.php"), "ok");
    },
);

// --- processes that scripts leave behind ---------------------------------------------------------------------------------

/// Starts processes by all means available to scripts; each writes its process id to a file.
const STARTS: &str = php!("worker_trust/starts.php");

fn noted(site: &Site, name: &str) -> u32 {
    let path = site.place().top.join("marks").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}")).parse().unwrap()
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat[stat.rfind(')').unwrap_or(0)..].starts_with(") Z")
}

script_scenario!(
    background_processes_outlive_their_request_but_not_the_server,
    howdah_only = "PHP-FPM leaves that to the service manager",
    |s| s.workers(1).php("start.php", STARTS).php("ok.php", "echo getmypid();"),
    |site| {
        assert_eq!(site.get_ok("/start.php"), "started");
        assert_eq!(site.get_ok("/start.php"), "started");
        let worker: u32 = site.get_ok("/ok.php").parse().unwrap();
        process::signal(worker, Signal::KILL);
        assert!(eventually(PATIENCE, || site.get_ok("/ok.php") != worker.to_string()));
        for name in ["exec", "setsid", "proc_open"] {
            assert!(lives(noted(site, name)), "{name}");
        }
        // At the server's end the harness checks what is left.
    },
);

scenario!(
    background_processes_end_with_a_killed_zygote_or_server,
    howdah_only = "PHP-FPM leaves that to the service manager",
    |s| s
        .workers(1)
        .expect_log("zygote exited unexpectedly")
        .allow_log("cannot order a worker")
        .allow_log("ended before its first request")
        .expect_exit(None)
        .php("start.php", STARTS)
        .php("parent.php", "echo posix_getppid();"),
    |site| {
        assert_eq!(site.get_ok("/start.php"), "started");
        let zygote: u32 = site.get_ok("/parent.php").parse().unwrap();
        let started = ["exec", "setsid", "proc_open"].map(|name| noted(site, name));
        process::signal(zygote, Signal::KILL);
        let all_ended = || !started.iter().any(|&pid| lives(pid));
        assert!(eventually(PATIENCE, all_ended), "of the zygote's: {started:?}");
        assert!(eventually(PATIENCE, || site.get("/start.php").status == 200));
        site.howdah().signal(Signal::KILL);
    },
);

scenario!(
    background_processes_end_with_their_generation,
    howdah_only = "a reload of PHP-FPM leaves them",
    |s| s.workers(1).php("start.php", STARTS),
    |site| {
        assert_eq!(site.get_ok("/start.php"), "started");
        let started = ["exec", "setsid", "proc_open"].map(|name| noted(site, name));
        assert!(started.iter().all(|&pid| lives(pid)));
        assert!(site.howdah().command(&["reload"]).status.success());
        assert!(eventually(PATIENCE, || !started.iter().any(|&pid| lives(pid))), "{started:?}");
    },
);

scenario!(
    processes_that_ended_long_after_their_scripts_are_reaped,
    howdah_only = "PHP-FPM leaves that to the service manager",
    |s| s.workers(1).php("short.php", "exec('sleep 0.05 >/dev/null 2>&1 &'); echo posix_getppid();"),
    |site| {
        let mut zygote = 0;
        for _ in 0..5 {
            zygote = site.get_ok("/short.php").parse().unwrap();
        }
        assert!(eventually(PATIENCE, || children(zygote).len() == 1 && process::zombies(zygote).is_empty()));
    },
);

/// A child that searches for any means to act as its worker, and writes its findings to a file.
const CHILD: &str = php!("worker_trust/child.php");

script_scenario!(
    a_child_that_a_script_left_behind_cannot_answer_for_its_worker,
    howdah_only = "inspects the worker's child",
    not_async = "its workers have their own sockets and eventfds",
    |s| s
        .workers(1)
        .setting("deadline", "\"6s\"")
        .expect_log("past the deadline")
        .php("fork.php", CHILD)
        .php("ok.php", "echo 'mine';"),
    |site| {
        let mut conn = site.conn();
        conn.send(Request::get("/fork.php?stop=1&x=y").close().bytes());
        let found = site.place().top.join("marks/found");
        assert!(eventually(PATIENCE, || found.exists()));
        let text = std::fs::read_to_string(&found).unwrap();
        assert!(text.starts_with("[] "), "{text}");
        let pids: Vec<u32> = text.split(' ').skip(1).map(|pid| pid.parse().unwrap()).collect();
        // The worker may be stopped before its response is sent.
        let next = site.get("/ok.php");
        assert!(next.status == 504 || next.text() == "mine", "{} {}", next.status, next.text());
        assert!(!next.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("x-left")));
        // Both end, the child with its worker.
        assert!(eventually(PATIENCE, || !pids.iter().any(|&pid| lives(pid))), "{pids:?}");
        assert!(eventually(PATIENCE, || site.get("/ok.php").status == 200));
    },
);

// --- native code in a worker ---------------------------------------------------------------------------------------------

/// Fills every descriptor, and makes it blocking if possible.
const JAM: &str = php!("worker_trust/jam.php");

// Regression: the server's write to a full eventfd, which a worker had made blocking, never returned, and blocked the
// whole server.
script_scenario!(
    a_worker_that_blocks_its_shared_descriptors_delays_no_one,
    howdah_only = "the reference has other descriptors",
    |s| s
        .workers(2)
        .ini("ffi.enable", "true")
        .setting("grace", "\"2s\"")
        .setting("deadline", "\"6s\"")
        .expect_exit(None)
        .allow_log("past the deadline")
        .allow_log("worker_died")
        .allow_log("worker_broken")
        .allow_log("stopping")
        .allow_log("\u{fffd}")
        .php("jam.php", JAM)
        .php("ok.php", "echo 'ok';"),
    |site| {
        let mut jammed: Vec<Conn> = Vec::new();
        for round in 0..3 {
            let mut conn = site.conn();
            conn.send(Request::get(&format!("/jam.php?n={round}")).close().bytes());
            jammed.push(conn);
            for _ in 0..20 {
                // The response depends on what the worker did to itself; the server keeps running.
                let mut conn = site.conn();
                conn.send(Request::get("/ok.php").close().bytes());
                jammed.push(conn);
                assert_eq!(site.get_ok("/ready.txt"), "ready\n");
            }
            assert!(site.howdah().command(&["status"]).status.success());
        }
        site.howdah().signal(Signal::TERM);
    },
);

/// Writes what an honest worker never writes, namely that its call was not begun, and then dies.
const UNBEGIN: &str = php!("worker_trust/unbegin.php");

// Regression: the server believed it, and the call ran until its client left.
script_scenario!(
    a_workers_claim_not_to_have_begun_its_request_is_not_trusted,
    howdah_only = "the reference has no lanes",
    not_async = "its requests are in the worker's private memory",
    |s| s
        .workers(2)
        .ini("ffi.enable", "true")
        .expect_log("worker_died")
        .php("evil.php", UNBEGIN)
        .php("ok.php", "echo 'ok';"),
    |site| {
        assert_eq!(site.send(&Request::form("/evil.php", "a=1")).status, 502);
        assert_eq!(site.marks("tries"), 1);
        assert_eq!(site.get("/evil.php").status, 502);
        assert!(site.marks("tries") <= 4, "{}", site.marks("tries"));
        // With other requests in between.
        std::thread::scope(|scope| {
            let site = &*site;
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(site.send(&Request::form("/evil.php", "a=1")).status, 502));
                scope.spawn(|| assert_eq!(site.get_ok("/ok.php"), "ok"));
            }
        });
        assert!(site.marks("tries") <= 6, "{}", site.marks("tries"));
    },
);

// --- requests that kill their workers ------------------------------------------------------------------------------------

const KILL: &str = "require 'gate.php'; mark('tries'); posix_kill(getmypid(), 9); sleep(5);";

scenario!(
    how_often_a_request_is_run_again_is_a_setting,
    howdah_only = "nginx answers 502",
    |s| s.setting("replay", "0").expect_log("worker_died").php("kill.php", KILL).php("ok.php", "echo 'ok';"),
    |site| {
        assert_eq!((site.get("/kill.php").status, site.marks("tries")), (502, 1));
        assert_eq!(site.get_ok("/ok.php"), "ok");
    },
);

scenario!(
    requests_that_kill_their_workers_are_refused_for_a_while_and_others_are_not,
    howdah_only = "the reference has no such memory",
    |s| s.workers(3).expect_log("worker_died").php("kill.php", KILL).php("ok.php", "usleep(200); echo 'ok';"),
    |site| {
        let stop = AtomicBool::new(false);
        let site = &*site;
        std::thread::scope(|scope| {
            let others = scope.spawn(|| {
                let mut conn = site.conn();
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(conn.exchange(&Request::get("/ok.php")).expect(200).text(), "ok");
                }
            });
            for n in 0..200 {
                assert_eq!(site.get(&format!("/kill.php?n={n}")).status, 502);
            }
            stop.store(true, Ordering::Relaxed);
            others.join().unwrap();
        });
        let tries = site.marks("tries");
        assert!(tries < 100, "200 requests killed {tries} workers");
        let _ = site.wait_for_log(&["kill their workers", "GET /kill.php"]);
        let status = site.howdah().status();
        assert!(status["pools"][0]["faults"]["quarantined"].as_u64() > Some(0), "{status}");
        // Once it is repaired, the next request after the pause detects that.
        std::fs::write(site.file("kill.php"), "<?php echo 'repaired';").unwrap();
        assert!(eventually(PATIENCE, || site.get("/kill.php").status == 200));
        assert_eq!(site.get_ok("/kill.php"), "repaired");
    },
);

script_scenario!(
    workers_killed_from_outside_lose_no_request,
    howdah_only = "nginx answers 502",
    |s| s.workers(3).allow_log("ended before").php("ok.php", "usleep(300); echo $_GET['n'];"),
    |site| {
        let served = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let (stop, site) = (AtomicBool::new(false), &*site);
        let zygote = children(site.howdah().pid())[0];
        std::thread::scope(|scope| {
            for served in &served {
                let stop = &stop;
                scope.spawn(move || {
                    let mut conn = site.conn();
                    while !stop.load(Ordering::Relaxed) {
                        let n = served.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(
                            conn.exchange(&Request::get(&format!("/ok.php?n={n}"))).expect(200).text(),
                            n.to_string()
                        );
                    }
                });
            }
            let storm = scope.spawn(|| {
                for kill in 0..60 {
                    // Both clients are served again, so no request meets three kills.
                    let before = served.each_ref().map(|n| n.load(Ordering::Relaxed));
                    let moves =
                        || served.iter().zip(before).all(|(now, before)| now.load(Ordering::Relaxed) > before + 1);
                    assert!(eventually(PATIENCE, moves));
                    let workers = children(zygote);
                    if let Some(&worker) = workers.get(kill % workers.len().max(1)) {
                        process::signal(worker, Signal::KILL);
                    }
                }
            });
            let outcome = storm.join();
            stop.store(true, Ordering::Relaxed);
            outcome.unwrap();
        });
        let status = site.howdah().status();
        assert_eq!(status["pools"][0]["faults"], serde_json::json!({}));
    },
);

// --- floods --------------------------------------------------------------------------------------------------------------

script_scenario!(
    a_response_with_thirty_thousand_headers_is_refused,
    howdah_only = "nginx's limits are different",
    |s| s
        .allow_log("worker_broken")
        .php("many.php", "for ($i = 0; $i < $_GET['n']; $i++) { header(\"X-$i: v\"); } echo 'done';")
        .php("long.php", "for ($i = 0; $i < 200; $i++) { header(\"X-$i: \" . str_repeat('v', 8000)); } echo 'done';")
        .php("ok.php", "echo 'ok';"),
    |site| {
        assert_eq!(site.get_ok("/many.php?n=50"), "done");
        for target in ["/many.php?n=1200", "/many.php?n=30000", "/long.php"] {
            assert_eq!(site.get(target).status, 502, "{target}");
            assert_eq!(site.get_ok("/ok.php"), "ok");
        }
    },
);

script_scenario!(
    a_script_that_floods_the_log_loses_only_log_lines,
    howdah_only = "the log is Howdah's",
    |s| s
        .ini("log_errors", "1")
        .php("flood.php", "for ($i = 0; $i < 30000; $i++) { error_log(\"line $i\"); } echo 'done';")
        .php("ok.php", "echo 'ok';"),
    |site| {
        assert_eq!(site.get_ok("/flood.php"), "done");
        assert_eq!(site.get_ok("/ok.php"), "ok");
        let _ = site.wait_for_log(&["lines were dropped"]);
        assert!(site.log().matches("line ").count() < 25_000);
    },
);

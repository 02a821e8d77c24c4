//! PHP processes that crash, hang or are all busy: one request may fail, the others must not notice.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Request, Site, php, scenario};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Kills itself with a signal in the first requests, as many as configured.
const DIE: &str = php!("crash/die.php");

/// Short enough for tests to wait for it, and longer than any short script takes, even on a machine that stalls for
/// seconds.
const DEADLINE: &str = "\"6s\"";

scenario!(a_get_whose_worker_dies_is_run_again, howdah_only = "nginx answers 502", |s| s.php("die.php", DIE), |site| {
    for (round, signal) in [11, 9, 6, 7].into_iter().enumerate() {
        std::fs::remove_file(site.place().top.join("marks/tries")).ok();
        let response = site.get(&format!("/die.php?signal={signal}")).expect(200);
        assert_eq!(response.text(), "alive", "round {round}");
        assert_eq!(site.marks("tries"), 2);
    }
});

scenario!(
    a_post_whose_worker_dies_is_502_and_runs_once,
    howdah_only = "the log's words are Howdah's",
    |s| s.expect_log("worker_died").php("die.php", DIE).php("ok.php", "echo 'ok';"),
    |site| {
        for (round, signal) in [(1, 11), (2, 9)] {
            let response = site.send(&Request::form(&format!("/die.php?times=100&signal={signal}"), "a=1"));
            assert_eq!((response.status, site.marks("tries")), (502, round));
            assert!(!response.text().contains("signal"), "the response names no internal details");
            assert_eq!(site.get_ok("/ok.php"), "ok");
        }
        let _ = site.wait_for_log(&["ERROR", "POST /die.php"]);
    },
);

scenario!(
    a_get_that_always_kills_its_worker_fails,
    howdah_only = "nginx responds at once",
    |s| s.expect_log("worker_died").php("die.php", DIE).php("ok.php", "echo 'ok';"),
    |site| {
        assert_eq!(site.get("/die.php?times=100&signal=11").status, 502);
        assert!(site.marks("tries") <= 4, "{} tries", site.marks("tries"));
        assert_eq!(site.get_ok("/ok.php"), "ok");
    },
);

scenario!(
    a_begun_response_is_cut_off,
    howdah_only = "the log's words are Howdah's",
    |s| s
        .ini("output_buffering", "0")
        .expect_log("worker_died")
        .php("b.php", "require 'gate.php'; echo 'begun'; flush(); gate('g'); posix_kill(getmypid(), 9); sleep(5);"),
    |site| {
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/b.php").bytes());
        assert_eq!(conn.head("GET").status, 200);
        conn.read_until("begun");
        gate.release();
        let mut ended_well = false;
        loop {
            match conn.try_read_some() {
                Ok(Some(_)) => {}
                Ok(None) => {
                    ended_well = true;
                    break;
                }
                Err(_) => break,
            }
        }
        assert!(!ended_well, "a client must detect that the response is incomplete");
        assert_eq!(site.get_ok("/ready.txt"), "ready\n");
    },
);

scenario!(
    others_never_notice_a_storm_of_crashes,
    howdah_only = "the reference answers 502",
    |s| s
        .workers(3)
        .expect_log("worker_died")
        .php("die.php", "posix_kill(getmypid(), 11); sleep(5);")
        .php("ok.php", "usleep(500); echo $_GET['n'];"),
    |site| {
        let stop = AtomicBool::new(false);
        let served = AtomicU64::new(0);
        let site = &*site;
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (stop, served) = (&stop, &served);
                scope.spawn(move || {
                    let mut conn = site.conn();
                    let mut n = 0;
                    while !stop.load(Ordering::Relaxed) {
                        n += 1;
                        let mark = format!("{thread}-{n}");
                        let response = conn.exchange(&Request::get(&format!("/ok.php?n={mark}"))).expect(200);
                        assert_eq!(response.text(), mark);
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let storm = scope.spawn(|| {
                for _ in 0..10 {
                    // Requests are in flight each time.
                    let before = served.load(Ordering::Relaxed);
                    assert!(eventually(PATIENCE, || served.load(Ordering::Relaxed) > before + 5));
                    for _ in 0..4 {
                        assert_eq!(site.send(&Request::form("/die.php", "")).status, 502);
                    }
                }
            });
            let outcome = storm.join();
            stop.store(true, Ordering::Relaxed);
            outcome.unwrap();
        });
    },
);

scenario!(
    a_request_past_its_deadline_is_504_with_the_php_stack_in_the_log,
    howdah_only = "nginx's and PHP-FPM's timeouts work differently",
    |s| s
        .workers(1)
        .setting("deadline", DEADLINE)
        .expect_log("past the deadline")
        .php("slow.php", "function inner() { while (true) { usleep(1000); } } function outer() { inner(); } outer();")
        .php("ok.php", "echo 'ok';"),
    |site| {
        let response = site.get("/slow.php?which=this");
        assert_eq!(response.status, 504);
        let line = site.wait_for_log(&["past the deadline", "GET /slow.php?which=this"]);
        for part in ["inner", "outer", "slow.php"] {
            assert!(line.contains(part), "{line}");
        }
        assert_eq!(site.get_ok("/ok.php"), "ok");
    },
);

scenario!(
    a_deadline_ends_a_script_that_blocks_in_the_kernel,
    howdah_only = "nginx's and PHP-FPM's timeouts work differently",
    |s| s
        .workers(1)
        .setting("deadline", DEADLINE)
        .expect_log("past the deadline")
        .php("slow.php", "require 'gate.php'; gate('never');")
        .php("ok.php", "echo 'ok';"),
    |site| {
        let _gate = site.gate("never");
        assert_eq!(site.send(&Request::form("/slow.php", "")).status, 504);
        assert_eq!(site.get_ok("/ok.php"), "ok");
    },
);

scenario!(
    a_script_that_sleeps_past_its_deadline_does_not_continue,
    howdah_only = "nginx's and PHP-FPM's timeouts work differently",
    |s| s
        .workers(1)
        .setting("deadline", DEADLINE)
        .expect_log("past the deadline")
        // The signal for the stack must not wake the script: it would respond with 200 and half of its work done.
        .php("slow.php", "sleep(20); file_put_contents('went_on', ''); echo 'rested';"),
    |site| {
        assert_eq!(site.send(&Request::form("/slow.php", "")).status, 504);
        let _ = site.wait_for_log(&["past the deadline", "sleep()"]);
        assert!(!site.file("went_on").exists());
    },
);

/// Number of requests that wait for the only worker.
fn waiting(site: &Site) -> u64 {
    let status = site.howdah().status();
    status["pools"][0]["queued"].as_u64().unwrap()
}

scenario!(
    a_full_queue_is_503_with_retry_after,
    howdah_only = "the queue is Howdah's own",
    |s| s
        .workers(1)
        .setting("queue", "2")
        .php("hold.php", "require 'gate.php'; gate('g' . $_GET['n']); echo 'served ', $_GET['n'];"),
    |site| {
        let gates: Vec<_> = (0..8).map(|n| site.gate(&format!("g{n}"))).collect();
        let mut first = site.conn();
        first.send(Request::get("/hold.php?n=0").close().bytes());
        let held = gates[0].wait();
        let refused = AtomicU64::new(0);
        let served = AtomicU64::new(0);
        let site = &*site;
        std::thread::scope(|scope| {
            // One runs; the number that wait depends on the queue and the lane. The rest must be refused.
            for n in 1..8 {
                let (refused, served) = (&refused, &served);
                scope.spawn(move || {
                    let response = site.get(&format!("/hold.php?n={n}"));
                    match response.status {
                        200 => assert_eq!(response.text(), format!("served {n}")),
                        status => assert_eq!(status, 503),
                    }
                    (if response.status == 200 { served } else { refused }).fetch_add(1, Ordering::Relaxed);
                });
            }
            // All of them have arrived, and each either waits or was refused.
            let full =
                eventually(PATIENCE, || waiting(site) >= 2 && waiting(site) + refused.load(Ordering::Relaxed) == 7);
            assert!(full, "{} wait, {} were refused", waiting(site), refused.load(Ordering::Relaxed));
            let answer = site.get("/hold.php?n=0");
            assert_eq!(answer.status, 503);
            assert!(answer.header("retry-after").is_some_and(|v| v.parse::<u32>().is_ok()), "{:?}", answer.headers);
            assert_eq!(site.get_ok("/ready.txt"), "ready\n", "static files need no worker");
            held.release();
            assert_eq!(first.response("GET").expect(200).text(), "served 0");
            let all = eventually(PATIENCE, || {
                for gate in &gates[1..] {
                    if let Some(held) = gate.script_is_here() {
                        held.release();
                    }
                }
                refused.load(Ordering::Relaxed) + served.load(Ordering::Relaxed) == 7
            });
            assert!(all, "some requests got no response");
        });
        let served = served.load(Ordering::Relaxed);
        assert!((2..=4).contains(&served), "{served} of 7 waited");
    },
);

scenario!(
    a_worker_that_exits_is_replaced,
    howdah_only = "max_requests is set per pool",
    |s| s.workers(2).setting("max_requests", "5").php("pid.php", "echo getmypid();"),
    |site| {
        let mut conn = site.conn();
        let pids: std::collections::BTreeSet<String> =
            (0..60).map(|_| conn.exchange(&Request::get("/pid.php")).expect(200).text()).collect();
        assert!(pids.len() >= 6, "{pids:?}");
    },
);

scenario!(
    a_zygote_that_dies_is_replaced,
    howdah_only = "the reference has no zygote",
    |s| s
        .workers(2)
        .expect_log("zygote exited unexpectedly")
        .allow_log("cannot order a worker")
        // Its workers die with it: possibly before their first system call, possibly during one.
        .allow_log("ended before its first request")
        .allow_log("worker died")
        .php("ok.php", "echo 'ok';")
        .php("parent.php", "echo posix_getppid();"),
    |site| {
        let zygote: u32 = site.get_ok("/parent.php").parse().unwrap();
        assert!(site.howdah().processes().iter().any(|p| p.pid == zygote));
        howdah_tests::process::signal(zygote, rustix::process::Signal::KILL);
        // A worker that is about to die with its zygote also has another parent, but none of the server's processes.
        let back = eventually(PATIENCE, || {
            let now = site.get("/parent.php").text().parse::<u32>();
            now.is_ok_and(|now| now != zygote && site.howdah().processes().iter().any(|p| p.pid == now))
        });
        assert!(back, "no new zygote");
        assert_eq!(site.get_ok("/ok.php"), "ok");
    },
);

scenario!(
    a_worker_killed_while_its_answer_is_on_its_way_does_not_harm_it,
    howdah_only = "under nginx another process sends the response",
    |s| s
        .workers(1)
        .allow_log("ended")
        .php("last.php", php!("crash/a_worker_killed_while_its_answer_is_on_its_way_does_not_harm_it.php")),
    |site| {
        for round in 0..10 {
            let mut conn = site.conn();
            conn.send(Request::get("/last.php").bytes());
            let body = conn.response("GET").expect(200).body;
            assert!(body.len() == 100_000 && body.chunks(10).all(|part| part == b"0123456789"), "round {round}");
        }
    },
);

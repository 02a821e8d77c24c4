//! Order of requests and their waits for workers: shares of routes and of slow requests, clients that want more than
//! others, queues with time limits, pools that grow and shrink. `howdah-pool`'s simulation tests the scheduler's
//! handling of times; here nothing depends on the clock except waits for a timeout.

use howdah_tests::gate::Held;
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Conn, Request, Site, php, scenario, script_scenario};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Waits until this many requests wait for a worker.
fn wait_for_queue(site: &Site, requests: u64) {
    let waits = || site.howdah().pool()["queued"].as_u64().unwrap();
    assert!(eventually(PATIENCE, || waits() == requests), "{} of {requests} wait", waits());
}

fn send(site: &Site, target: &str) -> Conn {
    let mut conn = site.conn();
    conn.send(Request::get(target).bytes());
    conn
}

/// Sends a request that waits at a gate with this name.
fn hold(site: &Site, target: &str, gate: &str) -> (Conn, Held) {
    let gate = site.gate(gate);
    let conn = send(site, target);
    (conn, gate.wait())
}

const HOLD: &str = "require 'gate.php'; gate($_GET['g']); echo 'held';";

scenario!(
    a_route_with_a_share_leaves_workers_for_the_rest,
    howdah_only = "shares of routes are Howdah's own",
    |s| s
        .workers(3)
        .setting("rule", r#"[{ path = "/report*", pool = "default", workers = 1 }]"#)
        .php("report.php", HOLD)
        .php("ok.php", "echo 'ok';"),
    |site| {
        let (mut first, held) = hold(site, "/report.php?g=a", "a");
        let gate = site.gate("b");
        let mut others: Vec<_> = (0..4).map(|_| send(site, "/report.php?g=b")).collect();
        wait_for_queue(site, 4);
        // Two workers are idle, and stay idle for these.
        for _ in 0..5 {
            assert_eq!(site.get_ok("/ok.php"), "ok");
        }
        assert!(gate.script_is_here().is_none(), "a second report runs");
        held.release();
        assert_eq!(first.response("GET").expect(200).text(), "held");
        for other in &mut others {
            gate.wait().release();
            assert_eq!(other.response("GET").expect(200).text(), "held");
        }
    },
);

scenario!(
    one_greedy_client_does_not_keep_a_modest_one_waiting,
    howdah_only = "PHP-FPM takes requests in the order in which they came",
    |s| s
        .workers(1)
        .setting("http.trusted_proxies", r#"["127.0.0.1"]"#)
        .php("next.php", "require 'gate.php'; echo mark('next');")
        .php("hold.php", HOLD),
    |site| {
        let (mut running, held) = hold(site, "/hold.php?g=a", "a");
        let ask = |address: &str| {
            let mut conn = site.conn();
            conn.send(Request::get("/next.php").header("X-Forwarded-For", address).bytes());
            conn
        };
        let mut greedy: Vec<_> = (0..40).map(|_| ask("192.0.2.1")).collect();
        wait_for_queue(site, 40);
        let mut modest: Vec<_> = (2..5).map(|n| ask(&format!("192.0.2.{n}"))).collect();
        wait_for_queue(site, 43);
        held.release();
        assert_eq!(running.response("GET").expect(200).text(), "held");
        let turn = |conn: &mut Conn| conn.response("GET").expect(200).text().parse::<u32>().unwrap();
        let turns: Vec<u32> = modest.iter_mut().map(turn).collect();
        assert!(turns.iter().all(|&turn| turn <= 6), "{turns:?}");
        let turns: Vec<u32> = greedy.iter_mut().map(turn).collect();
        assert!(turns.is_sorted(), "{turns:?}");
    },
);

scenario!(
    a_queue_of_thousands_refuses_no_request,
    howdah_only = "nginx refuses what does not fit into PHP-FPM's backlog",
    |s| s.workers(1).php("hold.php", HOLD).php("ok.php", "echo 'ok';"),
    |site| {
        let (mut running, held) = hold(site, "/hold.php?g=a", "a");
        let mut waiting: Vec<_> = (0..1500).map(|_| send(site, "/ok.php")).collect();
        wait_for_queue(site, 1500);
        held.release();
        assert_eq!(running.response("GET").expect(200).text(), "held");
        for conn in &mut waiting {
            assert_eq!(conn.response("GET").expect(200).text(), "ok");
        }
    },
);

scenario!(
    a_request_that_waited_too_long_is_refused_with_retry_after,
    howdah_only = "the queue is Howdah's own",
    |s| s
        .workers(1)
        .setting("queue_timeout", "\"300ms\"")
        .php("hold.php", HOLD)
        .php("late.php", "require 'gate.php'; mark('late'); echo 'late';"),
    |site| {
        let (mut running, held) = hold(site, "/hold.php?g=a", "a");
        let mut waiting: Vec<_> = (0..20).map(|_| send(site, "/late.php")).collect();
        for conn in &mut waiting {
            let refused = conn.response("GET").expect(503);
            assert!(refused.header("retry-after").is_some_and(|v| v.parse::<u32>().is_ok()), "{:?}", refused.headers);
        }
        held.release();
        assert_eq!(running.response("GET").expect(200).text(), "held");
        assert_eq!(site.marks("late"), 0, "a refused request does not run");
    },
);

scenario!(
    a_request_at_a_full_queue_waits_before_it_is_refused,
    howdah_only = "the queue is Howdah's own",
    |s| s
        .workers(1)
        .setting("queue", "1")
        .php("hold.php", HOLD)
        .php("late.php", "require 'gate.php'; mark('late'); echo 'late';"),
    |site| {
        let (mut running, held) = hold(site, "/hold.php?g=a", "a");
        let mut waiting = send(site, "/late.php");
        wait_for_queue(site, 1);
        let began = Instant::now();
        let mut others = [send(site, "/late.php"), site.conn()];
        // The client keeps the body, so the server need not delay its refusal.
        others[1].send(Request::form("/late.php", "a=b").bytes());
        for conn in &mut others {
            let refused = conn.response("GET").expect(503);
            assert!(refused.header("retry-after").is_some_and(|v| v.parse::<u32>().is_ok()), "{:?}", refused.headers);
        }
        // The machine determines how much longer.
        assert!(began.elapsed() >= Duration::from_millis(900), "refused after {:?}", began.elapsed());
        held.release();
        assert_eq!(running.response("GET").expect(200).text(), "held");
        assert_eq!(waiting.response("GET").expect(200).text(), "late");
        assert_eq!(site.marks("late"), 1, "a refused request does not run");
    },
);

scenario!(
    in_overload_every_request_runs_once_or_is_refused_and_connections_persist,
    howdah_only = "the queue is Howdah's own",
    |s| s
        .workers(1)
        .setting("queue", "8")
        .setting("queue_timeout", "\"1s\"")
        .php("hold.php", HOLD)
        .php("slow.php", "require 'gate.php'; mark('run'); usleep(20000); echo 'ok';"),
    |site| {
        let site = &*site;
        let (mut running, held) = hold(site, "/hold.php?g=a", "a");
        let refused = AtomicUsize::new(0);
        let client = || {
            let mut conn = site.conn();
            let ask = |_| {
                let response = conn.exchange(&Request::get("/slow.php"));
                let served = response.status == 200;
                assert!(served || response.status == 503, "{}: {}", response.status, response.text());
                assert!(served || response.header("retry-after").is_some(), "{:?}", response.headers);
                refused.fetch_add(usize::from(!served), Relaxed);
                served
            };
            (0..5).map(ask).filter(|&served| served).count()
        };
        let served: usize = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..60).map(|_| scope.spawn(client)).collect();
            let is_overload = eventually(PATIENCE, || refused.load(Relaxed) > 0);
            held.release();
            assert!(is_overload, "no request is refused");
            clients.into_iter().map(|client| client.join().unwrap()).sum()
        });
        assert_eq!(running.response("GET").expect(200).text(), "held");
        assert_eq!(served + refused.load(Relaxed), 300);
        assert_eq!(site.marks("run"), served as u64);
        assert_eq!(site.get_ok("/slow.php"), "ok");
    },
);

scenario!(
    a_pool_grows_by_as_many_workers_as_requests_wait_for_and_shrinks_after_the_time_set,
    howdah_only = "PHP-FPM's pools are configured differently",
    |s| s.workers(1).grows_to(5).time("shrink_after", "500ms").php("hold.php", HOLD),
    |site| {
        let gates: Vec<_> = (0..5).map(|n| site.gate(&format!("g{n}"))).collect();
        let mut conns: Vec<_> = (0..5).map(|n| send(site, &format!("/hold.php?g=g{n}"))).collect();
        // Each is held until all have arrived: five workers run concurrently.
        let running =
            || site.howdah().pool()["workers"].as_array().unwrap().iter().filter(|w| w["busy"] == true).count();
        assert!(eventually(PATIENCE, || running() == 5), "{} requests run", running());
        let _ = site.wait_for_log(&["requests are waiting", "workers=5"]);
        for (conn, gate) in conns.iter_mut().zip(&gates) {
            gate.wait().release();
            assert_eq!(conn.response("GET").expect(200).text(), "held");
        }
        let workers = || site.howdah().pool()["workers"].as_array().unwrap().len();
        assert!(eventually(PATIENCE, || workers() == 1), "{} workers are left", workers());
    },
);

scenario!(
    the_next_worker_is_ready_before_a_worker_reaches_max_requests,
    howdah_only = "PHP-FPM starts the next child when the old one has ended",
    |s| s.workers(1).setting("max_requests", "20").php("pid.php", "echo getmypid();"),
    |site| {
        let mut conn = site.conn();
        let mut ask = || conn.exchange(&Request::get("/pid.php")).expect(200).text();
        let first: Vec<String> = (0..18).map(|_| ask()).collect();
        // It could serve two more, but a spare worker is ready now, so this one ends.
        let serves = |pid: &str| {
            let workers = site.howdah().pool()["workers"].clone();
            workers.as_array().unwrap().iter().any(|worker| worker["pid"].as_u64() == pid.parse().ok())
        };
        assert!(eventually(PATIENCE, || !serves(&first[0])), "{}", site.howdah().pool()["workers"]);
        let pids: std::collections::BTreeSet<String> = (0..40).map(|_| ask()).chain(first).collect();
        assert!(pids.len() >= 3, "{pids:?}");
        let workers = || site.howdah().pool()["workers"].as_array().unwrap().len();
        assert!(eventually(PATIENCE, || workers() == 1), "{} workers", workers());
    },
);

script_scenario!(
    requests_that_compute_give_way_to_short_ones,
    howdah_only = "PHP-FPM leaves all of it to the kernel",
    not_async = "a worker runs both kinds at once",
    |s| s
        .workers(1)
        .php("nice.php", "echo explode(' ', explode(') ', file_get_contents('/proc/self/stat'))[1])[16];")
        .php("compute.php", php!("scheduling/requests_that_compute_give_way_to_short_ones.php")),
    |site| {
        let nice = |target: &str| site.get_ok(target).parse::<i32>().unwrap();
        let own = nice("/nice.php");
        // The routes' durations are learned.
        let gives_way = eventually(PATIENCE, || {
            (0..8).for_each(|_| drop(site.get_ok("/nice.php")));
            nice("/compute.php") > own
        });
        assert!(gives_way, "requests that compute do not run with a higher nice value");
        if rustix::process::geteuid().is_root() {
            assert_eq!(nice("/nice.php"), own, "a short request runs with the original nice value");
        }
    },
);

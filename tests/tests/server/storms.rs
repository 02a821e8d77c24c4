//! Processes that are killed from outside, repeatedly and at any moment: clients wait, and no request is lost.
//!
//! A server cannot retry a request for ever, so it gives up a request during which three workers have died. The storms
//! below are as dense as that permits: processes are killed every 20 ms; until each client has a new response, two
//! workers, one template or four zygotes.

use howdah_tests::process::{PATIENCE, children, eventually, signal};
use howdah_tests::{Mode, Request, Setup, Site, php, repetitions, run, scenario, script_scenario};
use rustix::process::Signal;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const CLIENTS: usize = 12;
const INTERVAL: Duration = Duration::from_millis(20);

/// Number of requests in each storm.
fn requests() -> u64 {
    repetitions("HOWDAH_STORM_REQUESTS", 300, 10)
}

/// The processes from which workers are forked.
fn zygotes(site: &Site) -> Vec<u32> {
    children(site.howdah().pid())
}

/// The workers, and the template if there is one.
fn workers(site: &Site) -> Vec<u32> {
    zygotes(site).into_iter().flat_map(children).collect()
}

fn template(site: &Site) -> Option<u32> {
    let look = || site.howdah().try_status()?["pools"][0]["snapshot_template"].as_u64().map(|pid| pid as u32);
    if site.mode() != Some(Mode::Snapshot) {
        return None;
    }
    // There is none while the successor of a killed one boots, nor while its forks all serve and no worker is needed:
    // then workers are killed first.
    let mut found = None;
    let _ = eventually(Duration::from_secs(2), || {
        found = look();
        found.is_some()
    });
    found
}

/// Responses to clients so far.
#[derive(Default)]
struct Score {
    /// Number of responses to each client.
    answers: [AtomicU64; CLIENTS],
    stop: AtomicBool,
}

impl Score {
    fn total(&self) -> u64 {
        self.answers.iter().map(|n| n.load(Ordering::Relaxed)).sum()
    }

    /// Waits until all requests that are in flight now have ended: each client has got a response to a later one.
    fn turn(&self) {
        let before: Vec<u64> = self.answers.iter().map(|n| n.load(Ordering::Relaxed)).collect();
        let turned = eventually(PATIENCE, || {
            let moved = |(n, before): (&AtomicU64, &u64)| n.load(Ordering::Relaxed) >= before + 2;
            self.stop.load(Ordering::Relaxed) || self.answers.iter().zip(&before).all(moved)
        });
        assert!(turned, "no responses: {before:?}");
    }
}

/// Sends requests until the storm is over. GETs must succeed; POSTs too, or get 502, and none may run twice.
fn client(site: &Site, score: &Score, client: usize, posts: &mut HashMap<String, u16>) {
    let mut n = 0;
    while !score.stop.load(Ordering::Relaxed) {
        n += 1;
        let id = format!("{client}-{n}");
        if n % 4 == 0 {
            let response = site.send(&Request::form(&format!("/post.php?id={id}"), "a=1"));
            assert!(matches!(response.status, 200 | 502), "POST {id}: {}\n{}", response.status, site.log());
            assert!(response.status == 502 || response.text() == id, "{}", response.text());
            posts.insert(id, response.status);
        } else {
            let response = site.get(&format!("/get.php?id={id}"));
            assert_eq!(response.status, 200, "GET {id}: {}\n{}", response.text(), site.log());
            assert_eq!(response.text(), id);
        }
        score.answers[client].fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits for a zygote other than this one and kills it.
fn kill_next_zygote(site: &Site, last: &mut u32, with: Signal) {
    // Checked only once: the process may have ended at a second check.
    let other = eventually(PATIENCE, || match zygotes(site).first() {
        Some(&pid) if pid != *last => {
            *last = pid;
            true
        }
        _ => false,
    });
    assert!(other, "no other process was started");
    signal(*last, with);
}

/// Numbers of killed processes.
#[derive(Debug, Default)]
struct Killed {
    zygotes: u32,
    templates: u32,
    workers: u32,
}

/// Kills processes until enough requests have succeeded.
fn storm(site: &Site, score: &Score) -> Killed {
    let mut killed = Killed::default();
    let (mut dice, mut last) = (88_172_645_463_325_252_u64, 0);
    for round in 0.. {
        let has_all = round >= 6 && (killed.templates > 0 || site.mode() != Some(Mode::Snapshot) || round >= 60);
        if (score.total() >= requests() && has_all) || score.stop.load(Ordering::Relaxed) {
            break;
        }
        let template = if round % 6 == 3 { template(site) } else { None };
        if round % 6 == 5 {
            // A serving worker, and its successors while they boot.
            for _ in 0..4 {
                kill_next_zygote(site, &mut last, Signal::KILL);
                killed.zygotes += 1;
                std::thread::sleep(INTERVAL);
            }
        } else if let Some(template) = template {
            signal(template, Signal::KILL);
            killed.templates += 1;
        } else {
            for _ in 0..2 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let workers = workers(site);
                if let Some(&pid) = workers.get((dice >> 33) as usize % workers.len().max(1)) {
                    signal(pid, Signal::KILL);
                    killed.workers += 1;
                }
                std::thread::sleep(INTERVAL);
            }
        }
        score.turn();
    }
    killed
}

fn no_client_loses_a_request(site: &Site) {
    let score = Score::default();
    let mut posts = vec![HashMap::new(); CLIENTS];
    let killed = std::thread::scope(|scope| {
        let score = &score;
        let clients: Vec<_> = posts
            .iter_mut()
            .enumerate()
            .map(|(number, posts)| {
                scope.spawn(move || {
                    // A client that fails must not leave the storm waiting for it.
                    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        client(site, score, number, posts);
                    }));
                    score.stop.store(true, Ordering::Relaxed);
                    outcome
                })
            })
            .collect();
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| storm(site, score)));
        score.stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().unwrap().unwrap();
        }
        killed.unwrap()
    });
    let marks = std::fs::read_to_string(site.place().top.join("marks/posts")).unwrap();
    let mut ran: HashMap<&str, u32> = HashMap::new();
    marks.lines().for_each(|id| *ran.entry(id).or_default() += 1);
    for (id, status) in posts.iter().flatten() {
        let times = ran.get(id.as_str()).copied().unwrap_or(0);
        assert!(times == 1 || (times == 0 && *status == 502), "POST {id}: {status}, ran {times} times");
    }
    println!("{} answers; {killed:?}", score.total());
    assert!(killed.zygotes >= 4 && killed.workers >= 4, "{killed:?}");
    assert!(killed.templates > 0 || site.mode() != Some(Mode::Snapshot), "{killed:?}");
}

fn in_a_storm(setup: Setup) -> Setup {
    setup
        .workers(6)
        .setting("queue_timeout", "\"120s\"")
        .allow_log("zygote exited unexpectedly")
        .allow_log("worker_died")
        .php("get.php", "usleep(500); echo $_GET['id'];")
        .php("post.php", php!("storms/in_a_storm.php"))
}

script_scenario!(
    a_storm_of_kills_loses_no_request,
    howdah_only = "PHP-FPM's processes answer 502",
    in_a_storm,
    |site| no_client_loses_a_request(site),
);

script_scenario!(
    requests_wait_while_booting_processes_are_killed_repeatedly,
    howdah_only = "PHP-FPM's processes answer 502",
    |s| s
        .workers(2)
        .setting("queue_timeout", "\"120s\"")
        .allow_log("zygote exited unexpectedly")
        .php("a.php", "echo 'served';"),
    |site| {
        let site = &*site;
        for with in [Signal::KILL, Signal::TERM] {
            std::thread::scope(|scope| {
                let mut last = 0;
                let mut kill_next = || kill_next_zygote(site, &mut last, with);
                kill_next();
                // All of them arrive while no worker can serve.
                let waiting: Vec<_> = (0..8).map(|_| scope.spawn(|| site.get("/a.php"))).collect();
                (0..6).for_each(|_| kill_next());
                for answer in waiting {
                    let answer = answer.join().unwrap();
                    assert_eq!((answer.status, answer.text().as_str()), (200, "served"), "{with:?}\n{}", site.log());
                }
            });
        }
    },
);

scenario!(
    a_request_that_always_kills_its_zygote_fails,
    howdah_only = "the reference has no zygote",
    |s| s
        .workers(2)
        .allow_log("zygote exited unexpectedly")
        .allow_log("worker_died")
        .php("kill.php", "require 'gate.php'; mark('tries'); posix_kill(posix_getppid(), SIGKILL); sleep(60);")
        .php("ok.php", "echo 'ok';"),
    |site| {
        // The request or its path is refused first, depending on timing.
        assert_eq!(site.get("/kill.php").status, 502);
        let tries = site.marks("tries");
        assert!((2..=9).contains(&tries), "{tries} tries");
        assert_eq!(site.get_ok("/ok.php"), "ok");
        // A request that may not run twice does not.
        assert_eq!(site.send(&Request::form("/kill.php", "a=1")).status, 502);
        assert!(site.marks("tries") <= tries + 1);
        assert_eq!(site.get_ok("/ok.php"), "ok");
    },
);

/// A worker script whose first boots end like this.
fn boots_that_end(setup: Setup, times: u32, end: &str) -> Setup {
    setup.workers(1).script("worker.php").setting("queue_timeout", "\"120s\"").php(
        "worker.php",
        &format!(
            "require_once 'gate.php'; if (mark('boots') <= {times}) {{ {end} }}
                while (frankenphp_handle_request(function () {{ echo 'served'; }})) {{}}"
        ),
    )
}

const MODES: [Mode; 3] = [Mode::Worker, Mode::Snapshot, Mode::Async];

#[test]
fn a_boot_that_is_killed_from_outside_is_no_failed_boot() {
    for mode in MODES {
        for name in ["SIGKILL", "SIGTERM"] {
            let end = format!("posix_kill(getmypid(), {name}); sleep(100);");
            run(
                mode,
                |s| boots_that_end(s, 5, &end).expect_boot_failure(),
                |site| {
                    assert_eq!(site.get_ok("/worker.php/x"), "served", "{mode:?} {name}");
                    assert_eq!(site.marks("boots"), 6, "{mode:?} {name}");
                },
            );
        }
    }
}

#[test]
fn a_boot_that_crashes_is_a_failed_boot() {
    for mode in MODES {
        for end in
            ["posix_kill(getmypid(), SIGSEGV); sleep(100);", "posix_kill(getmypid(), SIGABRT); sleep(100);", "exit(1);"]
        {
            run(
                mode,
                |s| {
                    boots_that_end(s, 1_000_000, end)
                        .expect_boot_failure()
                        .expect_log("before it was ready")
                        .allow_log("ended before it called")
                        .expect_log("pool_down")
                },
                |site| {
                    // Far sooner than the queue's timeout: after the third failure no request waits.
                    assert_eq!(site.get("/worker.php/x").status, 503, "{mode:?} {end}");
                    assert!((3..=5).contains(&site.marks("boots")), "{mode:?} {end}: {}", site.marks("boots"));
                    assert_eq!(site.get("/worker.php/x").status, 503, "{mode:?} {end}");
                },
            );
        }
    }
}

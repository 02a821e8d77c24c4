//! Workers of a snapshot pool are forked from one process in which the application has booted, and still each is an
//! independent process: in its random numbers, locks, files and ids.

use howdah_tests::process::{PATIENCE, alive, eventually, signal, tree};
use howdah_tests::site::replace_file;
use howdah_tests::{Mode, Request, Setup, Site, in_each_way, php, run};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(super) const WORKERS: usize = 4;

/// A worker script that sets a mark when it boots; `handle` is the body of its handler.
pub(super) fn script(setup: Setup, boot: &str, handle: &str) -> Setup {
    setup.workers(WORKERS).script("worker.php").php(
        "worker.php",
        &format!(
            "require_once 'gate.php'; mark('boots'); $id = bin2hex(random_bytes(8)); $booter = getmypid(); {boot}
            $handle = function () {{ global $id, $booter; {handle} }};\nwhile (frankenphp_handle_request($handle)) {{}}"
        ),
    )
}

/// Responds with its process id, after a pause in which other workers get requests too.
const WHO: &str = php!("template/who.php");

pub(super) fn template(site: &Site) -> Option<u32> {
    site.howdah().pool()["snapshot_template"].as_u64().map(|pid| pid as u32)
}

/// The processes that serve.
pub(super) fn serving(site: &Site) -> BTreeSet<u32> {
    let pool = site.howdah().pool();
    let workers = pool["workers"].as_array().unwrap().iter().filter(|w| w["phase"] == "serving");
    workers.map(|w| w["pid"].as_u64().unwrap() as u32).collect()
}

pub(super) fn wait_for_workers(site: &Site) -> BTreeSet<u32> {
    assert!(eventually(PATIENCE, || serving(site).len() == WORKERS), "{}\n{}", site.howdah().pool(), site.log());
    serving(site)
}

/// Sends requests from several concurrent clients; returns all responses.
fn ask(site: &Site, clients: usize, times: usize, target: &str) -> Vec<String> {
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut conn = site.conn();
                for _ in 0..times {
                    let answer = conn.exchange(&Request::get(target)).expect(200).text();
                    answers.lock().unwrap().push(answer);
                }
            });
        }
    });
    answers.into_inner().unwrap()
}

/// Sends requests until each serving worker has responded; returns the responses as JSON. A worker with an outdated
/// boot never responds.
pub(super) fn ask_all(site: &Site) -> Vec<Value> {
    let mut wanted = wait_for_workers(site);
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    let complete = eventually(PATIENCE, || {
        let answers = ask(site, WORKERS * 2, 4, "/");
        all.extend(answers.iter().map(|text| serde_json::from_str::<Value>(text).unwrap()));
        // With a process per request the worker is the parent of the responding process.
        seen.extend(all.iter().flat_map(|a| [&a[1], &a[2]]).map(|pid| pid.as_u64().unwrap() as u32));
        wanted = serving(site);
        wanted.len() == WORKERS && seen.is_superset(&wanted)
    });
    assert!(complete, "{wanted:?} serve, {seen:?} have responded");
    all
}

in_each_way!(all_workers_share_one_boot, |s: Setup| script(s, "", WHO), |site| {
    let template = template(site).expect("status names the template");
    let answers = ask_all(site);
    let ids: BTreeSet<&str> = answers.iter().map(|a| a[0].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 1, "one boot");
    assert_eq!(site.marks("boots"), 1);
    assert!(answers.iter().all(|a| a[1].as_u64() != Some(u64::from(template))), "the template serves nothing");
    assert!(answers.iter().all(|a| a[1] == a[3]), "getmypid() is the process's own number");
    assert_eq!(site.howdah().pool()["snapshot_unshared"], Value::Null);
});

in_each_way!(
    warm_up_requests_run_once_for_all_workers,
    |s: Setup| script(s, "", "if ($_SERVER['REQUEST_URI'] === '/warm') mark('warm-ups');")
        .setting("warmup", "[\"/warm\"]"),
    |site| {
        wait_for_workers(site);
        // One at boot, two on the snapshot, and four of the check with two visitors.
        assert_eq!(site.marks("warm-ups"), 7);
    },
);

/// Every kind of random number, in the first requests of workers that were forked in the same state.
const DRAW: &str = php!("template/draw.php");

in_each_way!(
    no_random_value_comes_from_two_workers,
    |s: Setup| script(
        s,
        php!("template/no_random_value_comes_from_two_workers.php"),
        &format!("global $engine; usleep(500); {DRAW}"),
    )
    .setting("max_requests", "5")
    .allow_log("worker died"),
    |site| {
        let answers = ask(site, WORKERS * 2, 100, "/");
        let mut seen: Vec<HashSet<String>> = vec![HashSet::new(); 12];
        let mut workers = HashSet::new();
        for answer in &answers {
            let values: Value = serde_json::from_str(answer).unwrap();
            workers.insert(values[12].to_string());
            for (i, set) in seen.iter_mut().enumerate() {
                assert!(set.insert(values[i].to_string()), "value {i} came twice: {}", values[i]);
            }
        }
        assert!(workers.len() > 50, "only {} processes have responded", workers.len());
        assert_eq!(site.marks("boots"), 1, "replacements do not boot");
    },
);

in_each_way!(
    a_killed_worker_is_replaced_without_a_boot,
    |s: Setup| script(s, "", WHO).allow_log("ended before its first request"),
    |site| {
        for _ in 0..3 {
            let before = wait_for_workers(site);
            let killed = *before.first().unwrap();
            signal(killed, Signal::KILL);
            assert!(eventually(PATIENCE, || !serving(site).contains(&killed)));
            wait_for_workers(site);
        }
        let ids: BTreeSet<String> = ask_all(site).iter().map(|a| a[0].to_string()).collect();
        assert_eq!(ids.len(), 1);
        assert_eq!(site.marks("boots"), 1);
    },
);

/// The template's death costs no request; the next worker that is needed boots and creates another template.
#[test]
fn a_killed_template_is_replaced_with_the_next_worker() {
    run(
        Mode::Snapshot,
        |s| script(s, "", WHO).allow_log("ended before its first request"),
        |site| {
            let workers = wait_for_workers(site);
            let first = template(site).unwrap();
            signal(first, Signal::KILL);
            assert!(eventually(PATIENCE, || template(site).is_none()), "{}", site.howdah().pool());
            assert!(site.howdah().pool()["snapshot_unshared"].as_str().unwrap().contains("has ended"));
            assert_eq!(ask(site, WORKERS, 50, "/").len(), WORKERS * 50);
            assert_eq!((serving(site), site.marks("boots")), (workers.clone(), 1), "the workers keep serving");
            for worker in &workers {
                signal(*worker, Signal::KILL);
            }
            assert!(eventually(PATIENCE, || serving(site).is_disjoint(&workers)));
            let ids: BTreeSet<String> = ask_all(site).iter().map(|a| a[0].to_string()).collect();
            assert_eq!((ids.len(), site.marks("boots")), (1, 2), "one more boot for all four: {}", site.log());
            assert!(template(site).is_some_and(|second| second != first));
        },
    );
}

#[test]
fn a_reload_boots_once_more_and_loses_nothing() {
    run(
        Mode::Snapshot,
        |s| script(s, "", WHO),
        |site| {
            let before = ask_all(site)[0][0].clone();
            let first = template(site).unwrap();
            let old = tree(first);
            let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..WORKERS {
                    scope.spawn(|| {
                        while !stop.load(Ordering::Relaxed) {
                            let _ = site.get_ok("/");
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                let asked = eventually(PATIENCE, || answered.load(Ordering::Relaxed) > 0);
                let reloaded = site.howdah().command(&["reload"]).status.success();
                stop.store(true, Ordering::Relaxed);
                assert!(asked && reloaded);
            });
            let after = ask_all(site);
            assert!(after.iter().all(|a| a[0] == after[0][0] && a[0] != before));
            assert_eq!(site.marks("boots"), 2);
            assert!(template(site).is_some_and(|second| second != first));
            assert!(eventually(PATIENCE, || !old.iter().any(|i| alive(*i))), "the old template has ended");
        },
    );
}

/// Workers forked from an outdated boot would find the same outdated state again.
#[test]
fn an_outdated_boot_makes_a_new_template() {
    let boot = php!("template/an_outdated_boot_makes_a_new_template.php");
    run(
        Mode::Snapshot,
        |s| script(s.file("said.txt", "0"), boot, WHO),
        |site| {
            let before = ask_all(site)[0][0].clone();
            let first = template(site).unwrap();
            replace_file(&site.file("said.txt"), "1");
            let answers = ask(site, WORKERS * 2, 20, "/");
            assert!(answers.iter().all(|a| !a.contains(before.as_str().unwrap())), "the old boot has responded");
            let after = ask_all(site);
            assert!(after.iter().all(|a| a[0] == after[0][0]), "{after:?}");
            assert_eq!(site.marks("boots"), 2, "one boot for all");
            assert!(template(site).is_some_and(|second| second != first));
        },
    );
}

/// Resources that two processes cannot share make each worker boot separately, and status reports the resource.
fn boots_alone(boot: &str, because: &str) {
    run(
        Mode::Snapshot,
        |s| script(s, boot, WHO),
        |site| {
            let ids: BTreeSet<String> = ask_all(site).iter().map(|a| a[0].to_string()).collect();
            assert_eq!(ids.len(), WORKERS);
            assert_eq!(site.marks("boots"), WORKERS as u64);
            let status = site.howdah().pool();
            assert_eq!(status["snapshot_template"], Value::Null);
            assert!(status["snapshot_unshared"].as_str().unwrap().contains(because), "{status}");
            let text = site.howdah().command(&["status"]).stdout;
            assert!(String::from_utf8_lossy(&text).contains("each worker boots separately: "));
        },
    );
}

#[test]
fn a_connection_opened_at_boot_makes_each_worker_boot() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    boots_alone(&format!("$line = stream_socket_client('tcp://127.0.0.1:{port}');"), "a connection was opened at boot");
}

#[test]
fn a_file_opened_for_writing_at_boot_makes_each_worker_boot() {
    boots_alone("$file = fopen(\"/tmp/howdah-$id\", 'w+'); unlink(\"/tmp/howdah-$id\");", "a file was opened at boot");
}

#[test]
fn a_process_started_at_boot_makes_each_worker_boot() {
    boots_alone("$process = proc_open(['cat'], [['pipe', 'r']], $pipes);", "a process was started at boot");
}

#[test]
fn a_lock_taken_at_boot_makes_each_worker_boot() {
    boots_alone("$file = fopen(__FILE__, 'r'); flock($file, LOCK_SH);", "a file is locked");
}

/// Regression: SQLite locks data that it reads, as long as there are rows left. The file was opened again for each
/// worker, which lost the first worker its lock.
#[test]
fn an_open_sqlite_query_at_boot_makes_each_worker_boot() {
    boots_alone(php!("template/an_open_sqlite_query_at_boot_makes_each_worker_boot.php"), "a file was opened at boot");
}

in_each_way!(
    a_file_read_at_boot_has_a_position_in_each_worker,
    |s: Setup| script(
        s.file("lines.txt", "zero\none\ntwo\nthree\nfour\nfive\n"),
        php!("template/a_file_read_at_boot_has_a_position_in_each_worker_boot.php"),
        php!("template/a_file_read_at_boot_has_a_position_in_each_worker_request.php"),
    ),
    |site| {
        wait_for_workers(site);
        let mut workers = HashSet::new();
        let several = eventually(PATIENCE, || {
            for answer in ask(site, WORKERS * 2, 50, "/") {
                assert!(answer.starts_with("one two three four five "), "{answer}");
                workers.insert(answer.rsplit(' ').next().unwrap().to_owned());
            }
            workers.len() > 1
        });
        assert!(several, "{workers:?}");
    },
);

// The C library compares thread ids with the owners of locks, and a restore brings its memory back.
in_each_way!(
    the_c_library_knows_which_process_it_is_in,
    |s: Setup| script(
        s.ini("ffi.enable", "1"),
        "$c = FFI::cdef('int raise(int);');",
        "global $c; usleep(2000); echo json_encode([$c->raise(0), getmypid(), posix_getppid()]);",
    ),
    |site| {
        let answers = ask_all(site);
        assert!(answers.iter().all(|a| a[0] == 0), "raise() found no such thread: {answers:?}");
    },
);

/// OPcache empties its memory when no process holds this lock, and forked processes do not inherit locks.
#[test]
fn each_worker_holds_opcaches_lock() {
    run(
        Mode::Snapshot,
        |s| script(s, "", WHO).ini("opcache.enable", "1"),
        |site| {
            let mut users = wait_for_workers(site);
            users.insert(template(site).unwrap());
            for pid in users {
                let mut locks = String::new();
                // Not read atomically: a lock may be missed while other processes take and release theirs.
                let held = eventually(PATIENCE, || {
                    locks = std::fs::read_to_string("/proc/locks").unwrap();
                    locks.lines().any(|line| {
                        let mut words = line.split_whitespace().skip(1);
                        words.next() == Some("POSIX") && words.any(|word| word == pid.to_string())
                    })
                });
                assert!(held, "{pid} has no lock:\n{locks}");
            }
        },
    );
}

/// A failed boot is retried after a pause, once for all workers, and reports its reason; then all workers are forked.
#[test]
fn workers_that_wait_for_a_failed_boot_come_with_the_next() {
    run(
        Mode::Snapshot,
        |s| {
            script(s, "if (!file_exists(__DIR__ . '/ready')) { throw new Exception('not yet'); }", WHO)
                .expect_boot_failure()
                .expect_log("not yet")
                .allow_log("ended before")
        },
        |site| {
            let _ = site.wait_for_log(&["not yet", "next attempt"]);
            // The log has it a moment before the status.
            let said = || site.howdah().pool()["last_error"].as_str().is_some_and(|error| error.contains("not yet"));
            assert!(eventually(PATIENCE, said));
            replace_file(&site.file("ready"), "");
            let ids: BTreeSet<String> = ask_all(site).iter().map(|a| a[0].to_string()).collect();
            assert_eq!(ids.len(), 1);
        },
    );
}

#[test]
fn a_pool_grows_without_a_boot() {
    run(
        Mode::Snapshot,
        |s| script(s, "", "if (isset($_GET['gate'])) { gate($_GET['gate']); } echo $id;").workers(1).grows_to(3),
        |site| {
            let gates = ["a", "b", "c"];
            let waiting: Vec<_> = gates.iter().map(|name| site.gate(name)).collect();
            let ids = Mutex::new(BTreeSet::new());
            std::thread::scope(|scope| {
                for name in gates {
                    let (site, ids) = (&site, &ids);
                    scope.spawn(move || {
                        let id = site.get_ok(&format!("/?gate={name}"));
                        ids.lock().unwrap().insert(id);
                    });
                }
                let held: Vec<_> = waiting.iter().map(|gate| gate.wait()).collect();
                assert_eq!(serving(site).len(), 3);
                drop(held);
            });
            assert_eq!((ids.into_inner().unwrap().len(), site.marks("boots")), (1, 1));
        },
    );
}

/// When Howdah is killed, the zygote, the template and the workers end.
#[test]
fn no_process_outlives_a_killed_server() {
    run(
        Mode::Snapshot,
        |s| script(s, "", WHO).expect_exit(None),
        |site| {
            wait_for_workers(site);
            let all = tree(site.howdah().pid());
            assert!(all.len() >= WORKERS + 3, "server, zygote, template and workers: {all:?}");
            site.howdah().signal(Signal::KILL);
            assert!(eventually(PATIENCE, || !all.iter().any(|i| alive(*i))), "left: {all:?}");
            site.howdah_mut().wait();
        },
    );
}

//! Proves that state is clean: an application whose requests leak by every means (`www/leaks`) responds in snapshot
//! mode, over many requests in random order and concurrently, byte for byte as in classic mode in a fresh process.
//! Meanwhile the workers must not grow.
//!
//! `HOWDAH_DIFFERENCE_REQUESTS` sets the number of requests (`make test-long`), `HOWDAH_DIFFERENCE_SEED` repeats a
//! failed order.

use crate::difference::{Order, comparable, first_difference, names, requests};
use howdah_tests::process::{self, PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, Site, run};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ends that take a second of processor time or much memory: requested once each, not in the random order.
const SLOW: [&str; 1] = ["time limit"];

/// The requests: each leak and each end alone, and combinations.
fn targets(path: &str, order: &mut Order, combinations: usize) -> Vec<String> {
    let (leaks, ends) = names("leaks/leaks.php");
    let mut lists = vec![String::new()];
    lists.extend(leaks.iter().chain(&ends).cloned());
    for n in 0..combinations {
        let mut list: Vec<&str> = (0..2 + order.below(8)).map(|_| leaks[order.below(leaks.len())].as_str()).collect();
        // A name can be declared only once.
        let mut seen = std::collections::BTreeSet::new();
        list.retain(|name| seen.insert(*name));
        if n % 3 == 0 {
            let end = ends[order.below(ends.len())].as_str();
            if !SLOW.contains(&end) {
                list.push(end);
            }
        }
        lists.push(list.join(","));
    }
    lists.into_iter().map(|list| format!("{path}?do={}", list.replace(' ', "%20"))).collect()
}

fn request(target: &str) -> Request {
    match target.len() % 4 {
        0 => Request::form(target, "field=value").header("Cookie", "visitor=7"),
        _ => Request::get(target).header("Cookie", "visitor=7"),
    }
}

fn leaking(setup: Setup) -> Setup {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("www/leaks");
    let files = ["application.php", "leaks.php", "late.php", "request.php", "worker.php", "data.txt"];
    let setup = files
        .iter()
        .fold(setup, |s, name| s.file(&format!("leaks/{name}"), std::fs::read(directory.join(name)).unwrap()));
    setup
        .ini("display_errors", "1")
        .ini("html_errors", "0")
        .ini("log_errors", "0")
        .ini("memory_limit", "128M")
        .ini("opcache.file_update_protection", "0")
}

/// The expected responses: those of a fresh process in classic mode.
fn expected(targets: &[String], setup: impl FnOnce(Setup) -> Setup) -> BTreeMap<String, String> {
    let mut answers = BTreeMap::new();
    run(
        Mode::Classic,
        |s| setup(leaking(s)).setting("max_requests", "1"),
        |site| {
            // Fills OPcache: the very first script is compiled, and not yet shared.
            let _ = site.get(&targets[0]);
            for target in targets {
                answers.insert(target.clone(), comparable(site, &site.send(&request(target))));
            }
        },
    );
    answers
}

/// For each worker, private resident memory in KiB, descriptors and mappings.
fn sizes(site: &Site) -> BTreeMap<u64, [u64; 3]> {
    let status = site.howdah().status();
    let workers = status["pools"][0]["workers"].as_array().unwrap();
    let size = |pid: u64| {
        process::wait_until_asleep(u32::try_from(pid).unwrap());
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|l| l.starts_with("RssAnon")).unwrap();
        let anonymous = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
        let mappings = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().lines().count() as u64;
        [anonymous, descriptors, mappings]
    };
    workers.iter().map(|w| w["pid"].as_u64().unwrap()).map(|pid| (pid, size(pid))).collect()
}

/// Number of connections: enough for each of three workers to get requests, although short ones share a worker.
const CONNECTIONS: usize = 24;

/// Requests the targets in random order over several connections until this many requests have responses.
fn ask_at_random(
    site: &Site,
    targets: &[&String],
    truth: &BTreeMap<String, String>,
    requests: usize,
    order: &mut Order,
) {
    let left = AtomicUsize::new(requests);
    let seeds: Vec<u64> = (0..CONNECTIONS).map(|_| order.below(1 << 30) as u64).collect();
    std::thread::scope(|scope| {
        for seed in seeds {
            let left = &left;
            scope.spawn(move || {
                let mut order = Order::of(seed);
                let mut conn = site.conn();
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                    let target = targets[order.below(targets.len())];
                    let response = conn.exchange(&request(target));
                    let closed = response.header("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
                    let got = comparable(site, &response);
                    assert!(got == truth[target], "{}", first_difference(target, &truth[target], &got));
                    if closed {
                        conn = site.conn();
                    }
                }
            });
        }
    });
}

/// The application as a worker script.
pub(crate) fn by_script(setup: Setup) -> Setup {
    setup.script("leaks/worker.php")
}

/// The application as a boot file.
pub(crate) fn by_boot_file(setup: Setup) -> Setup {
    setup.boot("leaks/application.php")
}

/// Compares an application of `www/leaks` in both modes; `both` sets up either, `boot` selects what snapshot mode
/// boots. With `requests` of 0, each target is requested once and nothing more.
pub(crate) fn equal_to_classic_mode(
    path: &str,
    boot: fn(Setup) -> Setup,
    requests: usize,
    both: impl Fn(Setup) -> Setup,
) {
    howdah_tests::time_limit(u64::try_from(60 + requests / 10).unwrap(), "each request runs twice");
    let mut order = Order::new();
    let targets = targets(path, &mut order, 120);
    let truth = expected(&targets, &both);
    run(
        Mode::Snapshot,
        |s| boot(both(leaking(s).workers(3))),
        |site| {
            let mut wrong = Vec::new();
            for target in &targets {
                let got = comparable(site, &site.send(&request(target)));
                if got != truth[target] {
                    wrong.push(first_difference(target, &truth[target], &got));
                }
            }
            let shown = wrong.iter().take(4).cloned().collect::<Vec<_>>().join("\n\n");
            assert!(wrong.is_empty(), "{} responses differ, such as:\n{shown}", wrong.len());
            if requests == 0 {
                return;
            }
            let quick: Vec<&String> = targets.iter().filter(|t| !t.ends_with("time%20limit")).collect();
            // Until each worker has probably met each request: some add memory that stays known from then on.
            let mut before = BTreeMap::new();
            for _ in 0..12 {
                ask_at_random(site, &quick, &truth, (requests / 5).max(600), &mut order);
                let now = sizes(site);
                if std::mem::replace(&mut before, now.clone()) == now {
                    break;
                }
            }
            // Requests are distributed at random: a worker may meet some request only now. A worker that leaks grows
            // every time.
            for _ in 0..5 {
                ask_at_random(site, &quick, &truth, requests, &mut order);
                // A process that a request forked and that outlived it is reaped with a later request of the same
                // worker.
                let reaped = eventually(PATIENCE, || {
                    ask_at_random(site, &quick[..1], &truth, CONNECTIONS, &mut order);
                    process::zombies(site.howdah().pid()).is_empty()
                });
                assert!(reaped, "processes that requests left are not reaped");
                let after = sizes(site);
                eprintln!("own memory in KiB, descriptors, mappings by worker: {before:?}, then {after:?}");
                assert!(before.keys().eq(after.keys()), "workers were replaced");
                let is_as_before =
                    |now: &[u64; 3], before: &[u64; 3]| now[1..] == before[1..] && now[0] <= before[0] + 1024;
                if after.values().zip(before.values()).all(|(now, before)| is_as_before(now, before)) {
                    return;
                }
                before = after;
            }
            panic!("the workers grow");
        },
    );
}

#[test]
fn a_boot_file_leaves_no_trace_of_any_request() {
    equal_to_classic_mode("/leaks/request.php", by_boot_file, requests(1000), |s| s);
}

#[test]
fn a_worker_script_leaves_no_trace_of_any_request() {
    equal_to_classic_mode("/leaks/worker.php", by_script, requests(1000), |s| s);
}

/// Regression: memory that one request had used came back for the next one with the old header of PHP's heap in it:
/// with its memory exhausted, PHP looked for free pages for ever.
#[test]
fn a_chunk_of_the_heap_is_fresh_for_each_request() {
    run(
        Mode::Snapshot,
        |s| leaking(s).workers(1).boot("leaks/application.php"),
        |site| {
            for _ in 0..5 {
                let _ = site.get_ok("/leaks/request.php?do=memory");
                let text = site.get_ok("/leaks/request.php?do=memory%20limit");
                assert!(text.contains("Allowed memory size of"), "{text}");
            }
        },
    );
}

/// PHP calls no function while it records that memory is exhausted.
#[test]
fn shutdown_functions_run_after_memory_exhaustion() {
    for boot in [by_script, by_boot_file] {
        run(
            Mode::Snapshot,
            |s| boot(leaking(s).workers(1)),
            |site| {
                for _ in 0..3 {
                    let text = site.get_ok("/leaks/request.php?do=memory%20limit");
                    assert!(text.ends_with("[shutdown boot][1 in shutdown]"), "{text}");
                    let text = site.get_ok("/leaks/request.php?do=memory%20limit%20at%20once");
                    assert!(text.ends_with("[shutdown boot][shutdown after it]"), "{text}");
                }
            },
        );
    }
}

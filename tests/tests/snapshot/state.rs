//! Snapshot mode: a request's changes to its process are gone at the next one, and random values do not repeat.

use howdah_tests::{Mode, Part, Request, Setup, Site, multipart, php, run};
use std::collections::HashSet;

/// The methods to find written pages; the engine takes the first one that works, and all have to work.
const WAYS: [&str; 3] = ["scan", "pagemap", "fork"];

/// A worker script that runs `$handle` for each request; `code` defines it. The readiness check requests `/gate.php`.
fn by_script(setup: Setup, code: &str) -> Setup {
    setup
        .workers(1)
        .script("worker.php")
        .php("worker.php", &format!("{code}\nwhile (frankenphp_handle_request($handle)) {{}}"))
        .php("index.php", "echo 'the front controller ran, and not the worker script';")
}

/// A boot file; requests run their own scripts.
fn by_boot_file(setup: Setup, code: &str) -> Setup {
    setup.workers(1).boot("boot.php").php("boot.php", code)
}

fn forced(setup: Setup, way: &str) -> Setup {
    setup.env("HOWDAH_SNAPSHOT_PAGES", way)
}

/// Everything that a script can leave behind; reports the state before it changes it.
const LEAK: &str = php!("state/leak.php");

const LEAK_BOOT: &str = php!("state/leak_boot.php");

fn all_answers_are_equal(site: &Site, target: &str, times: usize) {
    let mut conn = site.conn();
    let first = conn.exchange(&Request::get(target)).expect(200).text();
    assert!(first.contains("\"boot\":\"as booted\"") && first.contains("\"static\":0"), "{first}");
    for n in 1..times {
        let next = conn.exchange(&Request::get(target)).expect(200).text();
        assert_eq!(next, first, "answer {n}");
    }
}

#[test]
fn no_state_of_a_request_remains_with_any_restore_method() {
    for way in WAYS {
        run(
            Mode::Snapshot,
            |s| forced(by_script(s, &format!("{LEAK_BOOT} $handle = function () {{ {LEAK} }};")), way),
            |site| {
                all_answers_are_equal(site, "/", if way == "fork" { 50 } else { 500 });
                let status = String::from_utf8(site.howdah().command(&["status", "--json"]).stdout).unwrap();
                let name = if way == "scan" { "pagemap_scan" } else { way };
                assert!(status.contains(&format!("\"snapshot_pages\": \"{name}\"")), "{status}");
            },
        );
    }
}

/// The engine remembers which parts of a page requests write to. Here each request writes to a different part, of many
/// in few pages, and checks all of them.
#[test]
fn memory_that_no_earlier_request_wrote_to_is_restored() {
    const HANDLE: &str = php!("state/handle.php");
    for copy in ["lines", "differences", "all"] {
        run(
            Mode::Snapshot,
            |s| by_script(s, HANDLE).env("HOWDAH_SNAPSHOT_COPY", copy),
            |site| {
                let mut conn = site.conn();
                for n in 0..2000 {
                    assert_eq!(
                        conn.exchange(&Request::get(&format!("/?n={n}"))).expect(200).text(),
                        "0",
                        "{copy}, {n}"
                    );
                }
            },
        );
    }
}

#[test]
fn no_state_remains_after_a_request_on_a_boot_file() {
    run(
        Mode::Snapshot,
        |s| {
            by_boot_file(s, LEAK_BOOT)
                .php("leak.php", &format!("require_once __DIR__ . '/boot.php'; function only_here() {{}} {LEAK}"))
        },
        |site| all_answers_are_equal(site, "/leak.php", 500),
    );
}

#[test]
fn the_request_itself_is_new() {
    run(
        Mode::Snapshot,
        |s| by_script(s, php!("state/the_request_itself_is_new.php")),
        |site| {
            assert_eq!(site.get_ok("/a?g=1"), r#"[{"g":"1"},[],[],{"g":"1"},"\/a?g=1","",[],true]"#);
            let form = Request::form("/b", "p=2").header("Cookie", "c=3");
            assert_eq!(
                site.send(&form).expect(200).text(),
                r#"[[],{"p":"2"},{"c":"3"},{"p":"2"},"\/b","p=2",[],true]"#
            );
            let upload = multipart("/c", &[Part { name: "f", file: Some(("a", "text/plain")), content: b"12345" }]);
            let answer = site.send(&upload).expect(200);
            assert!(answer.text().contains("[5]"), "{}", answer.text());
            let temporary = answer.header("x-temp").unwrap().to_owned();
            assert_eq!(site.get_ok("/d"), r#"[[],[],[],[],"\/d","",[],true]"#);
            assert!(!std::path::Path::new(&temporary).exists(), "{temporary} was left behind");
        },
    );
}

#[test]
fn shutdown_functions_and_destructors_run_before_the_restore() {
    run(
        Mode::Snapshot,
        |s| {
            by_boot_file(s, php!("state/shutdown_functions_and_destructors_run_before_the_restore.php"))
                .php("index.php", "$mine = new D('mine'); $keep = [new D('inner')]; echo 'body';")
        },
        |site| {
            for _ in 0..3 {
                assert_eq!(site.get_ok("/index.php"), "body[shutdown][mine][boot][inner]");
            }
        },
    );
}

#[test]
fn a_script_that_ends_badly_is_answered_and_undone() {
    run(
        Mode::Snapshot,
        |s| {
            by_script(s, php!("state/a_script_that_ends_badly_is_answered_and_undone.php"))
                .ini("display_errors", "0")
                .expect_log("thrown here")
                .expect_log("no_such_function")
                .expect_log("Allowed memory size")
                .expect_log("Maximum execution time")
        },
        |site| {
            let clean = site.get_ok("/");
            assert!(clean.starts_with("1 "), "{clean}");
            assert_eq!(site.get_ok("/?do=exit"), "bye");
            for bad in ["throw", "call", "memory", "time"] {
                assert_eq!(site.get(&format!("/?do={bad}")).status, 500, "{bad}");
                assert_eq!(site.get_ok("/"), clean, "after {bad}: same process, same state");
            }
        },
    );
}

#[test]
fn no_random_value_is_repeated() {
    const COUNT: usize = 2500;
    let code = php!("state/count.php");
    run(
        Mode::Snapshot,
        |s| by_script(s, code).workers(2),
        |site| {
            // A value of 31 bits, or one that follows from a seed of 32 bits, repeats by chance once in a thousand runs;
            // two repeated values are no longer chance.
            const OF_32_BITS: [usize; 6] = [0, 1, 4, 10, 15, 16];
            let mut seen: Vec<HashSet<String>> = vec![HashSet::new(); 17];
            let mut repeated = [0; 17];
            let mut chosen = HashSet::new();
            let mut conn = site.conn();
            for n in 0..COUNT {
                let values = conn.exchange(&Request::get("/")).expect(200).json();
                for (i, set) in seen.iter_mut().enumerate() {
                    repeated[i] += usize::from(!set.insert(values[i].to_string()));
                    let allowed = usize::from(OF_32_BITS.contains(&i));
                    assert!(repeated[i] <= allowed, "value {i} of request {n} came before: {}", values[i]);
                }
                chosen.insert(values[17].to_string());
            }
            assert_eq!(chosen.len(), 1, "a seed of the application's own is kept");
        },
    );
}

/// Sizes of a worker that must not grow.
fn sizes(site: &Site, pid: &str) -> (usize, usize, u64) {
    assert!(site.get("/ready.txt").status == 200);
    howdah_tests::process::wait_until_asleep(pid.parse().unwrap());
    let count = |what: &str| std::fs::read_dir(format!("/proc/{pid}/{what}")).unwrap().count();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().lines().count();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let own = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap().trim().trim_end_matches(" kB");
    (count("fd"), maps, own.parse().unwrap())
}

#[test]
fn descriptors_mappings_and_memory_stay_as_they_are() {
    let code = php!("state/descriptors_mappings_and_memory_stay_as_they_are.php");
    run(
        Mode::Snapshot,
        |s| by_script(s, code),
        |site| {
            let mut conn = site.conn();
            let pid = conn.exchange(&Request::get("/")).expect(200).text();
            for _ in 0..500 {
                assert_eq!(conn.exchange(&Request::get("/")).expect(200).text(), pid);
            }
            let before = sizes(site, &pid);
            for _ in 0..10_000 {
                assert_eq!(conn.exchange(&Request::get("/")).expect(200).text(), pid);
            }
            let after = sizes(site, &pid);
            assert_eq!((before.0, before.1), (after.0, after.1), "descriptors and mappings");
            assert!(after.2 < before.2 + 4096, "its own memory grew from {} to {} kB", before.2, after.2);
        },
    );
}

#[test]
fn on_restore_runs_and_a_boot_takes_one_snapshot() {
    run(
        Mode::Snapshot,
        |s| {
            by_boot_file(s, php!("state/on_restore_runs_and_a_boot_takes_one_snapshot.php"))
                .php("index.php", "echo Howdah\\mode(), ' ', implode(', ', $order);")
        },
        |site| {
            for n in ["1", "2"] {
                let text = site.get_ok(&format!("/index.php?n={n}"));
                assert_eq!(text, format!("snapshot boot, restored {n}, taken, again false"));
            }
        },
    );
}

#[test]
fn warm_up_is_in_the_snapshot() {
    run(
        Mode::Snapshot,
        |s| by_script(s, php!("state/warm_up_is_in_the_snapshot.php")).setting("warmup", "[\"/warm?a=1\", \"/other\"]"),
        |site| {
            for _ in 0..3 {
                let warm = r#""/warm?a=1","/other","#.repeat(3);
                assert_eq!(site.get_ok("/real"), format!(r#"[{warm}"/real"]"#));
            }
        },
    );
}

#[test]
fn a_boot_file_that_ends_early_is_reported() {
    run(
        Mode::Snapshot,
        |s| {
            by_boot_file(s, "exit(0);")
                .expect_boot_failure()
                .expect_log("did not reach its end")
                .expect_log("ended before it was ready")
        },
        |site| {
            let _ = site.wait_for_log(&["ended before it was ready"]);
            // Its PHP request ends properly. Regression: a block of memory belonged to the heap of PHP's startup.
            assert!(!site.log().contains("corrupted"), "{}", site.log());
        },
    );
}

/// Regression: PHP's start had left memory in a heap that was replaced, and the end of the worker's script freed it in
/// the wrong one.
#[test]
fn a_snapshot_worker_shuts_down_cleanly() {
    run(
        Mode::Snapshot,
        |s| by_script(s, "$handle = function () { echo 'ok'; };"),
        |site| {
            assert_eq!(site.get_ok("/"), "ok");
            assert!(site.howdah().command(&["reload"]).status.success());
            assert_eq!(site.get_ok("/"), "ok");
            assert!(site.howdah().command(&["stop"]).status.success());
            assert!(!site.log().contains("corrupted"), "{}", site.log());
        },
    );
}

fn restored_pages(site: &Site) -> u64 {
    let status = site.howdah().status();
    let worker = &status["pools"][0]["workers"][0];
    assert!(worker["snapshot_restore_us"].as_f64().unwrap() > 0.0, "{worker}");
    worker["snapshot_restored_pages"].as_u64().unwrap()
}

/// Memory that a request allocates lies outside of the application's, whatever was free there, and is not restored.
#[test]
fn memory_that_a_request_allocates_is_not_restored() {
    run(
        Mode::Snapshot,
        // Memory that is free at the snapshot, in pieces of many sizes between others that stay.
        |s| by_script(s, php!("state/memory_that_a_request_allocates_is_not_restored.php")),
        |site| {
            let mut conn = site.conn();
            let mut pages = |n: usize| {
                // The numbers of a restore travel with the next response.
                for _ in 0..3 {
                    assert_eq!(conn.exchange(&Request::get(&format!("/?n={n}"))).expect(200).text(), n.to_string());
                }
                restored_pages(site)
            };
            let few = pages(1);
            let many = pages(2000); // some 2.5 MB, or 600 pages
            assert!(
                few > 0 && many < few + 60,
                "{few} pages are restored after a small request, {many} after a large one"
            );
        },
    );
}

/// Memory written by a rare request is not copied back for ever after, and is clean each time it is written again.
#[test]
fn pages_written_only_by_a_rare_request_are_dropped() {
    let code = php!("state/pages_written_only_by_a_rare_request_are_dropped.php");
    for way in ["scan", "pagemap"] {
        run(
            Mode::Snapshot,
            |s| forced(by_script(s, code), way),
            |site| {
                let mut conn = site.conn();
                let mut ask = |target: &str, times: usize| {
                    for _ in 0..times {
                        assert_eq!(conn.exchange(&Request::get(target)).expect(200).text(), "0");
                    }
                    restored_pages(site)
                };
                let many = ask("/?write", 3);
                assert!(many > 400, "{many} pages are restored after 500 were written");
                assert!(ask("/", 5) > 400, "known pages are copied back");
                let few = ask("/", 200);
                assert!(few < 200, "{few} pages are restored after 200 requests that wrote to none of them");
                assert!(ask("/?write", 3) > 400);
                assert!(ask("/", 1100) < 200);
            },
        );
    }
}

/// A request may free objects of the application and allocate its own in their memory.
#[test]
fn objects_that_replace_the_applications_belong_to_the_request() {
    run(
        Mode::Snapshot,
        |s| {
            by_boot_file(s, php!("state/objects_that_replace_the_applications_belong_to_the_request.php"))
                .php("index.php", "$booted = null; $mine = [new D('mine')]; echo 'body'; $other = [new D('other')];")
        },
        |site| {
            for _ in 0..3 {
                assert_eq!(site.get_ok("/index.php"), "[boot]body[mine][other]");
            }
        },
    );
}

//! Snapshot mode with extensions of PHP: the JIT compiler, preloading, APCu, Xdebug, extensions with threads.

use super::boot::booted;
use super::difference::{by_boot_file, equal_to_classic_mode};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Request, Setup, Site, php, run};

#[test]
fn the_jit_compiler_leaves_no_trace() {
    equal_to_classic_mode("/leaks/request.php", by_boot_file, 300, |s| {
        s.ini("opcache.jit", "tracing").ini("opcache.jit_buffer_size", "32M").ini("opcache.jit_hot_func", "2")
    });
}

#[test]
fn preloaded_classes_are_as_preloaded_in_each_request() {
    equal_to_classic_mode("/leaks/request.php", by_boot_file, 0, |s| {
        let root = rustix::process::geteuid().is_root();
        let s = if root { s.ini("opcache.preload_user", "root") } else { s };
        s.ini("opcache.preload", "@ROOT@/leaks/late.php")
    });
}

fn script(setup: Setup, path: &str, code: &str) -> Setup {
    setup.file(path, format!("<?php\n{code}\n"))
}

#[test]
fn apcu_keeps_values_stored_by_requests() {
    run(
        Mode::Snapshot,
        |s| {
            let s = s.extension("apcu", "extension").ini("apc.enabled", "1");
            let s = booted(s, "apcu_store('boot', ['made' => 'at boot']); $n = 0;");
            script(s.workers(2), "index.php", php!("extensions/apcu_keeps_values_stored_by_requests.php"))
        },
        |site| {
            let mut conn = site.conn();
            let first: usize = site.get_ok("/").split(' ').next().unwrap().parse().unwrap();
            for n in 1..=2000 {
                let answer = conn.exchange(&Request::get("/")).expect(200).text();
                assert_eq!(answer, format!("{} 1 {{\"made\":\"at boot\"}}70000", first + n));
            }
        },
    );
}

fn pid(site: &Site) -> String {
    site.get_ok("/pid.php")
}

#[test]
fn xdebug_develops_covers_and_traces() {
    run(
        Mode::Snapshot,
        |s| {
            let s = s.xdebug();
            let s = booted(
                s.ini("xdebug.mode", "develop,coverage"),
                "class C { static $n = 0; } function f($x) { return $x + C::$n++; }",
            );
            let s = script(s, "pid.php", "echo getmypid();");
            script(s, "index.php", php!("extensions/xdebug_develops_covers_and_traces.php"))
        },
        |site| {
            let before = pid(site);
            let first = site.get_ok("/");
            assert!(first.starts_with("50 1 "), "{first}");
            for _ in 0..500 {
                assert_eq!(site.get_ok("/"), first);
            }
            assert_eq!(pid(site), before);
        },
    );
}

/// Starts a thread that waits for ever, as some extensions do.
const THREAD: &str = php!("extensions/thread.php");

#[test]
fn a_thread_started_at_boot_is_refused_by_name() {
    run(
        Mode::Snapshot,
        |s| {
            booted(s.ini("ffi.enable", "true"), THREAD)
                .expect_boot_failure()
                .expect_log("a PHP extension has started threads")
                .expect_log("ended before it was ready")
        },
        |site| {
            let _ = site.wait_for_log(&["which a snapshot cannot hold: grpc_poller"]);
            let _ = site.wait_for_log(&["ended before it was ready"]);
        },
    );
}

#[test]
fn a_thread_started_by_a_request_replaces_the_worker() {
    run(
        Mode::Snapshot,
        |s| {
            let s = booted(s.ini("ffi.enable", "true"), "$n = 0;");
            let s = script(s, "thread.php", &format!("{THREAD} echo 'started';"));
            script(s, "pid.php", "echo getmypid();")
        },
        |site| {
            let before = pid(site);
            assert_eq!(site.get_ok("/thread.php"), "started");
            assert!(eventually(PATIENCE, || pid(site) != before));
            let _ = site.wait_for_log(&["worker replaced", "left a thread behind"]);
        },
    );
}

//! Snapshot mode with each method to find written pages: the state after boot is restored for each request, whatever
//! the last one did; values that must differ between requests do differ.

use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::servers::Server;
use howdah_tests::site::replace_file;
use howdah_tests::{Mode, Request, Setup, Site, in_each_way, php, run};
use std::collections::HashSet;

fn snapshot(setup: Setup) -> Setup {
    setup.workers(1).ini("display_errors", "0").ini("log_errors", "1")
}

/// A worker script: `boot` runs once, `handle` is the body of the handler.
fn script(setup: Setup, boot: &str, handle: &str) -> Setup {
    snapshot(setup).script("worker.php").php(
        "worker.php",
        &format!("{boot}\n$handle = function () {{ {handle} }};\nwhile (frankenphp_handle_request($handle)) {{}}"),
    )
}

/// A boot file, run once; requests run their own scripts.
fn boot(setup: Setup, code: &str) -> Setup {
    let setup = setup.ini("opcache.file_update_protection", "0");
    snapshot(setup).boot("boot.php").php("boot.php", code)
}

fn worker_pid(site: &Site) -> u64 {
    let status = site.howdah().status();
    status["pools"][0]["workers"][0]["pid"].as_u64().unwrap()
}

/// Private resident memory in KiB, and numbers of descriptors and of mappings.
fn size_of_worker(pid: u64) -> [u64; 3] {
    howdah_tests::process::wait_until_asleep(u32::try_from(pid).unwrap());
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|l| l.starts_with("RssAnon")).unwrap();
    let anonymous = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
    let mappings = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().lines().count() as u64;
    [anonymous, descriptors, mappings]
}

const LEAKY_BOOT: &str = "class Holder { public static $n = 0; public static array $list = []; public int $own = 0; }
    function counter() { static $n = 0; return ++$n; }
    $global = 0; $object = new Holder; putenv('BOOT=1'); $file = fopen(__FILE__, 'r'); fgets($file);";

/// Reports all visible state, then changes all of it.
const LEAKY_REQUEST: &str = php!("each_way/leaky_request.php");

in_each_way!(a_worker_script_finds_its_booted_state_each_time, |s| script(s, LEAKY_BOOT, LEAKY_REQUEST), |site| {
    let first = site.get_ok("/");
    assert!(first.starts_with("[1,1,1,1,1,\"14\","), "{first}");
    for _ in 0..40 {
        assert_eq!(site.get_ok("/"), first);
    }
});

in_each_way!(
    a_classic_application_runs_on_its_booted_state,
    |s| boot(s, &format!("{LEAKY_BOOT} require_once 'lib.php';"))
        .php("lib.php", "function lib() { static $n = 0; return ++$n; }")
        .php("index.php", &format!("require_once 'lib.php'; echo lib(), ' '; {LEAKY_REQUEST}"))
        .php("other.php", "echo Holder::$n, isset($global), $_SERVER['SCRIPT_NAME'];"),
    |site| {
        // A script that OPcache does not have yet is an open file of the request that compiles it.
        let _ = site.get_ok("/");
        let first = site.get_ok("/");
        assert!(first.starts_with("1 [1,1,1,1,1,"), "{first}");
        for _ in 0..20 {
            assert_eq!(site.get_ok("/pretty/path"), first);
            assert_eq!(site.get_ok("/other.php"), "01/other.php");
        }
    },
);

in_each_way!(
    superglobals_belong_to_the_request,
    |s| { script(s, "$booted = microtime(true);", php!("each_way/superglobals_belong_to_the_request.php")) },
    |site| {
        for i in 0..20 {
            let request = Request::form(&format!("/p?a={i}"), &format!("b={i}"))
                .header("Cookie", &format!("c={i}"))
                .header("X-Mark", "m");
            let response = site.send(&request).expect(201);
            assert_eq!(response.header("X-Mark"), Some(i.to_string().as_str()));
            assert_eq!(
                response.text(),
                format!(r#"[{{"a":"{i}"}},{{"b":"{i}"}},{{"c":"{i}"}},"b={i}","POST","\/p?a={i}","m",true]"#)
            );
            let response = site.get("/q").expect(200);
            assert_eq!(response.text(), r#"[[],[],[],"","GET","\/q",null,true]"#);
        }
    },
);

in_each_way!(
    no_random_value_is_repeated,
    |s| {
        script(
            s,
            php!("each_way/no_random_value_is_repeated_boot.php"),
            php!("each_way/no_random_value_is_repeated_request.php"),
        )
    },
    |site| {
        let mut seen = HashSet::new();
        let mut conn = site.conn();
        for _ in 0..500 {
            for line in conn.exchange(&Request::get("/")).expect(200).text().lines() {
                assert!(seen.insert(line.to_owned()), "twice: {line}");
            }
        }
        // 20 of each of at least eight kinds in each request.
        assert!(seen.len() >= 500 * 160, "{}", seen.len());
    },
);

in_each_way!(
    every_end_of_a_script_is_answered_and_restored,
    |s| script(
        s,
        "$n = 0; class D { function __destruct() { echo ' destruct'; } }",
        php!("each_way/every_end_of_a_script_is_answered_and_restored.php")
    )
    .expect_log("thrown")
    .expect_log("Call to undefined function no_such_function()")
    .expect_log("Allowed memory size")
    .expect_log("Maximum execution time")
    .expect_log("Cannot redeclare X::f()"),
    |site| {
        // The response ends when the handler has returned; later output of shutdown functions is discarded.
        let plain = "n=1 destruct";
        assert_eq!(site.get_ok("/"), plain);
        for _ in 0..2 {
            assert_eq!(site.get_ok("/?end=exit"), "n=1 exit destruct shutdown");
            assert_eq!(site.get_ok("/"), plain);
            for end in ["throw", "fatal", "memory", "compile", "time"] {
                // Output may be buffered; the status 500 shows that nothing was sent before.
                let response = site.get(&format!("/?end={end}"));
                assert_eq!(response.status, 500, "{end}: {}", response.text());
                // When memory is exhausted PHP drops buffered output.
                assert!(end == "memory" || response.text().starts_with("n=1"), "{end}: {}", response.text());
                assert_eq!(site.get_ok("/"), plain, "after {end}");
            }
        }
    },
);

#[test]
fn memory_does_not_grow_over_ten_thousand_requests() {
    run(
        Mode::Snapshot,
        |s| script(s, LEAKY_BOOT, php!("each_way/memory_does_not_grow_over_ten_thousand_requests.php")),
        |site| {
            let mut conn = site.conn();
            let mut ask = |n: usize| {
                for i in 0..n {
                    assert_eq!(
                        conn.exchange(&Request::get(&format!("/?k={}", i % 40))).expect(200).text().len(),
                        2 + 3 * usize::from(i % 40 == 1)
                    );
                }
            };
            ask(500);
            let pid = worker_pid(site);
            let before = size_of_worker(pid);
            ask(9500);
            assert_eq!(worker_pid(site), pid, "the worker was replaced");
            let after = size_of_worker(pid);
            assert!(after[0] <= before[0] + 512, "KiB, descriptors, mappings: {before:?} → {after:?}");
            assert_eq!(before[1..], after[1..]);
        },
    );
}

#[test]
fn the_snapshot_has_the_state_of_warm_up_requests() {
    run(
        Mode::Snapshot,
        |s| {
            script(
                s,
                "$seen = [];",
                "global $seen; $seen[] = $_SERVER['REQUEST_URI']; echo json_encode($seen); header('X-A: b');",
            )
            .setting("warmup", "[\"/\", \"/a?b=c\"]")
        },
        |site| {
            for _ in 0..3 {
                // Three rounds: work that an application does only from its second request on is in the snapshot too.
                let warm = r#""\/","\/a?b=c","#.repeat(3);
                assert_eq!(site.get_ok("/real"), format!(r#"[{warm}"\/real"]"#));
            }
            assert!(!site.log().contains("[\"\\/\"]"), "warm-up output in the log:\n{}", site.log());
        },
    );
}

in_each_way!(
    functions_registered_for_a_restore_run_first,
    |s| script(
        s,
        "$order = []; Howdah\\on_restore(function () { $GLOBALS['order'][] = 'restored'; });",
        "global $order; $order[] = 'handler'; echo join(',', $order), ' ', Howdah\\mode();"
    ),
    |site| {
        for _ in 0..5 {
            assert_eq!(site.get_ok("/"), "restored,handler snapshot");
        }
    },
);

in_each_way!(
    code_after_howdah_snapshot_runs_in_each_request,
    |s| snapshot(s).script("w.php").php("w.php", "$n = 1; Howdah\\snapshot(); $n++; echo $n, ' ', $_GET['a'] ?? '-';"),
    |site| {
        for i in 0..5 {
            assert_eq!(site.get_ok(&format!("/?a={i}")), format!("2 {i}"));
        }
    },
);

#[test]
fn a_connection_opened_at_boot_serves_a_thousand_requests() {
    let redis = Server::redis(false);
    let port = redis.port;
    run(
        Mode::Snapshot,
        |s| {
            script(
                s,
                &php!("each_way/a_connection_opened_at_boot_serves_a_thousand_requests.php", PORT = port),
                "echo ask('INCR n');",
            )
        },
        |site| {
            let mut conn = site.conn();
            let pid = worker_pid(site);
            let first: u64 = site.get_ok("/").trim_start_matches(':').parse().unwrap();
            for i in 1..=1000 {
                assert_eq!(conn.exchange(&Request::get("/")).expect(200).text(), format!(":{}", first + i));
            }
            assert_eq!(worker_pid(site), pid);
        },
    );
}

/// The snapshot is taken again, from the changed code: by a reload, and if files are watched.
#[test]
fn a_reload_and_a_watched_change_take_a_new_snapshot() {
    let boot_file = |version: &str| format!("<?php\nfunction version() {{ return '{version}'; }}\n");
    run(
        Mode::Snapshot,
        |s| {
            snapshot(s)
                .boot("boot.php")
                .setting("watch", r#"["../root/watched/*.php"]"#)
                .file("boot.php", boot_file("one"))
                .file("watched/any.php", "<?php\n")
                .php("index.php", "echo version();")
        },
        |site| {
            assert_eq!(site.get_ok("/"), "one");
            replace_file(&site.file("boot.php"), boot_file("two"));
            assert_eq!(site.get_ok("/"), "one", "the snapshot has the code it was taken from");
            assert!(site.howdah().command(&["reload"]).status.success());
            assert!(eventually(PATIENCE, || site.get_ok("/") == "two"), "{}", site.log());
            replace_file(&site.file("boot.php"), boot_file("three"));
            replace_file(&site.file("watched/any.php"), "<?php // changed\n");
            assert!(eventually(PATIENCE, || site.get_ok("/") == "three"), "{}", site.log());
        },
    );
}

/// Regression: before the snapshot PHP may exceed its limit by some memory; for "no limit" the result was 8 MB.
#[test]
fn an_unlimited_memory_limit_stays_unlimited_while_the_snapshot_is_taken() {
    let boot = php!("each_way/an_unlimited_memory_limit_stays_unlimited_while_the_snapshot_is_taken.php");
    run(
        Mode::Snapshot,
        |s| {
            script(s, boot, "echo ini_get('memory_limit'), count($GLOBALS['held']) > 1000 ? ' held' : '';")
                .ini("memory_limit", "-1")
        },
        |site| assert_eq!(site.get_ok("/"), "-1 held"),
    );
}

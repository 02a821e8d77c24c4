//! Start, stop, reload, and unexpected ends.

use howdah_tests::howdah::program;
use howdah_tests::process::{PATIENCE, alive, children, eventually};
use howdah_tests::site::{free_port, replace_file};
use howdah_tests::{Conn, Request, Setup, Site, php, scenario};
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

fn output_text(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Setup of [`finishes_running_requests`].
pub(super) fn holding(setup: Setup) -> Setup {
    let setup = setup.never_behind_nginx("the scenario connects to the server's own address");
    setup.workers(1).php("hold.php", "require 'gate.php'; gate('g'); echo 'finished';")
}

/// After this signal the server must accept no new connections, finish the running request, and exit.
pub(super) fn finishes_running_requests(site: &mut Site, signal: Signal) {
    let gate = site.gate("g");
    let mut conn = site.conn();
    conn.send(Request::get("/hold.php").bytes());
    let held = gate.wait();
    site.howdah().signal(signal);
    let target = site.target().clone();
    assert!(eventually(PATIENCE, || Conn::try_open(&target).is_err()), "the server still accepts connections");
    held.release();
    assert_eq!(conn.response("GET").expect(200).text(), "finished");
    assert_eq!(site.howdah_mut().wait(), Some(0));
}

scenario!(sigterm_finishes_running_requests, howdah_only = "checks how Howdah ends", holding, |site| {
    finishes_running_requests(site, Signal::TERM);
});

scenario!(sigint_ends_an_idle_server_at_once, howdah_only = "checks how Howdah ends", |s| s, |site| {
    let idle = site.conn();
    site.howdah().signal(Signal::INT);
    // Exits before the grace time is over: an idle connection must not delay the exit.
    assert_eq!(site.howdah_mut().wait(), Some(0));
    drop(idle);
});

scenario!(
    a_second_sigterm_exits_now,
    howdah_only = "checks how Howdah ends",
    |s| holding(s).expect_exit(None),
    |site| {
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/hold.php").bytes());
        let held = gate.wait();
        site.howdah().signal(Signal::TERM);
        let target = site.target().clone();
        assert!(eventually(PATIENCE, || Conn::try_open(&target).is_err()), "the server still accepts connections");
        assert!(!site.howdah_mut().ended(), "a request still runs");
        site.howdah().signal(Signal::TERM);
        // Exits before the grace time is over.
        assert_eq!(site.howdah_mut().wait(), Some(130));
        drop(held);
    },
);

scenario!(
    the_grace_time_has_an_end,
    howdah_only = "checks how Howdah ends",
    |s| s
        .workers(1)
        .setting("grace", "\"500ms\"")
        .expect_exit(None)
        .expect_log("grace period")
        .php("hold.php", "require 'gate.php'; gate('g'); echo 'finished';"),
    |site| {
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/hold.php").bytes());
        let held = gate.wait();
        site.howdah().signal(Signal::TERM);
        assert_eq!(site.howdah_mut().wait(), Some(1), "a request was cut off");
        drop(held);
    },
);

scenario!(
    sigkill_of_howdah_leaves_no_process,
    howdah_only = "checks how Howdah ends",
    |s| s
        .workers(3)
        .expect_exit(None)
        .php("hold.php", "require 'gate.php'; gate('g'); echo 'x';")
        .php("spin.php", "require 'gate.php'; set_time_limit(0); mark('spins'); while (true) { }"),
    |site| {
        let gate = site.gate("g");
        let mut blocked = site.conn();
        blocked.send(Request::get("/hold.php").bytes());
        let held = gate.wait();
        let mut spinning = site.conn();
        spinning.send(Request::get("/spin.php").bytes());
        site.wait_for_mark("spins", 1);
        let processes = site.howdah().processes();
        assert!(processes.len() >= 5, "server, zygote and three workers: {processes:?}");
        site.howdah().signal(Signal::KILL);
        assert_eq!(site.howdah_mut().wait(), None, "ended by a signal");
        let gone = eventually(PATIENCE, || !processes.iter().any(|p| alive(*p)));
        assert!(gone, "left: {:?}", processes.iter().filter(|p| alive(**p)).collect::<Vec<_>>());
        drop(held);
    },
);

scenario!(
    reload_loses_no_request,
    howdah_only = "reload is Howdah's command",
    |s| s.workers(2).php("v.php", "require 'gate.php'; usleep(500); echo getmypid();"),
    |site| {
        let before = site.get_ok("/v.php");
        let stop = AtomicBool::new(false);
        let served = AtomicU64::new(0);
        let site = &*site;
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|i| {
                    let (stop, served) = (&stop, &served);
                    scope.spawn(move || {
                        let mut conn = site.conn();
                        while !stop.load(Ordering::Relaxed) {
                            if i % 2 == 0 {
                                conn = site.conn();
                            }
                            let request = if i < 2 { Request::get("/v.php") } else { Request::form("/v.php", "a=1") };
                            assert_eq!(conn.exchange(&request).status, 200);
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            let reloads: Vec<_> = (0..5)
                .map(|_| {
                    // Under load: requests are in flight each time.
                    let before = served.load(Ordering::Relaxed);
                    let loaded = eventually(PATIENCE, || served.load(Ordering::Relaxed) > before + 20);
                    (loaded, site.howdah().command(&["reload"]))
                })
                .collect();
            stop.store(true, Ordering::Relaxed);
            for client in clients {
                client.join().unwrap();
            }
            for (loaded, reload) in reloads {
                assert!(loaded && reload.status.success(), "{}", output_text(&reload));
            }
        });
        let renewed = eventually(PATIENCE, || site.get_ok("/v.php") != before);
        assert!(renewed, "the workers are new");
    },
);

scenario!(
    status_shows_pools_and_workers,
    howdah_only = "status is Howdah's command",
    |s| s.workers(2).php("hold.php", "require 'gate.php'; gate('g');"),
    |site| {
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/hold.php?seen-in-status").bytes());
        let held = gate.wait();
        let status = site.howdah().command(&["status"]);
        let text = output_text(&status);
        assert!(status.status.success(), "{text}");
        assert!(text.contains("default"), "{text}");
        assert!(text.contains("/hold.php?seen-in-status"), "{text}");
        held.release();
        conn.response("GET");
    },
);

scenario!(stop_ends_the_server, howdah_only = "stop is Howdah's command", |s| s, |site| {
    let stop = site.howdah().command(&["stop"]);
    assert!(stop.status.success(), "{}", output_text(&stop));
    assert_eq!(site.howdah_mut().wait(), Some(0));
    let status = site.howdah().command(&["status"]);
    assert!(!status.status.success(), "the stopped server still responds");
});

scenario!(stop_returns_when_the_server_has_ended, howdah_only = "stop is Howdah's command", holding, |site| {
    let gate = site.gate("g");
    let mut conn = site.conn();
    conn.send(Request::get("/hold.php").bytes());
    let held = gate.wait();
    let target = site.target().clone();
    std::thread::scope(|scope| {
        let site = &*site;
        let stop = scope.spawn(|| site.howdah().command(&["stop"]));
        assert!(eventually(PATIENCE, || Conn::try_open(&target).is_err()), "the server still accepts connections");
        assert!(!stop.is_finished(), "a request still runs");
        held.release();
        let stop = stop.join().unwrap();
        assert!(stop.status.success() && output_text(&stop).contains("stopped"), "{}", output_text(&stop));
    });
    assert_eq!(conn.response("GET").expect(200).text(), "finished");
    assert_eq!(site.howdah_mut().wait(), Some(0));
},);

scenario!(an_admin_address_in_use_is_an_error, howdah_only = "the endpoint is Howdah's own", |s| s, |site| {
    let root = site.place().root.display().to_string();
    let listen = format!("127.0.0.1:{}", free_port());
    let other = site.howdah().command(&["serve", &root, "--listen", &listen]);
    let said = output_text(&other);
    assert_eq!(other.status.code(), Some(1), "{said}");
    assert!(said.contains("another server answers there") && !said.contains("panicked"), "{said}");

    let file = site.place().run.join("precious");
    std::fs::write(&file, "content").unwrap();
    let admin = format!("unix:{}", file.display());
    let other = std::process::Command::new(program())
        .args(["serve", &root, "--listen", &listen, "--admin", &admin])
        .env("HOWDAH_ALLOW_ROOT", "true")
        .output()
        .unwrap();
    assert_eq!(other.status.code(), Some(1), "{}", output_text(&other));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "content", "only sockets may be replaced");
});

const BROKEN: &str = "<?php this does not parse";
const GOOD: &str = "<?php function from_preload() { return 'preloaded'; }";
const ASK: &str = "echo function_exists('from_preload') ? from_preload() : 'not preloaded', ' ', getmypid();";

fn preloading(setup: Setup, preload: &str) -> Setup {
    setup
        .ini("opcache.preload", "@ROOT@/preload.php")
        .ini("opcache.preload_user", &own_name())
        .file("preload.php", preload)
        .php("a.php", ASK)
}

/// Name of the user that runs the tests: PHP requires the user for preloading.
fn own_name() -> String {
    let output = std::process::Command::new("id").arg("-un").output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

scenario!(
    a_php_that_cannot_boot_is_shown_in_log_and_status,
    howdah_only = "PHP-FPM refuses to start",
    |s| preloading(s, BROKEN)
        .expect_boot_failure()
        .expect_log("PHP did not start")
        .expect_log("preload.php")
        .expect_log("pool_down"),
    |site| {
        assert_eq!(site.get_ok("/ready.txt"), "ready\n", "static files are served");
        let _ = site.wait_for_log(&["ERROR", "preload.php"]);
        let answer = site.get("/a.php");
        assert_eq!(answer.status, 503);
        assert!(answer.header("retry-after").is_some() && !answer.text().contains("preload.php"), "{}", answer.text());
        let text = output_text(&site.howdah().command(&["status"]));
        assert!(text.contains("preload.php"), "{text}");
    },
);

scenario!(
    a_pool_that_is_repaired_serves_again,
    howdah_only = "PHP-FPM refuses to start",
    |s| preloading(s, BROKEN)
        .expect_boot_failure()
        .expect_log("PHP did not start")
        .expect_log("preload.php")
        .expect_log("pool_down"),
    |site| {
        let _ = site.wait_for_log(&["ERROR", "preload.php"]);
        assert_eq!(site.get("/a.php").status, 503);
        replace_file(&site.file("preload.php"), GOOD);
        let back = eventually(PATIENCE, || site.get("/a.php").text().starts_with("preloaded "));
        assert!(back, "{}", site.log());
    },
);

scenario!(
    a_failed_reload_keeps_the_old_workers,
    howdah_only = "reload is Howdah's command",
    |s| preloading(s, GOOD).workers(1).expect_log("reload failed").expect_log("preload.php"),
    |site| {
        let before = site.get_ok("/a.php");
        assert!(before.starts_with("preloaded "), "{before}");
        replace_file(&site.file("preload.php"), BROKEN);
        let reload = site.howdah().command(&["reload"]);
        assert!(!reload.status.success(), "{}", output_text(&reload));
        assert_eq!(site.get_ok("/a.php"), before, "the old worker still serves");
        replace_file(&site.file("preload.php"), GOOD);
        let reload = site.howdah().command(&["reload"]);
        assert!(reload.status.success(), "{}", output_text(&reload));
        assert!(eventually(PATIENCE, || site.get_ok("/a.php") != before), "a new worker serves");
    },
);

scenario!(preloaded_functions_are_in_every_worker, |s| preloading(s, GOOD), |site| {
    for _ in 0..5 {
        let text = site.get_ok("/a.php");
        assert!(text.starts_with("preloaded "), "{text}");
    }
});

scenario!(
    no_worker_outlives_its_request_tree,
    |s| { s.workers(2).php("child.php", php!("lifecycle/no_worker_outlives_its_request_tree.php")) },
    |site| {
        let pid: u32 = site.get_ok("/child.php").parse().unwrap();
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        if !site.is_reference() {
            assert!(!children(site.howdah().pid()).is_empty());
        }
    },
);

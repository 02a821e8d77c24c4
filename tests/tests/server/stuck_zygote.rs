//! A pool whose zygote or template is stopped or hangs: it forks nothing, and is replaced. The same applies to a worker
//! that does not end.

use howdah_tests::process::{PATIENCE, alive, eventually, identity, signal};
use howdah_tests::{Setup, Site, scenario, script_scenario};
use rustix::process::Signal;

/// One worker, which reports its process id and that of its parent, its zygote.
fn one_worker(setup: Setup) -> Setup {
    setup.workers(1).limit("boot_timeout", 2000).expect_log("or its template hangs: starting another")
}

/// Stops a process, ends the worker, and checks that requests are served again, by workers of another generation.
fn replaces(site: &Site, target: &str, stopped: impl FnOnce([u32; 2]) -> u32) {
    let ask = || serde_json::from_str::<[u32; 2]>(&site.get_ok(target)).unwrap();
    let [worker, zygote] = ask();
    let process = stopped([worker, zygote]);
    let known = identity(process).unwrap();
    signal(process, Signal::STOP);
    signal(worker, Signal::KILL);
    // It waits in the queue until the time limit has passed.
    let [_, other] = ask();
    assert_ne!(other, zygote);
    assert!(eventually(PATIENCE, || !alive(known)), "the process that hangs is killed");
}

scenario!(
    a_stopped_zygote_is_replaced,
    howdah_only = "PHP-FPM has no such process",
    |s| one_worker(s).allow_log("worker").php("who.php", "echo json_encode([getmypid(), posix_getppid()]);"),
    |site| replaces(site, "/who.php", |[_, zygote]| zygote)
);

#[test]
fn a_stopped_template_is_replaced() {
    let worker =
        "while (frankenphp_handle_request(function () { echo json_encode([getmypid(), posix_getppid()]); })) {}";
    let setup = |s: Setup| one_worker(s).allow_log("worker").script("worker.php").php("worker.php", worker);
    howdah_tests::run(howdah_tests::Mode::Snapshot, setup, |site| {
        let status = site.howdah().status();
        let template = status["pools"][0]["snapshot_template"].as_u64().expect("status names the template");
        replaces(site, "/", |_| template as u32);
    });
}

// Regression: it had announced its end, was not among those with a request, and so was no longer watched.
script_scenario!(
    a_stopped_worker_that_is_to_end_is_killed,
    howdah_only = "PHP-FPM limits the time by another setting",
    |s| {
        let limit = s.workers(1).setting("boot_timeout", "\"2s\"").expect_log("worker did not end within");
        limit.php("pid.php", "echo getmypid();")
    },
    |site| {
        let worker: u32 = site.get_ok("/pid.php").parse().unwrap();
        let known = identity(worker).unwrap();
        // Its request is done only a moment after the client has its response.
        let is_idle = || {
            let status = site.howdah().status();
            status["pools"][0]["workers"].as_array().unwrap().iter().all(|worker| worker["busy"] == false)
        };
        assert!(eventually(PATIENCE, is_idle));
        signal(worker, Signal::STOP);
        let reloaded = site.howdah().command(&["reload"]);
        assert!(reloaded.status.success(), "{reloaded:?}");
        assert_ne!(site.get_ok("/pid.php"), worker.to_string());
        assert!(eventually(PATIENCE, || !alive(known)), "the worker that hangs is killed");
    },
);

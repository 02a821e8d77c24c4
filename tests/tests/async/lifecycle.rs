//! Async mode: requests that fail, exit, are cancelled or lose their worker, next to others that must not notice.

use howdah_tests::at_once::{CROWD, at_once, crowd_of, marker, meeting, only_own};
use howdah_tests::process::{PATIENCE, children, descriptors, eventually};
use howdah_tests::{Mode, Request, Setup, Site, php, run};
use rustix::process::Signal;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// One request of the crowd, with the marker `mark6end`, runs `bad`; the others wait meanwhile, then verify their own
/// state. `$m` is the marker.
fn one_fails(setup: impl Fn(Setup) -> Setup, bad: &str, check: impl Fn(&howdah_tests::Response)) {
    let script = php!("lifecycle/one_fails.php", BAD = bad);
    let library = "class Beside { function __construct(public $m) {} function __destruct() { echo \" ~$this->m\"; } }
        function recurse($n) { usleep(100); return recurse($n + 1) + 1; }";
    run(
        Mode::Async,
        |s| {
            setup(crowd_of(s, CROWD))
                .ini("memory_limit", "16M")
                .library("beside.php", library)
                .php("one.php", &meeting(&format!("require_once __DIR__ . '/beside.php'; {script}")))
                .php("after.php", "echo 'served';")
        },
        |site| {
            let answers = at_once(site, CROWD, |number, mark| {
                Request::get(&format!("/one.php?m={mark}{}", if number == CROWD / 2 { "&bad" } else { "" }))
            });
            for (number, answer) in answers.iter().enumerate() {
                if number == CROWD / 2 {
                    check(answer);
                    continue;
                }
                only_own(answer, number);
                let mark = marker(number);
                assert_eq!((answer.status, answer.text()), (200, format!("buffered {mark}1{mark} ~{mark}")));
            }
            for _ in 0..5 {
                assert_eq!(site.get_ok("/after.php"), "served");
            }
        },
    );
}

#[test]
fn a_fatal_error_is_one_requests_own() {
    one_fails(
        |s| s.expect_log("undefined_function_of_mark"),
        "(\"undefined_function_of_$m\")();",
        |answer| assert!(answer.text().contains("undefined_function_of_mark6end"), "{}", answer.text()),
    );
}

/// Regression: the class is left half linked, and the next request that declared it crashed the worker.
#[test]
fn an_anonymous_class_that_does_not_fit_is_a_fatal_error_for_each_request_that_declares_it() {
    for (kind, error) in
        ["must be compatible with", "contains 1 abstract method", "contains 1 abstract method"].iter().enumerate()
    {
        run(
            Mode::Async,
            |s| {
                crowd_of(s, CROWD)
                    .expect_log(error)
                    .library("classes.php", php!("lifecycle/anonymous_classes_that_do_not_fit.php"))
                    .php(
                        "one.php",
                        &meeting(&format!(
                            "static $classes; $classes ??= require __DIR__ . '/classes.php'; meet('here'); echo \"$m \"; \
                             $classes[{kind}]();"
                        )),
                    )
                    .php("after.php", "echo 'served';")
            },
            |site| {
                let answers = at_once(site, CROWD, |_, mark| Request::get(&format!("/one.php?m={mark}")));
                for (number, answer) in answers.iter().enumerate() {
                    let text = answer.text();
                    assert!(text.contains("Fatal error") && text.contains(error), "{}: {text}", answer.status);
                    only_own(answer, number);
                }
                assert_eq!(site.get_ok("/after.php"), "served");
                assert!(!site.log().contains("worker died"), "{}", site.log());
            },
        );
    }
}

#[test]
fn an_error_that_cannot_be_caught_is_one_requests_own() {
    one_fails(
        |s| s.expect_log("fatal by mark6end"),
        "trigger_error(\"fatal by $m\", E_USER_ERROR);",
        |answer| assert!(answer.text().contains("fatal by mark6end"), "{}", answer.text()),
    );
}

#[test]
fn an_uncaught_exception_is_one_requests_own() {
    one_fails(
        |s| s.expect_log("thrown by mark6end"),
        "pause(); throw new Exception(\"thrown by $m\");",
        |answer| assert!(answer.text().contains("Uncaught Exception: thrown by mark6end"), "{}", answer.text()),
    );
}

#[test]
fn exit_ends_one_request() {
    one_fails(|s| s, "exit(\"bye $m\");", |answer| assert_eq!(answer.text(), "buffered bye mark6end ~mark6end"));
}

#[test]
fn exit_in_a_destructor_ends_one_request() {
    one_fails(
        |s| s.library("leaves.php", php!("lifecycle/exit_in_a_destructor_ends_one_request.php")),
        "require_once __DIR__ . '/leaves.php'; $l = new Leaves($m); unset($l); echo 'not reached';",
        |answer| assert_eq!(answer.text(), "buffered left mark6end ~mark6end"),
    );
}

#[test]
fn exit_in_a_fiber_ends_one_request() {
    one_fails(
        |s| s,
        php!("lifecycle/exit_in_a_fiber_ends_one_request.php"),
        |answer| assert_eq!(answer.text(), "buffered left mark6end ~mark6end"),
    );
}

#[test]
fn exit_in_an_output_callback_ends_one_request() {
    one_fails(
        |s| s,
        "ob_start(function ($text) { usleep(1000); exit; }); echo 'lost'; ob_end_flush(); echo 'not reached';",
        |answer| assert!(!answer.text().contains("not reached"), "{}", answer.text()),
    );
}

#[test]
fn memory_exhausted_is_one_requests_own() {
    one_fails(
        |s| s.measures_memory().expect_log("Allowed memory size"),
        "$a = []; while (true) { $a[] = str_repeat($m, 100000); }",
        |answer| assert!(answer.text().contains("Allowed memory size"), "{}", &answer.text()[..200]),
    );
}

#[test]
fn an_exception_in_a_coroutine_reaches_its_awaiter() {
    one_fails(
        |s| s,
        php!("lifecycle/an_exception_in_a_coroutine_reaches_its_awaiter.php"),
        |answer| assert_eq!(answer.text(), "buffered caught of mark6end ~mark6end"),
    );
}

/// Each request of the crowd waits at its own gate; what happens to one of them must not affect the others.
fn gated(setup: Setup, code: &str) -> Setup {
    crowd_of(setup, CROWD).php("one.php", &meeting(code)).php("after.php", "echo 'served';")
}

const HELD: &str = "require_once __DIR__ . '/gate.php'; mark('begun'); gate(\"gate$m\"); echo $m, $_GET['m'];";

#[test]
fn a_client_that_leaves_is_noticed_by_its_own_request_only() {
    run(
        Mode::Async,
        |s| {
            gated(s, HELD)
                .php("leave.php", php!("lifecycle/a_client_that_leaves_is_noticed_by_its_own_request_only.php"))
        },
        |site| {
            let gates: Vec<_> = (0..CROWD).map(|n| site.gate(&format!("gate{}", marker(n)))).collect();
            let mut open = Vec::new();
            for number in 0..CROWD {
                let mut conn = site.conn();
                conn.send(Request::get(&format!("/one.php?m={}", marker(number))).bytes());
                open.push(conn);
            }
            site.wait_for_mark("begun", CROWD as u64);
            let mut leaver = site.conn();
            leaver.send(Request::get("/leave.php").bytes());
            site.wait_for_mark("leaver", 1);
            leaver.reset();
            site.wait_for_mark("noticed", 1);
            assert_eq!(site.marks("never"), 0, "the script ended when it printed");
            for (number, (gate, conn)) in gates.iter().zip(&mut open).enumerate() {
                gate.release();
                let answer = conn.response("GET").expect(200);
                only_own(&answer, number);
            }
        },
    );
}

#[test]
fn a_client_that_leaves_does_not_end_requests_that_ignore_it_or_have_responded() {
    run(
        Mode::Async,
        |s| {
            crowd_of(s, CROWD)
                .php(
                    "ignore.php",
                    php!("lifecycle/a_client_that_leaves_does_not_end_requests_that_ignore_it_or_have_responded_ignore.php"),
                )
                .php(
                    "finish.php",
                    php!("lifecycle/a_client_that_leaves_does_not_end_requests_that_ignore_it_or_have_responded_finish.php"),
                )
        },
        |site| {
            let (ignore, finish) = (site.gate("ignore"), site.gate("finish"));
            let mut ignored = site.conn();
            ignored.send(Request::get("/ignore.php").bytes());
            let held = ignore.wait();
            assert_eq!(site.get_ok("/finish.php"), "one");
            let finishing = finish.wait();
            ignored.reset();
            // The server checks for disconnected clients ten times a second; the response to another request comes
            // later.
            for _ in 0..5 {
                assert_eq!(site.get_ok("/gate.php"), "");
                std::thread::sleep(Duration::from_millis(60));
            }
            held.release();
            finishing.release();
            site.wait_for_mark("ignored", 1);
            site.wait_for_mark("finished", 1);
        },
    );
}

#[test]
fn errors_while_a_request_opens_or_closes_do_not_need_a_function() {
    run(
        Mode::Async,
        |s| {
            crowd_of(s, CROWD)
                .ini("display_errors", "0")
                .ini("post_max_size", "1000")
                .expect_log("POST Content-Length of")
                .allow_log("session")
                .allow_log("Failed to write session data")
                .php("one.php", php!("lifecycle/errors_while_a_request_opens_or_closes_do_not_need_a_function.php"))
        },
        |site| {
            let answers = at_once(site, CROWD, |_, mark| {
                Request::form(&format!("/one.php?m={mark}"), &format!("a={}", "x".repeat(2000)))
            });
            for (number, answer) in answers.iter().enumerate() {
                assert_eq!((answer.status, answer.text()), (200, format!("{}0", marker(number))));
            }
        },
    );
}

#[test]
fn a_deadline_ends_its_own_request_only() {
    run(
        Mode::Async,
        |s| {
            gated(s, php!("lifecycle/a_deadline_ends_its_own_request_only.php"))
                .setting("deadline", "\"10s\"")
                .allow_log("deadline")
                .allow_log("CancelledException")
                .allow_log("timeout")
        },
        |site| {
            let pid = worker(site);
            let answers = at_once(site, CROWD, |number, mark| {
                Request::get(&format!("/one.php?m={mark}{}", if number == 5 { "&late" } else { "" }))
            });
            for (number, answer) in answers.iter().enumerate() {
                if number == 5 {
                    assert_eq!(answer.status, 504);
                } else {
                    assert_eq!((answer.status, answer.text()), (200, marker(number)));
                }
            }
            site.wait_for_mark("unwound", 1);
            assert_eq!(site.get_ok("/after.php"), "served");
            assert_eq!(worker(site), pid, "the worker was not replaced");
        },
    );
}

/// The only worker: the zygote's one child, apart from a snapshot pool's template.
fn worker(site: &Site) -> u32 {
    let mut found = Vec::new();
    let _ = eventually(PATIENCE, || {
        let status = site.howdah().try_status().unwrap_or_default();
        let template = status["pools"][0]["snapshot_template"].as_u64();
        found = children(site.howdah().pid()).into_iter().flat_map(children).collect();
        found.retain(|pid| Some(u64::from(*pid)) != template);
        found.len() == 1
    });
    assert_eq!(found.len(), 1, "workers: {found:?}");
    found[0]
}

#[test]
fn safe_requests_of_a_killed_worker_are_run_again() {
    let script = php!("lifecycle/safe_requests_of_a_killed_worker_are_run_again.php");
    run(
        Mode::Async,
        |s| gated(s, script).expect_log("worker_died").allow_log("worker died"),
        |site| {
            let mut open = Vec::new();
            for number in 0..CROWD {
                let mut conn = site.conn();
                let target = format!("/one.php?m={}", marker(number));
                let request = if number % 4 == 3 { Request::form(&target, "a=1") } else { Request::get(&target) };
                conn.send(request.bytes());
                open.push(conn);
            }
            site.wait_for_mark("begun", CROWD as u64);
            howdah_tests::process::signal(worker(site), Signal::KILL);
            for (number, conn) in open.iter_mut().enumerate() {
                let answer = conn.response("GET");
                if number % 4 == 3 {
                    assert_eq!((answer.status, site.marks(&format!("tries{}", marker(number)))), (502, 1));
                } else {
                    only_own(&answer, number);
                    assert_eq!((answer.status, answer.text()), (200, marker(number)));
                }
            }
        },
    );
}

#[test]
fn a_reload_under_load_loses_nothing() {
    run(
        Mode::Async,
        |s| crowd_of(s, CROWD).workers(2).php("one.php", &meeting("pause(); echo $m; pause();")),
        |site| {
            let (stop, served) = (AtomicBool::new(false), AtomicU64::new(0));
            let site = &*site;
            std::thread::scope(|scope| {
                for number in 0..CROWD {
                    let (stop, served) = (&stop, &served);
                    scope.spawn(move || {
                        let mut conn = site.conn();
                        while !stop.load(Ordering::Relaxed) {
                            let mark = marker(number);
                            let answer = conn.exchange(&Request::get(&format!("/one.php?m={mark}"))).expect(200);
                            assert_eq!(answer.text(), mark);
                            served.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                let reloads = scope.spawn(|| {
                    for _ in 0..3 {
                        let before = served.load(Ordering::Relaxed);
                        assert!(eventually(PATIENCE, || served.load(Ordering::Relaxed) > before + 20));
                        let output = site.howdah().command(&["reload"]);
                        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                    }
                });
                let outcome = reloads.join();
                stop.store(true, Ordering::Relaxed);
                outcome.unwrap();
            });
        },
    );
}

/// True if the worker has an epoll descriptor; only async mode's loop needs one.
fn waits_in_a_loop(mode: Mode) -> bool {
    let mut found = false;
    run(
        mode,
        |s| s.workers(1).php("ok.php", "usleep(1000); echo 'ok';"),
        |site| {
            assert_eq!(site.get_ok("/ok.php"), "ok");
            found = descriptors(worker(site)).keys().any(|name| name.contains("eventpoll"));
        },
    );
    found
}

#[test]
fn only_async_mode_has_an_event_loop() {
    assert!(waits_in_a_loop(Mode::Async));
    for mode in [Mode::Classic, Mode::Worker, Mode::Snapshot] {
        assert!(!waits_in_a_loop(mode), "{mode:?}");
    }
}

/// In worker mode a sleep blocks the process, so requests of one worker never sleep concurrently.
#[test]
fn blocking_calls_block_in_worker_mode() {
    for (mode, turns, expected) in [(Mode::Worker, 5, 1), (Mode::Async, 1000, 4)] {
        let script = format!(
            "require_once __DIR__ . '/sleepers.php'; Sleepers::$most = max(Sleepers::$most, ++Sleepers::$in);
            for ($turn = 0; Sleepers::$most < 4 && $turn < {turns}; $turn++) {{ usleep(20000); }}
            echo Sleepers::$most; Sleepers::$in--;"
        );
        run(
            mode,
            |s| {
                s.workers(1)
                    .library(
                        "sleepers.php",
                        "class Sleepers { public static int $in = 0; public static int $most = 0; }",
                    )
                    .php("one.php", &script)
            },
            |site| {
                let answers = at_once(site, 4, |_, _| Request::get("/one.php"));
                let most = answers.iter().map(|a| a.text().parse::<u32>().unwrap()).max();
                assert_eq!(most, Some(expected), "{mode:?}: asleep at once");
            },
        );
    }
}

#[test]
fn a_retiring_worker_finishes_its_requests() {
    run(
        Mode::Async,
        |s| crowd_of(s, CROWD).setting("max_requests", "30").php("one.php", &meeting("usleep(20000); echo $m;")),
        |site| {
            for _ in 0..6 {
                for (number, answer) in
                    at_once(site, CROWD, |_, mark| Request::get(&format!("/one.php?m={mark}"))).iter().enumerate()
                {
                    assert_eq!((answer.status, answer.text()), (200, marker(number)));
                }
            }
        },
    );
}

#[test]
fn a_deadlock_is_reported_with_all_stacks() {
    run(
        Mode::Async,
        |s| {
            crowd_of(s, CROWD)
                .expect_log("coroutines wait for each other")
                .expect_log("waits (park)")
                .php("one.php", php!("lifecycle/a_deadlock_is_reported_with_all_stacks.php"))
        },
        |site| {
            assert_eq!(site.get_ok("/one.php"), "deadlock twice");
            let both = eventually(PATIENCE, || site.log().matches("stuck_here").count() >= 2);
            assert!(both, "{}", site.log());
        },
    );
}

/// A process that a script forks has the coroutines' memory but not their loop: its calls block, and no other coroutine
/// continues in it.
#[test]
fn a_forked_process_runs_its_own_request_only() {
    let script = php!("lifecycle/a_forked_process_runs_its_own_request_only.php");
    run(
        Mode::Async,
        |s| crowd_of(s, CROWD).ini("ffi.enable", "1").php("one.php", &meeting(script)),
        |site| {
            let answers = at_once(site, CROWD, |number, mark| {
                Request::get(&format!("/one.php?m={mark}{}", if number == 6 { "&forks" } else { "" }))
            });
            for (number, answer) in answers.iter().enumerate() {
                let mark = marker(number);
                let expected = if number == 6 { format!("7{mark}") } else { mark.clone() };
                assert_eq!((answer.status, answer.text()), (200, expected));
                assert_eq!(site.marks(&format!("went{mark}")), u64::from(number != 6), "ran in another process too");
            }
        },
    );
}

/// Regression: memory for the engine's state of a coroutine that was started before the worker served had no size, and
/// its first wait overwrote the heap.
#[test]
fn coroutines_started_while_the_script_boots_may_wait() {
    let script = php!("lifecycle/coroutines_started_while_the_script_boots_may_wait.php");
    run(
        Mode::Async,
        |s| {
            let s = s.workers(1).script("boot.php");
            s.php("boot.php", script)
        },
        |site| {
            assert!(eventually(PATIENCE, || site.get_ok("/") == "served beside 0"));
        },
    );
}

//! Log lines about workers that do not boot: one for each cause, however many workers retry however often.

use howdah_tests::site::replace_file;
use howdah_tests::{Mode, Setup, run};

/// A script that fails in a nested call; errors are logged and displayed, as PHP does without a php.ini.
fn failing(setup: Setup) -> Setup {
    setup
        .workers(3)
        .script("worker.php")
        .ini("display_errors", "1")
        .ini("log_errors", "1")
        .ini("html_errors", "1")
        .expect_boot_failure()
        .expect_log("no application")
        .php(
            "worker.php",
            "require 'gate.php'; mark('boots');
            function deeper() { throw new Exception('no application'); }\nfunction deep() { deeper(); }\ndeep();",
        )
}

/// Error lines, and warnings other than the server's own about its start (`howdah:`).
fn errors(log: &str) -> Vec<&str> {
    log.lines()
        .filter(|line| line.contains(" ERROR ") || (line.contains(" WARN ") && !line.contains("howdah:")))
        .collect()
}

#[test]
fn a_failed_boot_is_one_line_with_its_trace_and_the_next_attempt() {
    for mode in [Mode::Worker, Mode::Snapshot] {
        run(mode, failing, |site| {
            let first = site.wait_for_log(&["ended before it was ready", "deeper()", "; next attempt in 100ms"]);
            assert!(first.contains("ERROR") && first.contains("no application"), "{mode:?}: {first}");
            // At least two more attempts, of all workers in worker mode.
            site.wait_for_mark("boots", if mode == Mode::Worker { 9 } else { 3 });
            let log = site.log();
            assert_eq!(errors(&log).len(), 1, "{mode:?}: {log}");
            assert!(!log.contains("<br />"), "{mode:?}: {log}");
            let status = site.howdah().command(&["status", "--json"]);
            assert!(String::from_utf8_lossy(&status.stdout).contains("deeper()"), "the status has all of it");
            // A different error is logged again.
            replace_file(
                &site.file("worker.php"),
                "<?php\nfunction elsewhere() { throw new Exception('no application either'); }\nelsewhere();",
            );
            let _ = site.wait_for_log(&["elsewhere()", "next attempt in"]);
            assert_eq!(errors(&site.log()).len(), 2, "{mode:?}: {}", site.log());
        });
    }
}

/// An error that the application survives is in the log, though it came before the worker was ready.
#[test]
fn an_error_of_a_boot_that_succeeds_is_logged_too() {
    for mode in [Mode::Worker, Mode::Snapshot] {
        let setup = |s: Setup| {
            let script = "Howdah\\log('half an application', LOG_ERR);
                while (frankenphp_handle_request(static function () { echo 'serves'; })) {}";
            s.workers(1).script("worker.php").expect_log("half an application").php("worker.php", script)
        };
        run(mode, setup, |site| {
            assert_eq!(site.get_ok("/x"), "serves");
            let line = site.wait_for_log(&["half an application"]);
            assert!(line.contains("ERROR php"), "{line}");
            assert_eq!(site.log().matches("half an application").count(), 1, "{}", site.log());
        });
    }
}

/// A script that just ends has logged no error that would explain it.
#[test]
fn a_script_that_ends_without_an_error_is_named() {
    let setup = |s: Setup| {
        s.workers(1)
            .script("worker.php")
            .expect_boot_failure()
            .expect_log("ended before it called")
            .php("worker.php", "")
    };
    run(Mode::Worker, setup, |site| {
        let line = site.wait_for_log(&["ended before it called frankenphp_handle_request()", "next attempt in"]);
        assert!(line.contains("worker.php"), "{line}");
        assert_eq!(errors(&site.log()).len(), 1, "{}", site.log());
    });
}

//! Log lines about workers that do not boot: each message once, however many workers retry however often.

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
        .allow_log("ended before it")
        .php(
            "worker.php",
            "function deeper() { throw new Exception('no application'); }\nfunction deep() { deeper(); }\ndeep();",
        )
}

#[test]
fn the_trace_of_a_failed_boot_is_logged_once() {
    for mode in [Mode::Worker, Mode::Snapshot] {
        run(mode, failing, |site| {
            let _ = site.wait_for_log(&["next attempt in 900ms"]);
            let log = site.log();
            assert_eq!(log.matches("deeper()").count(), 1, "{mode:?}: {log}");
            assert!(!log.contains("<br />"), "{mode:?}: {log}");
            // Each attempt logs the error, in one line.
            assert!(log.matches("next attempt in").count() >= 3 && log.matches("no application").count() >= 4, "{log}");
            let status = site.howdah().command(&["status", "--json"]);
            assert!(String::from_utf8_lossy(&status.stdout).contains("deeper()"), "the status has all of it");
            // A different error is logged again.
            replace_file(
                &site.file("worker.php"),
                "<?php\nfunction elsewhere() { throw new Exception('no application either'); }\nelsewhere();",
            );
            let _ = site.wait_for_log(&["elsewhere()"]);
        });
    }
}

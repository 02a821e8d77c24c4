//! Worker scripts that do not reach their loop: the log names their current line, and a stop does not wait for them.

use howdah_tests::{Mode, run};

const HANGS: &str =
    "file_put_contents(dirname(__DIR__) . '/marks/booting', 'x');\nwhile (true) {\n    usleep(10000);\n}";

#[test]
fn a_script_that_hangs_before_its_loop_is_reported_with_its_line() {
    run(
        Mode::Worker,
        |s| {
            s.script("worker.php")
                .php("worker.php", HANGS)
                .workers(2)
                .limit("boot_timeout", 2000)
                .expect_boot_failure()
                .allow_log("boot timeout")
                .allow_log("killed by a signal")
                .expect_log("is still booting")
        },
        |site| {
            let line = site.wait_for_log(&["worker is still booting: "]);
            assert!(line.contains("has not called frankenphp_handle_request(), PHP is at "), "{line}");
            assert!(line.contains("worker.php:3") || line.contains("worker.php:4"), "{line}");
            assert_eq!(site.log().matches("is still booting").count(), 1, "once for all workers: {}", site.log());
        },
    );
}

/// They have no request that could end within the grace time.
#[test]
fn a_stop_ends_workers_that_boot_at_once() {
    run(
        Mode::Worker,
        |s| s.script("worker.php").php("worker.php", HANGS).workers(1).setting("grace", "\"1h\"").expect_boot_failure(),
        |site| site.wait_for_mark("booting", 1),
    );
}

//! Async mode's library for PHP (`php/async`) and the package `howdah/swoole-compat`, as requests use them.
//! The cases are PHP files in `php/library/`.

use howdah_tests::servers::Server;
use howdah_tests::{Mode, Setup, Site, php, run};

/// Sets up an async worker that runs cases; `files` are those of the scenario.
pub(crate) fn setup(setup: Setup, files: &[(&str, &str)]) -> Setup {
    let setup = setup
        .workers(1)
        .setting("concurrency", "50")
        .script("case.php")
        .file("case.php", include_str!("php/library/case.php"));
    files.iter().fold(setup, |setup, (name, text)| setup.file(name, text))
}

/// Requests a case and checks its response.
pub(crate) fn passes(site: &Site, target: &str) {
    passes_with(site, target, 200);
}

/// As `passes`, with another status, set by an error outside of the case.
fn passes_with(site: &Site, target: &str, status: u16) {
    let answer = site.get(target).expect(status).json();
    assert_eq!(answer["wrong"].to_string(), "[]", "{answer}");
    assert!(answer["checks"].as_u64().unwrap() > 0, "{answer}");
}

#[test]
fn tasks_end_with_their_result_their_error_or_by_cancellation() {
    run(
        Mode::Async,
        |s| setup(s, &[("tasks.php", include_str!("php/library/tasks.php"))]),
        // A second time in the same worker: nothing must be left behind.
        |site| (0..2).for_each(|_| passes(site, "/?case=tasks")),
    );
}

#[test]
fn coroutines_share_by_channels_locks_scopes_contexts_and_timers() {
    run(
        Mode::Async,
        |s| setup(s, &[("sharing.php", include_str!("php/library/sharing.php"))]),
        |site| (0..2).for_each(|_| passes(site, "/?case=sharing")),
    );
}

#[test]
fn pools_keep_their_limit_and_get_everything_back() {
    run(
        Mode::Async,
        |s| setup(s, &[("pool.php", include_str!("php/library/pool.php"))]),
        |site| (0..2).for_each(|_| passes(site, "/?case=pool")),
    );
}

#[test]
fn a_session_of_a_driver_whose_sql_is_not_read_counts_as_changed() {
    run(
        Mode::Async,
        |s| setup(s, &[("drivers.php", include_str!("php/library/drivers.php"))]),
        |site| passes(site, "/?case=drivers"),
    );
}

#[test]
fn pooled_mysql_connections_are_as_good_as_new() {
    let server = Server::mariadb();
    run(
        Mode::Async,
        |s| {
            setup(s, &[("pool_mysql.php", include_str!("php/library/pool_mysql.php"))])
                .expect_log("with an open transaction, which was rolled back; returned at")
        },
        |site| passes(site, &format!("/?case=pool_mysql&port={}", server.port)),
    );
}

#[test]
fn pooled_postgres_connections_are_as_good_as_new() {
    let server = Server::postgres();
    run(
        Mode::Async,
        |s| {
            setup(s, &[("pool_postgres.php", include_str!("php/library/pool_postgres.php"))])
                .expect_log("with an open transaction, which was rolled back")
        },
        |site| passes(site, &format!("/?case=pool_postgres&port={}", server.port)),
    );
}

#[test]
fn pooled_redis_connections_are_as_good_as_new() {
    let server = Server::redis(false);
    run(
        Mode::Async,
        |s| {
            setup(s, &[("pool_redis.php", include_str!("php/library/pool_redis.php"))])
                .expect_log("with an open transaction, which was rolled back")
        },
        |site| passes(site, &format!("/?case=pool_redis&port={}", server.port)),
    );
}

#[test]
fn swooles_names_work_without_swoole() {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../php/swoole-compat");
    run(
        Mode::Async,
        |s| setup(s, &[("swoole.php", include_str!("php/library/swoole.php"))]),
        |site| passes(site, &format!("/?case=swoole&package={package}")),
    );
}

#[test]
fn leftovers_of_a_request_end_with_it() {
    let code = php!("library/leftovers_of_a_request_end_with_it.php");
    run(
        Mode::Async,
        |s| setup(s, &[("leave.php", &format!("<?php {code}"))]),
        |site| {
            for times in 1..=3 {
                passes(site, "/?case=leave");
                site.wait_for_mark("deferred", times);
                site.wait_for_mark("after", times);
            }
        },
    );
}

/// Regression: the exception vanished. It belongs to the request, like that of any destructor.
#[test]
fn an_exception_of_a_destructor_at_a_tasks_end_is_reported() {
    let code = php!("library/an_exception_of_a_destructor_at_a_tasks_end_is_reported.php");
    run(
        Mode::Async,
        |s| setup(s, &[("throws.php", &format!("<?php {code}"))]).expect_log("thrown at the very end"),
        |site| (0..2).for_each(|_| passes_with(site, "/?case=throws", 500)),
    );
}

/// Regression: a fatal error there left the object in the coroutine's slot, which is then reused.
#[test]
fn a_destructor_that_fails_at_a_coroutines_end_ends_the_coroutine() {
    let code = php!("library/a_destructor_that_fails_at_a_coroutines_end_ends_the_coroutine.php");
    run(
        Mode::Async,
        |s| setup(s, &[("fails.php", &format!("<?php {code}"))]).expect_log("failed at the very end"),
        |site| passes_with(site, "/?case=fails", 500),
    );
}

#[test]
fn errors_that_are_not_awaited_are_logged() {
    let code = php!("library/errors_that_are_not_awaited_are_logged.php");
    run(
        Mode::Async,
        |s| {
            setup(s, &[("lost.php", &format!("<?php {code}"))])
                .expect_log("in a task that was not awaited: Exception: lost in a task")
                .expect_log("in a timer: Exception: lost in a timer")
        },
        |site| passes(site, "/?case=lost"),
    );
}

#[test]
fn responses_do_not_wait_until_a_busy_worker_is_idle() {
    let code = php!("library/responses_do_not_wait_until_a_busy_worker_is_idle.php");
    run(
        Mode::Async,
        |s| setup(s, &[("busy.php", &format!("<?php {code}"))]),
        |site| (0..3).for_each(|_| passes(site, "/?case=busy")),
    );
}

#[test]
fn a_worker_ends_although_its_coroutines_keep_starting_others() {
    let code = php!("library/a_worker_ends_although_its_coroutines_keep_starting_others.php");
    run(
        Mode::Async,
        |s| setup(s, &[("chain.php", &format!("<?php {code}"))]),
        // The end of the scenario stops the server and checks its exit.
        |site| {
            passes(site, "/?case=chain");
            site.wait_for_mark("turn", 3);
        },
    );
}

#[test]
fn a_stream_may_be_read_while_another_coroutine_looks_at_it() {
    let code = php!("library/a_stream_may_be_read_while_another_coroutine_looks_at_it.php");
    run(Mode::Async, |s| setup(s, &[("look.php", &format!("<?php {code}"))]), |site| passes(site, "/?case=look"));
}

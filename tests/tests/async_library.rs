//! Async mode's library for PHP (`php/async`) and the package `howdah/swoole-compat`, as requests use them.
//! The cases are PHP files in `async_library/`.

use howdah_tests::servers::Server;
use howdah_tests::{Kind, Setup, Site, run};

/// An async worker that runs cases; `files` are those of the scenario.
pub(crate) fn setup(setup: Setup, files: &[(&str, &str)]) -> Setup {
    let setup = setup
        .workers(1)
        .setting("mode", "\"async\"")
        .setting("concurrency", "50")
        .setting("script", "\"../root/case.php\"")
        .file("case.php", include_str!("async_library/case.php"));
    files.iter().fold(setup, |setup, (name, text)| setup.file(name, text))
}

/// Asks for a case and judges its answer.
pub(crate) fn passes(site: &Site, target: &str) {
    passes_with(site, target, 200);
}

/// The same with another status, which an error beside the case has set.
fn passes_with(site: &Site, target: &str, status: u16) {
    let answer = site.get(target).expect(status).json();
    assert_eq!(answer["wrong"].to_string(), "[]", "{answer}");
    assert!(answer["checks"].as_u64().unwrap() > 0, "{answer}");
}

#[test]
fn tasks_end_with_their_result_their_error_or_by_cancellation() {
    run(
        Kind::Classic,
        |s| setup(s, &[("tasks.php", include_str!("async_library/tasks.php"))]),
        // A second time in the same worker: nothing is left behind.
        |site| (0..2).for_each(|_| passes(site, "/?case=tasks")),
    );
}

#[test]
fn coroutines_share_by_channels_locks_scopes_contexts_and_timers() {
    run(
        Kind::Classic,
        |s| setup(s, &[("sharing.php", include_str!("async_library/sharing.php"))]),
        |site| (0..2).for_each(|_| passes(site, "/?case=sharing")),
    );
}

#[test]
fn pools_keep_their_limit_and_get_everything_back() {
    run(
        Kind::Classic,
        |s| setup(s, &[("pool.php", include_str!("async_library/pool.php"))]),
        |site| (0..2).for_each(|_| passes(site, "/?case=pool")),
    );
}

#[test]
fn pooled_mysql_connections_are_as_good_as_new() {
    let server = Server::mariadb();
    run(
        Kind::Classic,
        |s| {
            setup(s, &[("pool_mysql.php", include_str!("async_library/pool_mysql.php"))])
                .expect_log("with an open transaction, which was rolled back; given back at")
        },
        |site| passes(site, &format!("/?case=pool_mysql&port={}", server.port)),
    );
}

#[test]
fn pooled_postgres_connections_are_as_good_as_new() {
    let server = Server::postgres();
    run(
        Kind::Classic,
        |s| {
            setup(s, &[("pool_postgres.php", include_str!("async_library/pool_postgres.php"))])
                .expect_log("with an open transaction, which was rolled back")
        },
        |site| passes(site, &format!("/?case=pool_postgres&port={}", server.port)),
    );
}

#[test]
fn pooled_redis_connections_are_as_good_as_new() {
    let server = Server::redis(false);
    run(
        Kind::Classic,
        |s| {
            setup(s, &[("pool_redis.php", include_str!("async_library/pool_redis.php"))])
                .expect_log("with an open transaction, which was rolled back")
        },
        |site| passes(site, &format!("/?case=pool_redis&port={}", server.port)),
    );
}

#[test]
fn swooles_names_work_without_swoole() {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../php/swoole-compat");
    run(
        Kind::Classic,
        |s| setup(s, &[("swoole.php", include_str!("async_library/swoole.php"))]),
        |site| passes(site, &format!("/?case=swoole&package={package}")),
    );
}

#[test]
fn what_a_request_leaves_behind_ends_with_it() {
    let code = "return function ($is) {
        static $pool; $pool ??= new Howdah\\Pool(fn () => new stdClass, max: 1);
        Howdah\\defer(fn () => mark('deferred'));
        Howdah\\go(function () { Howdah\\delay(0.01); echo ' '; });
        // Never returned by hand: the next request would wait for it.
        $is('connection', $pool->mine(20.0) === $pool->mine(), true);
        Howdah\\after_response(fn () => mark('after')); };";
    run(
        Kind::Classic,
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

/// The exception vanished. It is the request's, as that of any destructor.
#[test]
fn an_exception_of_a_destructor_at_a_tasks_end_was_told_to_nobody() {
    let code = "return function ($is) {
        static $pool; $pool ??= new Howdah\\Pool(fn () => new stdClass, max: 1);
        $throws = new class { public bool $armed = false; function __destruct() { if ($this->armed) { throw new Exception('thrown at the very end'); } } };
        $task = Howdah\\go(function () use ($pool, $throws) { $pool->get(); $throws->armed = true; });
        unset($throws); $task->await(); Howdah\\delay(0.01);
        $is('lent', $pool->stats()['in_use'], 0); $is('done', $task->coroutine()->isDone(), true); };";
    run(
        Kind::Classic,
        |s| setup(s, &[("throws.php", &format!("<?php {code}"))]).expect_log("thrown at the very end"),
        |site| (0..2).for_each(|_| passes_with(site, "/?case=throws", 500)),
    );
}

/// A fatal error there left the object with the place of the coroutine, which another one has next.
#[test]
fn a_destructor_that_failed_at_a_coroutines_end_had_it_go_on_for_ever() {
    let code = "return function ($is) {
        $fails = new class { public bool $armed = false; function __destruct() { if ($this->armed) { trigger_error('failed at the very end', E_USER_ERROR); } } };
        $coroutine = Howdah\\Coroutine::start(function () use ($fails) { $fails->armed = true; });
        unset($fails); $is('joined', $coroutine->join(20.0), true);
        $next = Howdah\\Coroutine::start(fn () => Howdah\\delay(0.01)); $is('done', $coroutine->isDone(), true); $is('next', $next->isDone(), false); };";
    run(
        Kind::Classic,
        |s| setup(s, &[("fails.php", &format!("<?php {code}"))]).expect_log("failed at the very end"),
        |site| passes_with(site, "/?case=fails", 500),
    );
}

#[test]
fn errors_that_nobody_awaits_are_logged() {
    let code = "return function ($is) { Howdah\\go(fn () => throw new Exception('lost in a task'));
        Howdah\\Timer::after(1, fn () => throw new Exception('lost in a timer')); Howdah\\delay(0.01); $is('', 1, 1); };";
    run(
        Kind::Classic,
        |s| {
            setup(s, &[("lost.php", &format!("<?php {code}"))])
                .expect_log("in a task that nobody awaits: Exception: lost in a task")
                .expect_log("in a timer: Exception: lost in a timer")
        },
        |site| passes(site, "/?case=lost"),
    );
}

#[test]
fn answers_do_not_wait_until_a_busy_worker_has_nothing_to_do() {
    let code = "return function ($is) { static $busy; $busy ??= Howdah\\detach(function () { while (true) { Howdah\\suspend(); } });
        $is('busy', $busy->isDone(), false); };";
    run(
        Kind::Classic,
        |s| setup(s, &[("busy.php", &format!("<?php {code}"))]),
        |site| (0..3).for_each(|_| passes(site, "/?case=busy")),
    );
}

#[test]
fn a_worker_ends_although_its_coroutines_start_others_to_the_last() {
    let code = "return function ($is) { $again = function () use (&$again) {
            try { Howdah\\delay(0.001); } catch (Howdah\\CancelledException) {}
            Howdah\\detach($again); mark('turn'); };
        Howdah\\detach($again); $is('started', true, true); };";
    run(
        Kind::Classic,
        |s| setup(s, &[("chain.php", &format!("<?php {code}"))]),
        // The end of the scenario stops the server, and judges how.
        |site| {
            passes(site, "/?case=chain");
            site.wait_for_mark("turn", 3);
        },
    );
}

#[test]
fn a_stream_may_be_read_while_another_coroutine_looks_at_it() {
    let code = "return function ($is) { [$a, $b] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $seen = Howdah\\go(function () use ($a) { $r = [$a]; $w = $e = null; return stream_select($r, $w, $e, 50); });
        $read = Howdah\\go(fn () => fread($a, 10));
        Howdah\\go(function () use ($b) { Howdah\\delay(0.01); fwrite($b, 'hello'); });
        $is('read', $read->await(), 'hello'); fwrite($b, '!'); $is('seen', $seen->await(), 1); };";
    run(Kind::Classic, |s| setup(s, &[("look.php", &format!("<?php {code}"))]), |site| passes(site, "/?case=look"));
}

//! Ends of scripts, good or bad, and their effects on the next request.

use howdah_tests::{Request, php, script_scenario};

script_scenario!(
    exit_in_the_middle_sends_what_was_written,
    |s| s.workers(1).php("e.php", "http_response_code(202); echo 'before'; exit($_GET['x'] ?? 0); echo 'after';"),
    |site| {
        for target in ["/e.php", "/e.php?x=7", "/e.php"] {
            let response = site.get(target).expect(202);
            assert!(response.text() == "before" || response.text() == "before7", "{}", response.text());
        }
    },
);

script_scenario!(
    shutdown_functions_and_destructors_run,
    |s| { s.workers(1).php("s.php", php!("script_life/shutdown_functions_and_destructors_run.php")) },
    |site| {
        for _ in 0..3 {
            assert_eq!(site.get_ok("/s.php"), "main shutdown 0 nested destruct");
        }
    },
);

script_scenario!(
    an_uncaught_exception_is_500_and_logged,
    |s| s
        .workers(1)
        .ini("display_errors", "0")
        .ini("log_errors", "1")
        .expect_log("Uncaught RuntimeException: broken on purpose")
        .php("x.php", "throw new RuntimeException('broken on purpose');")
        .php("ok.php", "echo 'ok';"),
    |site| {
        let response = site.get("/x.php").expect(500);
        assert_eq!(response.text(), "", "nothing is shown");
        assert_eq!(site.get_ok("/ok.php"), "ok");
        let _ = site.wait_for_log(&["Uncaught RuntimeException: broken on purpose"]);
    },
);

script_scenario!(
    an_exception_handler_decides,
    |s| { s.php("x.php", php!("script_life/an_exception_handler_decides.php")) },
    |site| assert_eq!(site.get("/x.php").expect(422).text(), "handled it"),
);

script_scenario!(
    errors_are_shown_when_asked,
    |s| s
        .ini("display_errors", "1")
        .ini("html_errors", "0")
        .ini("log_errors", "0")
        .php("w.php", "echo 'a'; echo $undefined; echo 'b';")
        .php("f.php", "echo 'a'; nope();"),
    |site| {
        let text = site.get_ok("/w.php");
        assert!(
            text.starts_with('a') && text.ends_with('b') && text.contains("Undefined variable $undefined"),
            "{text}"
        );
        let response = site.get("/f.php");
        assert_eq!(response.status, 200, "display_errors on: PHP keeps 200");
        assert!(response.text().contains("Call to undefined function nope()"), "{}", response.text());
    },
);

script_scenario!(
    a_parse_error_is_500,
    |s| s
        .workers(1)
        .ini("display_errors", "0")
        .expect_log("PHP Parse error")
        .file("p.php", "<?php this is not php")
        .php("ok.php", "echo 'ok';"),
    |site| {
        assert_eq!(site.get("/p.php").status, 500);
        assert_eq!(site.get_ok("/ok.php"), "ok");
        let _ = site.wait_for_log(&["PHP Parse error"]);
    },
);

script_scenario!(
    the_memory_limit_ends_one_request_only,
    not_async = "PHP counts the memory of the process: async/lifecycle.rs",
    |s| s
        .workers(1)
        .measures_memory()
        .ini("display_errors", "0")
        .ini("memory_limit", "16M")
        .expect_log("Allowed memory size of 16777216 bytes exhausted")
        .php("m.php", "$a = []; while (true) { $a[] = str_repeat('x', 100000); }")
        .php("ok.php", "echo memory_get_usage() < 8e6 ? 'ok' : 'grown';"),
    |site| {
        for _ in 0..3 {
            assert_eq!(site.get("/m.php").status, 500);
            assert_eq!(site.get_ok("/ok.php"), "ok");
        }
        let _ = site.wait_for_log(&["Allowed memory size of 16777216 bytes exhausted"]);
    },
);

script_scenario!(
    max_execution_time_ends_one_request_only,
    |s| s
        .workers(1)
        .ini("display_errors", "0")
        .expect_log("Maximum execution time of 1 second exceeded")
        .php("t.php", "set_time_limit(1); while (true) { }")
        .php("ok.php", "echo ini_get('max_execution_time');"),
    |site| {
        assert_eq!(site.get("/t.php").status, 500);
        assert_eq!(site.get_ok("/ok.php"), "30", "the script's own limit is gone");
        let _ = site.wait_for_log(&["Maximum execution time of 1 second exceeded"]);
    },
);

/// Least processor time in seconds after which a limit of one second ends a script. The kernel counts ticks for PHP's
/// timer, so this may be well below one second on a busy machine; a probe of the timer is an eighth.
const LEAST: f64 = 0.4;

// PHP's timer runs on over many requests (shim/process/timer_signal.c).
script_scenario!(
    the_time_limit_is_the_processor_time_of_one_request,
    not_async = "max_execution_time has no effect there",
    |s| s
        .workers(1)
        .ini("display_errors", "0")
        .expect_log("Maximum execution time of 1 second exceeded")
        .php("t.php", php!("script_life/the_time_limit_is_the_processor_time_of_one_request.php")),
    |site| {
        // Together they take longer than the limit.
        for _ in 0..3 {
            assert_eq!(site.get_ok("/t.php?seconds=0.4"), "done");
        }
        let response = site.get("/t.php?seconds=8").expect(500);
        let taken: f64 = response.text().parse().unwrap();
        assert!(taken > LEAST, "ended after {taken} s of processor time");
        assert_eq!(site.get_ok("/t.php?seconds=0.1"), "done");
    },
);

script_scenario!(
    a_limit_that_a_script_sets_begins_then,
    not_async = "max_execution_time has no effect there",
    |s| s
        .workers(1)
        .ini("max_execution_time", "1")
        .php("t.php", php!("script_life/a_limit_that_a_script_sets_begins_then.php")),
    |site| {
        for how in ["more", "again"] {
            assert_eq!(site.get_ok(&format!("/t.php?{how}")), "done");
        }
    },
);

script_scenario!(
    a_handler_of_the_time_limits_signal_gets_no_other_signal,
    howdah_only = "Debian's PHP-FPM has no pcntl",
    not_async = "max_execution_time has no effect there",
    |s| s
        .workers(1)
        .ini("max_execution_time", "1")
        .php("t.php", php!("script_life/a_handler_of_the_time_limits_signal_gets_no_other_signal.php")),
    |site| {
        let taken: f64 = site.get_ok("/t.php").parse().unwrap();
        assert!((LEAST..7.0).contains(&taken), "called after {taken} s of processor time");
    },
);

script_scenario!(
    deep_recursion_does_not_stop_the_server,
    not_async = "it ends at memory_limit for all requests of the process together: async/lifecycle.rs",
    |s| s
        .workers(1)
        .ini("display_errors", "0")
        .ini("memory_limit", "32M")
        .expect_log("Allowed memory size")
        .php("r.php", "function f($n) { return f($n + 1) + 1; } f(0);")
        .php("ok.php", "echo 'ok';"),
    |site| {
        assert_eq!(site.get("/r.php").status, 500);
        assert_eq!(site.get_ok("/ok.php"), "ok");
        let _ = site.wait_for_log(&["Allowed memory size"]);
    },
);

script_scenario!(
    no_state_leaks_into_the_next_request,
    not_worker = "state that stays is what worker mode is for; worker/request_loop.rs has what is new for each request",
    |s| { s.workers(1).php("state.php", php!("script_life/no_state_leaks_into_the_next_request.php")) },
    |site| {
        let before = site.get_ok("/state.php");
        assert_eq!(site.get("/state.php?set").status, 201);
        let after = site.get("/state.php").expect(200);
        assert_eq!(after.header("x-leak"), None);
        // PHP does not restore the umask; the server's other state must be restored.
        let (before, after): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(&before).unwrap(), after.json());
        for (i, (was, is)) in before.as_array().unwrap().iter().zip(after.as_array().unwrap()).enumerate() {
            assert!(i == 5 || was == is, "value {i}: {was} became {is}");
        }
    },
);

script_scenario!(
    random_numbers_differ_between_workers,
    |s| { s.workers(4).php("r.php", php!("script_life/random_numbers_differ_between_workers.php")) },
    |site| {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..40 {
            for (i, word) in site.get_ok("/r.php").split(' ').enumerate() {
                assert!(seen.insert(format!("{i} {word}")), "{word} came twice");
            }
        }
    },
);

script_scenario!(
    a_forked_child_draws_other_random_bytes,
    howdah_only = "Debian's PHP-FPM has no pcntl",
    |s| { s.php("f.php", php!("script_life/a_forked_child_draws_other_random_bytes.php"),) },
    |site| {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10 {
            let body = site.get_ok("/f.php");
            for word in body.split(' ') {
                assert_eq!(word.len(), 32, "{body}");
                assert!(seen.insert(word.to_owned()), "{word} came twice");
            }
        }
    },
);

script_scenario!(
    a_script_that_ignores_the_abort_runs_to_its_end,
    |s| {
        s.ini("output_buffering", "0")
            .php("i.php", php!("script_life/a_script_that_ignores_the_abort_runs_to_its_end.php"))
    },
    |site| {
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/i.php").bytes());
        conn.head("GET");
        conn.read_until("begin");
        conn.reset();
        gate.release();
        site.wait_for_mark("end", 1);
        assert_eq!(site.marks("aborted"), 1);
    },
);

script_scenario!(
    a_client_abort_ends_the_script_at_its_next_output,
    not_worker = "a client that leaves must not end the loop: worker/request_loop.rs",
    |s| s
        .ini("ignore_user_abort", "0")
        .ini("output_buffering", "0")
        .php("a.php", php!("script_life/a_client_abort_ends_the_script_at_its_next_output.php")),
    |site| {
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/a.php").bytes());
        conn.head("GET");
        conn.read_until("begin");
        conn.reset();
        gate.release();
        site.wait_for_mark("shutdown1", 1);
        assert_eq!(site.marks("end"), 0);
    },
);

script_scenario!(
    error_log_reaches_the_servers_log,
    |s| s.ini("log_errors", "1").php("l.php", "error_log('a line for the log'); error_log(\"two\\nlines\"); echo 'x';"),
    |site| {
        assert_eq!(site.get_ok("/l.php"), "x");
        let _ = site.wait_for_log(&["a line for the log"]);
        let _ = site.wait_for_log(&["two"]);
    },
);

script_scenario!(
    log_lines_carry_the_requests_id,
    howdah_only = "nginx and PHP-FPM have no common request id",
    |s| s
        .setting("http.request_id_header", "\"X-Request-Id\"")
        .never_behind_nginx("the header is one of Howdah's own HTTP responses")
        .ini("display_errors", "0")
        .expect_log("Undefined variable $nowhere")
        .php("l.php", "error_log('marked line'); echo $nowhere;"),
    |site| {
        let response = site.get("/l.php").expect(200);
        let id = response.header("x-request-id").expect("the response has the id").to_owned();
        let _ = site.wait_for_log(&["marked line", &id]);
        let _ = site.wait_for_log(&["Undefined variable $nowhere", &id]);
    },
);

script_scenario!(
    stray_output_does_not_break_the_answer,
    |s| s.php("o.php", php!("script_life/stray_output_does_not_break_the_answer.php")),
    |site| assert_eq!(site.get_ok("/o.php"), "body"),
);

script_scenario!(subprocesses_work, |s| { s.php("p.php", php!("script_life/subprocesses_work.php")) }, |site| {
    for _ in 0..3 {
        assert_eq!(site.get_ok("/p.php"), "shell3through0");
    }
});

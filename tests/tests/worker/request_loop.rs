//! Worker mode: a script that loops over `frankenphp_handle_request()`, and its clients.

use howdah_tests::{Mode, Part, Request, Setup, Site, multipart, php, run};
use std::collections::BTreeSet;

/// A scenario only for worker mode: no other backend here runs such scripts.
macro_rules! in_worker_mode {
    ($name:ident, $setup:expr, $body:expr $(,)?) => {
        #[test]
        fn $name() {
            run(Mode::Worker, $setup, $body);
        }
    };
}

fn status(site: &Site) -> String {
    String::from_utf8(site.howdah().command(&["status", "--json"]).stdout).unwrap()
}

/// A worker script that runs `$handle` for each request; `code` defines it. The readiness check requests `/gate.php`.
fn worker(setup: Setup, code: &str) -> Setup {
    setup
        .script("worker.php")
        .php("worker.php", &format!("require 'gate.php'; {code}\nwhile (frankenphp_handle_request($handle)) {{}}"))
}

in_worker_mode!(
    state_stays_and_the_request_is_new_each_time,
    |s| { worker(s.workers(1), php!("request_loop/state_stays_and_the_request_is_new_each_time.php")) },
    |site| {
        let first =
            site.send(&Request::form("/a?g=1", "p=2").header("Cookie", "c=3").header("X-Mark", "m")).expect(200).json();
        let n = first[0].as_i64().unwrap();
        assert_eq!(
            first.to_string(),
            format!(r#"[{n},{{"g":"1"}},{{"p":"2"}},{{"c":"3"}},{{"g":"1","p":"2"}},"p=2","POST","m",0,null]"#)
        );
        let second = site.get("/b").expect(200).json();
        assert_eq!(second.to_string(), format!(r#"[{},[],[],[],[],"","GET",null,0,null]"#, n + 1));
        let upload = multipart("/up", &[Part { name: "f", file: Some(("a.txt", "text/plain")), content: b"content" }]);
        assert_eq!(site.send(&upload).expect(200).json()[8], 1);
        assert_eq!(site.get("/b").expect(200).json()[8], 0);
        let json = site.send(&Request::post("/j", "application/json", "{\"a\":1}")).expect(200).json();
        assert_eq!(json[5], "{\"a\":1}");
    },
);

in_worker_mode!(
    a_superglobal_is_right_where_it_is_first_used_late,
    |s| worker(s.workers(1), php!("request_loop/a_superglobal_is_right_where_it_is_first_used_late.php"))
        .php("late.php", "echo json_encode([$_REQUEST, $_SERVER['QUERY_STRING']]);"),
    |site| {
        assert_eq!(site.get_ok("/x?a=1"), "none");
        assert_eq!(site.get_ok("/x?use=1"), r#"[{"use":"1"},"use=1"]"#);
        assert_eq!(site.get_ok("/x?a=2"), "none");
        assert_eq!(site.get_ok("/x?use=2&b=3"), r#"[{"use":"2","b":"3"},"use=2&b=3"]"#);
    },
);

in_worker_mode!(
    the_worker_flag_is_there_at_boot_only,
    |s| { worker(s.workers(1).env("APP_MARK", "m1"), php!("request_loop/the_worker_flag_is_there_at_boot_only.php")) },
    |site| assert_eq!(site.get_ok("/"), r#"[["1","worker.php","m1"],false,false,"m1","m1"]"#),
);

in_worker_mode!(
    boot_output_goes_to_the_log,
    |s| worker(s.workers(1), php!("request_loop/boot_output_goes_to_the_log.php")),
    |site| {
        let response = site.get("/").expect(200);
        assert_eq!((response.text().as_str(), response.header("x-boot")), ("answer", None));
        assert!(site.wait_for_log(&["boot line one"]).contains("INFO"));
        let _ = site.wait_for_log(&["boot line two"]);
    },
);

in_worker_mode!(
    status_headers_and_buffers_are_new_each_time,
    |s| worker(
        s.workers(1).ini("output_buffering", "0"),
        php!("request_loop/status_headers_and_buffers_are_new_each_time.php")
    ),
    |site| {
        let first = site.get("/?set=1");
        assert_eq!((first.status, first.text().as_str(), first.header("x-left")), (418, "OUT2", Some("1")));
        let second = site.get("/").expect(200);
        assert_eq!(
            (second.text().as_str(), second.header("x-left"), second.header("set-cookie")),
            ("out0", None, None)
        );
        assert_eq!(second.header("content-type"), Some("text/html; charset=UTF-8"));
        let head = site.send(&Request::new("HEAD", "/")).expect(200);
        assert_eq!(head.text(), "");
        assert_eq!(site.get_ok("/"), "out0", "HEAD switches output off for itself only");
    },
);

in_worker_mode!(
    output_buffering_from_ini_holds_for_each_request,
    |s| worker(
        s.workers(1).ini("output_buffering", "4096"),
        "$handle = function () { echo 'a'; header('X-After: 1'); echo ob_get_level(); };"
    ),
    |site| {
        for _ in 0..3 {
            let response = site.get("/").expect(200);
            assert_eq!((response.text().as_str(), response.header("x-after")), ("a1", Some("1")));
        }
    },
);

in_worker_mode!(
    an_uncaught_exception_ends_the_request_and_not_the_loop,
    |s| worker(
        s.workers(1).ini("display_errors", "1").ini("html_errors", "0").expect_log("thrown in a handler"),
        php!("request_loop/an_uncaught_exception_ends_the_request_and_not_the_loop.php")
    ),
    |site| {
        let before = site.get("/").expect(200).json();
        let thrown = site.get("/?throw=1").text();
        assert!(
            thrown.starts_with("before ") && thrown.contains("Uncaught Exception: thrown in a handler"),
            "{thrown}"
        );
        let after = site.get("/").expect(200).json();
        assert_eq!(after[1], before[1]);
        assert_eq!(after[0].as_i64().unwrap(), before[0].as_i64().unwrap() + 2);
    },
);

in_worker_mode!(
    an_exception_without_display_is_a_500,
    |s| worker(
        s.workers(1).ini("display_errors", "0").expect_log("thrown unseen"),
        php!("request_loop/an_exception_without_display_is_a_500.php")
    ),
    |site| {
        let pid = site.get_ok("/");
        let thrown = site.get("/?throw=1");
        assert_eq!((thrown.status, thrown.text().as_str()), (500, ""));
        assert_eq!(site.get_ok("/"), pid);
    },
);

in_worker_mode!(
    the_applications_exception_handler_is_called,
    |s| worker(s.workers(1), php!("request_loop/the_applications_exception_handler_is_called.php")),
    |site| {
        let pid = site.get_ok("/");
        for _ in 0..2 {
            let thrown = site.get("/?throw=1");
            assert_eq!((thrown.status, thrown.text().as_str()), (503, "handled this"));
        }
        assert_eq!(site.get_ok("/"), pid);
    },
);

in_worker_mode!(
    exit_in_a_handler_answers_and_ends_the_script,
    |s| { worker(s.workers(1), php!("request_loop/exit_in_a_handler_answers_and_ends_the_script.php")) },
    |site| {
        let pid = site.get_ok("/");
        let gone = site.get("/?exit=1");
        assert_eq!((gone.status, gone.text().as_str()), (500, "dump shutdown destroyed"));
        assert_ne!(site.get_ok("/"), pid, "a fresh process runs the script again");
    },
);

in_worker_mode!(
    a_fatal_error_costs_one_process,
    |s| worker(
        s.workers(1).ini("display_errors", "0").ini("memory_limit", "32M").expect_log("Allowed memory size"),
        php!("request_loop/a_fatal_error_costs_one_process.php")
    ),
    |site| {
        let before = site.get_ok("/");
        assert_eq!(site.get("/?oom=1").status, 500);
        let after = site.get_ok("/");
        assert_ne!(after, before);
        assert!(after.ends_with(" 32M"));
    },
);

in_worker_mode!(
    the_execution_time_limit_holds_for_each_request,
    |s| {
        worker(
            s.workers(1).ini("display_errors", "0").expect_log("Maximum execution time"),
            php!("request_loop/the_execution_time_limit_holds_for_each_request.php"),
        )
    },
    |site| {
        let pid = site.get_ok("/");
        for _ in 0..4 {
            assert_eq!(site.get_ok("/"), pid, "the time of several requests does not add up");
        }
        assert_eq!(site.get("/?spin=1").status, 500);
        assert_ne!(site.get_ok("/"), pid);
    },
);

in_worker_mode!(
    the_client_has_its_answer_before_the_loop_call_returns,
    |s| {
        s.workers(1)
            .script("worker.php")
            .php("worker.php", php!("request_loop/the_client_has_its_answer_before_the_loop_call_returns.php"))
    },
    |site| {
        let gate = site.gate("g");
        assert_eq!(site.get_ok("/?name=held"), "answer held");
        let held = gate.wait();
        // The only worker is still busy with code after the call: the next request waits for it.
        let mut conn = site.conn();
        conn.send(Request::get("/?name=next").close().bytes());
        assert!(status(site).contains("\"busy\": true"));
        held.release();
        assert_eq!(conn.response("GET").expect(200).text(), "answer next");
        site.wait_for_mark("seen-held1", 1);
    },
);

in_worker_mode!(
    finish_request_lets_the_script_go_on,
    |s| { worker(s.workers(1), php!("request_loop/finish_request_lets_the_script_go_on.php")) },
    |site| {
        assert_eq!(site.send(&Request::post("/", "text/plain", "body")).expect(200).text(), "first");
        site.wait_for_mark("rest-[true,false,false]04", 1);
        assert_eq!(site.get_ok("/"), "first");
    },
);

in_worker_mode!(
    functions_have_frankenphps_names,
    |s| {
        worker(s.workers(1).expect_log("logged as error"), php!("request_loop/functions_have_frankenphps_names.php"))
    },
    |site| {
        let response = site.send(&Request::get("/").header("X-Mark", "m")).expect(200);
        assert_eq!(response.text(), r#"["m","v","m",-4,0,4,8,"worker"]"#);
        assert!(site.wait_for_log(&["logged as error", "{\"k\":\"v\"}"]).contains("ERROR"));
        assert!(site.wait_for_log(&["logged as info"]).contains("INFO"));
    },
);

in_worker_mode!(
    a_loop_call_inside_a_request_is_refused,
    |s| worker(s.workers(1), php!("request_loop/a_loop_call_inside_a_request_is_refused.php")),
    |site| assert_eq!(site.get_ok("/"), "frankenphp_handle_request() called while a request is being handled"),
);

#[test]
fn a_loop_call_in_classic_mode_is_refused() {
    run(
        Mode::Classic,
        |s| s.php("c.php", php!("request_loop/a_loop_call_in_classic_mode_is_refused.php")),
        |site| assert_eq!(site.get_ok("/c.php"), "frankenphp_handle_request() called while not in worker mode"),
    );
}

in_worker_mode!(
    a_client_that_leaves_does_not_end_the_loop,
    |s| {
        worker(
            s.workers(1).ini("output_buffering", "0"),
            php!("request_loop/a_client_that_leaves_does_not_end_the_loop.php"),
        )
    },
    |site| {
        let before = site.get_ok("/");
        let gate = site.gate("g");
        let mut conn = site.conn();
        conn.send(Request::get("/?long=1").bytes());
        conn.head("GET");
        conn.read_until("begin");
        conn.reset();
        gate.release();
        site.wait_for_mark("aborted1", 1);
        assert_eq!(site.get_ok("/"), before);
    },
);

in_worker_mode!(
    max_requests_ends_the_loop_in_good_order,
    |s| worker(
        s.workers(2).setting("max_requests", "3"),
        "$handle = function () { echo getmypid(); }; register_shutdown_function(fn () => mark('end'));"
    ),
    |site| {
        let mut conn = site.conn();
        let pids: Vec<String> = (0..30).map(|_| conn.exchange(&Request::get("/")).expect(200).text()).collect();
        let distinct: BTreeSet<&String> = pids.iter().collect();
        assert!(distinct.len() >= 10, "{pids:?}");
        assert!(distinct.iter().all(|pid| pids.iter().filter(|p| p == pid).count() <= 3));
        site.wait_for_mark("end", 8);
    },
);

in_worker_mode!(
    max_memory_replaces_a_worker_after_the_request,
    |s| worker(
        s.workers(1).measures_memory().ini("memory_limit", "256M").setting("max_memory", "\"48M\""),
        php!("request_loop/max_memory_replaces_a_worker_after_the_request.php")
    ),
    |site| {
        let pid = site.get_ok("/");
        assert_eq!(site.get_ok("/"), pid);
        assert_eq!(site.get_ok("/?leak=1"), pid, "never during a request");
        assert_ne!(site.get_ok("/"), pid);
    },
);

in_worker_mode!(
    static_files_are_served_and_all_other_paths_run_the_worker,
    |s| {
        worker(s, php!("request_loop/static_files_are_served_and_all_other_paths_run_the_worker.php"))
            .never_behind_nginx("the script's name is nginx's there")
            .file("style.css", "a{}")
            .php("other.php", "echo 'other';")
    },
    |site| {
        assert_eq!(site.get_ok("/style.css"), "a{}");
        assert_eq!(site.get_ok("/"), "app / /worker.php ");
        assert_eq!(site.get_ok("/no/such?x=1"), "app /no/such?x=1 /worker.php ");
        assert_eq!(site.get_ok("/worker.php/info"), "app /worker.php/info /worker.php /info");
        assert_eq!(site.get_ok("/other.php"), "app /other.php /worker.php ", "the pool has one script");
    },
);

in_worker_mode!(
    the_server_variables_are_those_of_each_request,
    |s| {
        worker(
            s.workers(1).env("APP_MARK", "m1"),
            php!("request_loop/the_server_variables_are_those_of_each_request.php"),
        )
    },
    |site| {
        let vars = |request: &Request| site.send(request).expect(200).json();
        let plain = vars(&Request::get("/p"));
        let marked = vars(&Request::get("/p").header("X-Mark", "a").header("Authorization", "Basic dTpw"));
        assert_eq!((marked[0]["HTTP_X_MARK"].as_str(), marked[0]["PHP_AUTH_USER"].as_str()), (Some("a"), Some("u")));
        assert_eq!(vars(&Request::get("/p")), plain, "names come and go");
        let kept = vars(&Request::get("/q?keep=1").header("X-Mark", "k"));
        assert_eq!(kept[1][0], "/q?keep=1k");
        let written = vars(&Request::get("/q?write=1").header("X-Mark", "x"));
        assert_eq!(written[0]["HTTP_X_MARK"], "written");
        let after = vars(&Request::get("/q?x=2").header("X-Mark", "b"));
        assert_eq!(
            (after[0]["HTTP_X_MARK"].as_str(), after[0]["MORE"].is_null(), &after[0]["REQUEST_URI"]),
            (Some("b"), true, &"/q?x=2".into())
        );
        assert_eq!(after[1][0], "/q?keep=1k", "the application's own copy does not change");
        let form = vars(&Request::form("/p", "a=1"));
        assert_eq!((&form[0]["REQUEST_METHOD"], &form[0]["CONTENT_LENGTH"]), (&"POST".into(), &"3".into()));
        vars(&Request::get("/p?env=m2"));
        let now = vars(&Request::get("/p"));
        assert_eq!(now[0]["APP_MARK"], "m2");
        assert_eq!(now[2], true);
        let mut again = now[0].clone();
        again["APP_MARK"] = plain[0]["APP_MARK"].clone();
        assert_eq!(again, plain[0]);
    },
);

in_worker_mode!(
    a_request_that_tightens_open_basedir_shuts_only_itself_in,
    |s| worker(
        s.workers(1),
        "ini_set('open_basedir', dirname(__DIR__)); $handle = function () { \
         if (isset($_GET['dir'])) { ini_set('open_basedir', __DIR__ . $_GET['dir']); } \
         echo json_encode([@file_exists(__FILE__), @file_exists('/etc/passwd')]); };"
    )
    .allow_log("open_basedir"),
    |site| {
        for _ in 0..2 {
            assert_eq!(site.get_ok("/x"), "[true,false]", "settings made before the loop stay");
            assert_eq!(site.get_ok("/x?dir=/none"), "[false,false]");
        }
    },
);

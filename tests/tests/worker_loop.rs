//! Worker mode: what a script that loops over `frankenphp_handle_request()` sees, and what its clients see.

use howdah_tests::{Kind, Part, Request, Setup, Site, multipart, run};
use std::collections::BTreeSet;

/// One scenario, on Howdah alone: nothing else here runs such scripts. The mode comes from the setup.
macro_rules! on_howdah {
    ($name:ident, $setup:expr, $body:expr $(,)?) => {
        #[test]
        fn $name() {
            run(Kind::Classic, $setup, $body);
        }
    };
}

fn status(site: &Site) -> String {
    String::from_utf8(site.howdah().command(&["status", "--json"]).stdout).unwrap()
}

/// A worker script that runs `$handle` for each request; `code` defines it. Readiness asks for `/gate.php`.
fn worker(setup: Setup, code: &str) -> Setup {
    setup
        .setting("mode", "\"worker\"")
        .setting("script", "\"../root/worker.php\"")
        .php("worker.php", &format!("require 'gate.php'; {code}\nwhile (frankenphp_handle_request($handle)) {{}}"))
}

on_howdah!(
    state_stays_and_the_request_is_new_each_time,
    |s| {
        worker(s.workers(1), "$n = 0; $handle = function () use (&$n) { $n++; echo json_encode([$n, $_GET, $_POST, $_COOKIE, $_REQUEST,
        file_get_contents('php://input'), $_SERVER['REQUEST_METHOD'], $_SERVER['HTTP_X_MARK'] ?? null, count($_FILES), $_SERVER['argv'] ?? null]); };")
    },
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

on_howdah!(
    a_superglobal_is_right_where_it_is_first_used_late,
    |s| worker(
        s.workers(1),
        "$handle = function () { if (isset($_GET['use'])) { require __DIR__ . '/late.php'; } else { echo 'none'; } };"
    )
    .php("late.php", "echo json_encode([$_REQUEST, $_SERVER['QUERY_STRING']]);"),
    |site| {
        assert_eq!(site.get_ok("/x?a=1"), "none");
        assert_eq!(site.get_ok("/x?use=1"), r#"[{"use":"1"},"use=1"]"#);
        assert_eq!(site.get_ok("/x?a=2"), "none");
        assert_eq!(site.get_ok("/x?use=2&b=3"), r#"[{"use":"2","b":"3"},"use=2&b=3"]"#);
    },
);

on_howdah!(
    the_worker_flag_is_there_at_boot_only,
    |s| {
        worker(s.workers(1).env("APP_MARK", "m1"), "$boot = [$_SERVER['FRANKENPHP_WORKER'] ?? null, basename($_SERVER['SCRIPT_FILENAME']), $_SERVER['APP_MARK'] ?? null];
        $handle = function () use ($boot) { echo json_encode([$boot, isset($_SERVER['FRANKENPHP_WORKER']), getenv('FRANKENPHP_WORKER'), $_SERVER['APP_MARK'], getenv('APP_MARK')]); };")
    },
    |site| assert_eq!(site.get_ok("/"), r#"[["1","worker.php","m1"],false,false,"m1","m1"]"#),
);

on_howdah!(
    boot_output_goes_to_the_log,
    |s| worker(
        s.workers(1),
        "echo \"boot line one\\nboot line two\\n\"; header('X-Boot: 1'); $handle = function () { echo 'answer'; };"
    ),
    |site| {
        let response = site.get("/").expect(200);
        assert_eq!((response.text().as_str(), response.header("x-boot")), ("answer", None));
        assert!(site.wait_for_log(&["boot line one"]).contains("INFO"));
        let _ = site.wait_for_log(&["boot line two"]);
    },
);

on_howdah!(
    status_headers_and_buffers_are_new_each_time,
    |s| worker(
        s.workers(1).ini("output_buffering", "0"),
        "$handle = function () { if (isset($_GET['set'])) { http_response_code(418); header('X-Left: 1'); header('Content-Type: text/x'); setcookie('left', '1'); ob_start(); ob_start(fn ($b) => strtoupper($b)); } echo 'out', ob_get_level(); };"
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

on_howdah!(
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

on_howdah!(
    an_uncaught_exception_ends_the_request_and_not_the_loop,
    |s| worker(
        s.workers(1).ini("display_errors", "1").ini("html_errors", "0").expect_log("thrown in a handler"),
        "$n = 0; $results = []; $handle = function () use (&$n, &$results) { $n++; if (isset($_GET['throw'])) { echo 'before '; throw new Exception('thrown in a handler'); } echo json_encode([$n, getmypid()]); };"
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

on_howdah!(
    an_exception_without_display_is_a_500,
    |s| worker(
        s.workers(1).ini("display_errors", "0").expect_log("thrown unseen"),
        "$handle = function () { if (isset($_GET['throw'])) { throw new Exception('thrown unseen'); } echo getmypid(); };"
    ),
    |site| {
        let pid = site.get_ok("/");
        let thrown = site.get("/?throw=1");
        assert_eq!((thrown.status, thrown.text().as_str()), (500, ""));
        assert_eq!(site.get_ok("/"), pid);
    },
);

on_howdah!(
    the_applications_exception_handler_is_called,
    |s| worker(
        s.workers(1),
        "set_exception_handler(function ($e) { http_response_code(503); echo 'handled ', $e->getMessage(); });
        $handle = function () { if (isset($_GET['throw'])) { throw new Exception('this'); } echo getmypid(); };"
    ),
    |site| {
        let pid = site.get_ok("/");
        for _ in 0..2 {
            let thrown = site.get("/?throw=1");
            assert_eq!((thrown.status, thrown.text().as_str()), (503, "handled this"));
        }
        assert_eq!(site.get_ok("/"), pid);
    },
);

on_howdah!(
    exit_in_a_handler_answers_and_ends_the_script,
    |s| {
        worker(s.workers(1), "class D { function __destruct() { echo ' destroyed'; } } register_shutdown_function(fn () => print(' shutdown'));
        $handle = function () { if (isset($_GET['exit'])) { http_response_code(500); $GLOBALS['d'] = new D; echo 'dump'; exit(0); } echo getmypid(); };")
    },
    |site| {
        let pid = site.get_ok("/");
        let gone = site.get("/?exit=1");
        assert_eq!((gone.status, gone.text().as_str()), (500, "dump shutdown destroyed"));
        assert_ne!(site.get_ok("/"), pid, "a fresh process runs the script again");
    },
);

on_howdah!(
    a_fatal_error_costs_one_process,
    |s| worker(
        s.workers(1).ini("display_errors", "0").ini("memory_limit", "32M").expect_log("Allowed memory size"),
        "$handle = function () { if (isset($_GET['oom'])) { $a = []; while (true) { $a[] = str_repeat('x', 100000); } } echo getmypid(), ' ', ini_get('memory_limit'); };"
    ),
    |site| {
        let before = site.get_ok("/");
        assert_eq!(site.get("/?oom=1").status, 500);
        let after = site.get_ok("/");
        assert_ne!(after, before);
        assert!(after.ends_with(" 32M"));
    },
);

on_howdah!(
    the_execution_time_limit_holds_for_each_request,
    |s| {
        worker(s.workers(1).ini("display_errors", "0").expect_log("Maximum execution time"), "set_time_limit(1);
        $handle = function () { if (isset($_GET['spin'])) { while (true); } $end = microtime(true) + 0.4; while (microtime(true) < $end); echo getmypid(); };")
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

on_howdah!(
    the_client_has_its_answer_before_the_loop_call_returns,
    |s| {
        s.workers(1).setting("mode", "\"worker\"").setting("script", "\"../root/worker.php\"").php("worker.php",
        "require 'gate.php'; $last = ''; $handle = function () use (&$last) { $last = $_GET['name'] ?? ''; echo 'answer ', $last; };
        while (frankenphp_handle_request($handle)) { if ($last === 'held') { gate('g'); echo 'nobody reads this'; mark('seen-' . $_GET['name'] . headers_sent()); } }")
    },
    |site| {
        let gate = site.gate("g");
        assert_eq!(site.get_ok("/?name=held"), "answer held");
        let held = gate.wait();
        // The one worker is still busy with what follows the call: the next request waits for it.
        let mut conn = site.conn();
        conn.send(Request::get("/?name=next").close().bytes());
        assert!(status(site).contains("\"busy\": true"));
        held.release();
        assert_eq!(conn.response("GET").expect(200).text(), "answer next");
        site.wait_for_mark("seen-held1", 1);
    },
);

on_howdah!(
    finish_request_lets_the_script_go_on,
    |s| {
        worker(s.workers(1), "$handle = function () { echo 'first'; $r = [frankenphp_finish_request(), frankenphp_finish_request(), Howdah\\finish_request()];
        echo 'second'; mark('rest-' . json_encode($r) . connection_aborted() . strlen(file_get_contents('php://input'))); };")
    },
    |site| {
        assert_eq!(site.send(&Request::post("/", "text/plain", "body")).expect(200).text(), "first");
        site.wait_for_mark("rest-[true,false,false]04", 1);
        assert_eq!(site.get_ok("/"), "first");
    },
);

on_howdah!(
    functions_with_frankenphps_names,
    |s| {
        worker(s.workers(1).expect_log("logged as error"), "$handle = function () { header('X-Set: v'); frankenphp_log('logged as error', FRANKENPHP_LOG_LEVEL_ERROR, ['k' => 'v']); frankenphp_log('logged as info');
        echo json_encode([frankenphp_request_headers()['X-Mark'] ?? '', frankenphp_response_headers()['X-Set'], getallheaders()['X-Mark'] ?? '', FRANKENPHP_LOG_LEVEL_DEBUG, FRANKENPHP_LOG_LEVEL_INFO, FRANKENPHP_LOG_LEVEL_WARN, FRANKENPHP_LOG_LEVEL_ERROR, Howdah\\mode()]); };")
    },
    |site| {
        let response = site.send(&Request::get("/").header("X-Mark", "m")).expect(200);
        assert_eq!(response.text(), r#"["m","v","m",-4,0,4,8,"worker"]"#);
        assert!(site.wait_for_log(&["logged as error", "{\"k\":\"v\"}"]).contains("ERROR"));
        assert!(site.wait_for_log(&["logged as info"]).contains("INFO"));
    },
);

on_howdah!(
    a_loop_call_inside_a_request_is_refused,
    |s| worker(
        s.workers(1),
        "$handle = function () { try { frankenphp_handle_request(fn () => 1); } catch (RuntimeException $e) { echo $e->getMessage(); } };"
    ),
    |site| assert_eq!(site.get_ok("/"), "frankenphp_handle_request() called while a request is being handled"),
);

on_howdah!(
    a_loop_call_in_classic_mode_is_refused,
    |s| s.php(
        "c.php",
        "try { frankenphp_handle_request(fn () => 1); } catch (RuntimeException $e) { echo $e->getMessage(); }"
    ),
    |site| assert_eq!(site.get_ok("/c.php"), "frankenphp_handle_request() called while not in worker mode"),
);

on_howdah!(
    a_client_that_leaves_does_not_end_the_loop,
    |s| {
        worker(s.workers(1).ini("output_buffering", "0"), "$handle = function () { if (!isset($_GET['long'])) { echo getmypid(), ' ', connection_status(); return; }
        header('X-Accel-Buffering: no'); echo 'begin'; flush(); gate('g'); for ($i = 0; $i < 10000 && !connection_aborted(); $i++) { echo str_repeat('x', 100000); flush(); usleep(5000); } mark('aborted' . connection_aborted()); };")
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

on_howdah!(
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

on_howdah!(
    max_memory_replaces_a_worker_after_the_request,
    |s| worker(
        s.workers(1).ini("memory_limit", "256M").setting("max_memory", "\"48M\""),
        "$kept = []; $handle = function () use (&$kept) { if (isset($_GET['leak'])) { $kept[] = str_repeat('x', 60 << 20); } echo getmypid(); };"
    ),
    |site| {
        let pid = site.get_ok("/");
        assert_eq!(site.get_ok("/"), pid);
        assert_eq!(site.get_ok("/?leak=1"), pid, "never during a request");
        assert_ne!(site.get_ok("/"), pid);
    },
);

on_howdah!(
    static_files_are_served_and_all_other_paths_run_the_worker,
    |s| {
        worker(s, "$handle = function () { echo 'app ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'] ?? '-'; };").file("style.css", "a{}").php("other.php", "echo 'other';")
    },
    |site| {
        assert_eq!(site.get_ok("/style.css"), "a{}");
        assert_eq!(site.get_ok("/"), "app / /worker.php -");
        assert_eq!(site.get_ok("/no/such?x=1"), "app /no/such?x=1 /worker.php -");
        assert_eq!(site.get_ok("/worker.php/info"), "app /worker.php/info /worker.php /info");
        assert_eq!(site.get_ok("/other.php"), "app /other.php /worker.php -", "the pool has one script");
    },
);

on_howdah!(
    the_server_variables_are_those_of_each_request,
    |s| {
        worker(s.workers(1).env("APP_MARK", "m1"), "$kept = []; $handle = function () use (&$kept) {
        if (isset($_GET['keep'])) { $kept[] = $_SERVER; }
        if (isset($_GET['write'])) { $_SERVER['HTTP_X_MARK'] = 'written'; $_SERVER['MORE'] = 1; unset($_SERVER['REQUEST_URI']); }
        if (isset($_GET['env'])) { putenv('APP_MARK=' . $_GET['env']); }
        $out = $_SERVER; foreach (['REMOTE_PORT', 'REQUEST_TIME', 'REQUEST_TIME_FLOAT', 'UNIQUE_ID', 'REQUEST_ID'] as $name) { unset($out[$name]); } ksort($out);
        echo json_encode([$out, array_map(fn ($k) => $k['REQUEST_URI'] . ($k['HTTP_X_MARK'] ?? '-'), $kept), abs($_SERVER['REQUEST_TIME_FLOAT'] - microtime(true)) < 60]); };")
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
        assert_eq!(after[1][0], "/q?keep=1k", "what the application keeps does not change");
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

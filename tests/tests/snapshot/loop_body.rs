//! Code after `frankenphp_handle_request()` in a worker script's loop: it runs when the client has its response, as in
//! worker mode, and in snapshot mode the boot's state is restored after it.

use howdah_tests::{Mode, Setup, in_each_way, php, run};

/// A worker script; `handle` is its handler's body, `body` that of its loop.
fn script(setup: Setup, boot: &str, handle: &str, body: &str) -> Setup {
    setup
        .workers(1)
        .script("worker.php")
        .ini("display_errors", "0")
        .php("worker.php", &php!("loop_body/script.php", BOOT = boot, HANDLE = handle, BODY = body))
}

in_each_way!(
    the_body_of_the_loop_runs_for_each_request_and_is_undone,
    |s| {
        script(
            s,
            "$n = 0; $after = 0;",
            "global $n, $after; $n++; echo json_encode([$n, $after]);",
            php!("loop_body/the_body_of_the_loop_runs_for_each_request_and_is_undone.php"),
        )
    },
    |site| {
        let before = site.marks("after");
        for i in 1..=10 {
            assert_eq!(site.get_ok(&format!("/?k={i}")), "[1,0]");
            site.wait_for_mark("after", before + i);
        }
        let text = std::fs::read_to_string(site.file("after.txt")).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let expected: Vec<String> = (1..=10).map(|i| format!("[11,1,\"{i}\",200]")).collect();
        assert_eq!(lines, expected, "the body sees its request's superglobals and nothing of earlier requests");
    },
);

in_each_way!(
    the_client_has_its_answer_before_the_body_runs,
    |s| script(s, "", "header('X-Mark: m'); echo 'whole';", "gate('body'); echo 'too late'; mark('done');"),
    |site| {
        let gate = site.gate("body");
        for i in 1..=3 {
            let answer = site.get("/").expect(200);
            assert_eq!((answer.text().as_str(), answer.header("x-mark")), ("whole", Some("m")));
            assert_eq!(site.marks("done"), i - 1, "the body waits");
            gate.release();
            site.wait_for_mark("done", i);
        }
    },
);

in_each_way!(
    the_body_of_the_loop_collects_nothing_and_garbage_is_destroyed_all_the_same,
    |s| {
        script(
            s,
            "class Cycle { public $self; function __construct() { $this->self = $this; }
                function __destruct() { mark('destroyed'); } }",
            "new Cycle; echo gc_collect_cycles() > 0 ? 'collected' : 'kept'; new Cycle;",
            "mark('collected ' . gc_collect_cycles());",
        )
    },
    |site| {
        let (none, destroyed) = (site.marks("collected 0"), site.marks("destroyed"));
        for i in 1..=3 {
            assert_eq!(site.get_ok("/"), "collected", "the handler collects cycles as usual");
            site.wait_for_mark("collected 0", none + i);
            site.wait_for_mark("destroyed", destroyed + 2 * i);
        }
    },
);

/// All ends of a request to `/?end=…` in the body of the loop.
const ENDS: &str = "switch ($_GET['end'] ?? '') {
    case 'exit': exit(3);
    case 'break': break 2;
    case 'throw': throw new RuntimeException('thrown in the body');
    case 'fatal': no_such_function();
    case 'memory': $a = []; while (true) { $a[] = str_repeat('m', 1 << 20); }
    case 'time': set_time_limit(1); while (true) { $x = 1; }
}";

in_each_way!(
    whatever_ends_the_body_the_client_has_its_answer_and_the_boot_comes_back,
    |s| script(
        s,
        "$n = 0; register_shutdown_function(function () { mark('shutdown'); });",
        "global $n; echo 'n=', ++$n;",
        &format!("mark('body'); {ENDS}")
    )
    .expect_log("thrown in the body")
    .expect_log("no_such_function()")
    .expect_log("Allowed memory size")
    .expect_log("Maximum execution time"),
    |site| {
        let (mut body, mut shutdown) = (site.marks("body"), site.marks("shutdown"));
        for end in ["", "exit", "break", "throw", "fatal", "memory", "time", ""] {
            assert_eq!(site.get_ok(&format!("/?end={end}")), "n=1", "{end}");
            body += 1;
            shutdown += 1;
            site.wait_for_mark("shutdown", shutdown);
            assert_eq!((site.marks("body"), site.marks("shutdown")), (body, shutdown), "{end}");
        }
    },
);

in_each_way!(
    a_handler_that_does_not_return_has_no_body,
    |s| script(
        s,
        "$n = 0;",
        "global $n; echo 'n=', ++$n; if (isset($_GET['exit'])) { exit(' left'); }",
        "mark('body');"
    ),
    |site| {
        assert_eq!(site.get_ok("/?exit=1"), "n=1 left");
        assert_eq!(site.get_ok("/?exit=1"), "n=1 left");
        assert_eq!(site.marks("body"), 0);
        assert_eq!(site.get_ok("/"), "n=1");
        site.wait_for_mark("body", 1);
    },
);

/// The same script in both modes that loop: order of the steps at a request's end.
#[test]
fn the_order_at_the_end_of_a_request_is_that_of_worker_mode() {
    let mut seen = Vec::new();
    for mode in [Mode::Worker, Mode::Snapshot] {
        run(
            mode,
            |s| {
                script(
                    s,
                    "function note($what) { file_put_contents(__DIR__ . '/notes.txt', \"$what\\n\", FILE_APPEND); }
                    class Own { function __destruct() { note('destructed'); } }",
                    php!("loop_body/the_order_at_the_end_of_a_request_is_that_of_worker_mode_handler.php"),
                    php!("loop_body/the_order_at_the_end_of_a_request_is_that_of_worker_mode_body.php"),
                )
            },
            |site| {
                for i in 1..=3 {
                    assert_eq!(site.get_ok("/?k=v"), "answer");
                    site.wait_for_mark("body", i);
                }
                seen.push(std::fs::read_to_string(site.file("notes.txt")).unwrap());
            },
        );
    }
    assert!(seen[0].starts_with("handler\ndestructed\nbuffer\nbody no session 0 v false 0\n"), "{}", seen[0]);
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn the_deadline_counts_the_body() {
    run(
        Mode::Snapshot,
        |s| {
            script(s, "", "echo getmypid();", "if (isset($_GET['hang'])) { mark('hangs'); sleep(600); }")
                .setting("deadline", "\"500ms\"")
                .expect_log("deadline")
                .allow_log("killed by a signal")
        },
        |site| {
            let first = site.get_ok("/?hang=1");
            site.wait_for_mark("hangs", 1);
            let second = site.get_ok("/");
            assert_ne!(first, second, "the worker was replaced, and no client lost a response");
        },
    );
}

#[test]
fn warm_up_requests_run_the_body_too() {
    run(
        Mode::Snapshot,
        |s| {
            script(
                s,
                "$after = [];",
                "global $after; echo json_encode($after);",
                "$after[] = $_SERVER['REQUEST_URI']; mark('after');",
            )
            .setting("warmup", "[\"/a\", \"/b\"]")
        },
        |site| {
            for _ in 0..3 {
                assert_eq!(site.get_ok("/"), r#"["\/a","\/b","\/a","\/b","\/a","\/b"]"#);
            }
        },
    );
}

//! Time limits of requests for running, computing and waiting: by pool, by rule.

use howdah_tests::{Conn, Request, php, scenario, script_scenario};

const RULES: &str = r#"[{ path = "/long.php", deadline = "60s" }, { path = "/short.php", deadline = "1s" },
    { path = "/long.php", query = { now = true }, deadline = "1s" }]"#;

script_scenario!(
    a_rule_sets_its_own_deadline,
    howdah_only = "deadlines of rules are Howdah's own",
    |s| s
        .workers(2)
        .setting("deadline", r#""2s""#)
        .setting("rule", RULES)
        .expect_log("past the deadline")
        .php("long.php", "sleep(isset($_GET['now']) ? 30 : 4); echo 'done';")
        .php("short.php", "sleep(30);")
        .php("other.php", "sleep(30);"),
    |site| {
        // Twice as long as other requests may run.
        assert_eq!(site.get_ok("/long.php"), "done");
        for target in ["/short.php", "/other.php", "/long.php?now"] {
            assert_eq!(site.get(target).status, 504, "{target}");
            let _ = site.wait_for_log(&["past the deadline", target]);
        }
        assert_eq!(site.get_ok("/long.php"), "done");
    },
);

script_scenario!(
    a_script_that_computes_for_too_long_is_ended_whatever_it_catches,
    howdah_only = "PHP-FPM counts no processor time",
    not_async = "a worker runs many requests at once, and the kernel does not say whose time it is",
    |s| s
        .workers(1)
        .setting("cpu_deadline", r#""1s""#)
        .expect_log("past its processor time")
        .php("compute.php", php!("time_limits/compute.php"))
        .php("wait.php", "sleep(4); echo 'rested';"),
    |site| {
        // Waiting is not computing.
        assert_eq!(site.get_ok("/wait.php"), "rested");
        assert_eq!(site.send(&Request::get("/compute.php?which=this")).status, 504);
        let line = site.wait_for_log(&["past its processor time", "GET /compute.php?which=this"]);
        assert!(line.contains("worker killed") && line.contains("compute.php"), "{line}");
        assert_eq!(site.get_ok("/wait.php"), "rested");
        let metrics = Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics")).expect(200).text();
        assert!(metrics.contains(r#"reason="cpu_deadline""#), "{metrics}");
    },
);

scenario!(
    a_rule_sets_its_own_queue_timeout,
    howdah_only = "limits of rules are Howdah's own",
    |s| s
        .workers(1)
        .setting("queue_timeout", r#""60s""#)
        .setting("rule", r#"[{ path = "/search.php", queue_timeout = "1s" }]"#)
        .allow_log("queue_timeout")
        .php("hold.php", "require 'gate.php'; gate('only'); echo 'held';")
        .php("search.php", "echo 'found';")
        .php("other.php", "echo 'other';"),
    |site| {
        let gate = site.gate("only");
        let (mut holder, mut patient) = (site.conn(), site.conn());
        holder.send(Request::get("/hold.php").bytes());
        let held = gate.wait();
        patient.send(Request::get("/other.php").bytes());
        let refused = site.get("/search.php");
        assert_eq!(refused.status, 503);
        assert!(refused.header("retry-after").is_some());
        held.release();
        assert_eq!(holder.response("GET").expect(200).text(), "held");
        assert_eq!(patient.response("GET").expect(200).text(), "other");
        assert_eq!(site.get_ok("/search.php"), "found");
    },
);

//! OpenTelemetry traces: spans received by a collector, the trace that a request belongs to, its visibility in PHP and
//! logs, and that a collector which hangs or refuses costs only spans.

use howdah_skip::skip;
use howdah_tests::collector::{Behavior, Span};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Collector, Conn, Mode, Request, Setup, Site, Upstream, run};
use std::io::Write;
use std::process::{Command, Stdio};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Prints what a script sees of its trace.
const SEEN: &str = "echo ($_SERVER['HTTP_TRACEPARENT'] ?? 'none') . ' ' . ($_SERVER['HTTP_TRACESTATE'] ?? 'none');";

fn with(collector: &Collector, more: &str, setup: impl FnOnce(Setup) -> Setup, body: impl FnOnce(&mut Site)) {
    let section = collector.section(more);
    let set = |s: Setup| {
        let s = s.own_env("OTEL_BSP_SCHEDULE_DELAY", "10").setting("telemetry", &section);
        setup(s.workers(1).php("seen.php", SEEN).file("a.txt", "static"))
    };
    run(Mode::Classic, set, body);
}

fn value<'a>(span: &'a Span, key: &str) -> Option<&'a str> {
    span.attributes.get(key).map(String::as_str)
}

/// A value of `howdah_telemetry_spans_total`.
fn counted(site: &Site, result: &str) -> u64 {
    let page = Conn::open(&site.howdah().admin()).exchange(&Request::get("/metrics").close()).expect(200).text();
    let start = format!("howdah_telemetry_spans_total{{result=\"{result}\"}} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&start)).unwrap_or_else(|| panic!("{page}"));
    line.parse().unwrap()
}

#[test]
fn a_request_has_a_span_and_one_for_each_phase() {
    let collector = Collector::start();
    with(
        &collector,
        r#"service_name = "shop""#,
        |s| {
            s.own_env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
                .own_env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret")
        },
        |site| {
            let request = Request::post("/seen.php?token=x", "text/plain", "body").header("User-Agent", "probe");
            let text = site.send(&request).expect(200).text();
            let span = collector.of_path("/seen.php");
            assert!(text.starts_with(&format!("00-{}-", span.trace)) && text.ends_with("-01 none"), "{text}");
            assert_eq!((&*span.name, span.kind, &*span.parent, span.status), ("POST", 2, "", 0));
            for (key, expected) in [
                ("http.request.method", Some("POST")),
                ("http.response.status_code", Some("200")),
                ("url.scheme", Some("http")),
                ("url.query", None),
                ("server.address", Some("localhost")),
                ("client.address", Some("127.0.0.1")),
                ("user_agent.original", Some("probe")),
                ("howdah.front", Some("php")),
            ] {
                assert_eq!(value(&span, key), expected, "{key}: {span:#?}");
            }
            assert_eq!(span.resource.get("service.name").map(String::as_str), Some("shop"));
            assert_eq!(span.resource.get("deployment.environment.name").map(String::as_str), Some("test"));
            let phases = collector.below(&span);
            assert_eq!(phases.keys().collect::<Vec<_>>(), ["php", "queue", "receive", "send"]);
            assert!(phases.values().all(|phase| phase.from >= span.from && phase.until <= span.until), "{phases:#?}");
            assert!(phases["queue"].until == phases["php"].from && phases["php"].from <= phases["php"].until);
            // Traces of PHP code continue below the span of PHP.
            assert_eq!(text.split('-').nth(2), Some(&*phases["php"].id));
            let (path, fields) = collector.exports().remove(0);
            assert_eq!(path, "/v1/traces");
            assert_eq!(fields.get("x-key").map(|value| value.as_bytes()), Some(&b"s3cret"[..]));
            let shown = site.howdah().command(&["check"]);
            assert!(!String::from_utf8_lossy(&shown.stdout).contains("s3cret"));
        },
    );
}

#[test]
fn a_trusted_proxys_trace_continues_and_others_are_linked() {
    let collector = Collector::start();
    let ask = |site: &Site, target: &str| {
        let request = Request::get(target).header("traceparent", PARENT).header("tracestate", "a=1,b=2");
        site.send(&request).expect(200).text()
    };
    with(
        &collector,
        "",
        |s| s.setting("http.trusted_proxies", "[\"127.0.0.1\"]"),
        |site| {
            let text = ask(site, "/seen.php");
            let span = collector.of_path("/seen.php");
            assert_eq!((&*span.trace, &*span.parent, span.links.len()), (TRACE, "00f067aa0ba902b7", 0));
            assert!(text.starts_with(&format!("00-{TRACE}-")) && text.ends_with("-01 a=1,b=2"), "{text}");
        },
    );
    let collector = Collector::start();
    with(
        &collector,
        "",
        |s| s,
        |site| {
            let text = ask(site, "/seen.php");
            let span = collector.of_path("/seen.php");
            assert!(span.trace != TRACE && span.parent.is_empty(), "{span:#?}");
            assert_eq!(span.links, [TRACE]);
            assert!(text.starts_with(&format!("00-{}-", span.trace)) && text.ends_with("-01 none"), "{text}");
        },
    );
}

#[test]
fn without_the_section_fields_go_through_as_they_are() {
    run(
        Mode::Classic,
        |s| s.workers(1).php("seen.php", SEEN).own_env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
        |site| {
            let request = Request::get("/seen.php").header("traceparent", PARENT).header("tracestate", "a=1");
            assert_eq!(site.send(&request).expect(200).text(), format!("{PARENT} a=1"));
        },
    );
}

#[test]
fn samplers_keep_their_share_and_scripts_see_the_decision() {
    let collector = Collector::start();
    let all = "parent = \"always\", ratio = 0";
    with(
        &collector,
        all,
        |s| s,
        |site| {
            let text = site.get_ok("/seen.php");
            assert!(text.ends_with("-00 none"), "{text}");
            // A caller's decision takes precedence over the configured share.
            let sampled = site.send(&Request::get("/seen.php?2").header("traceparent", PARENT)).expect(200).text();
            assert!(sampled.ends_with("-01 none"), "{sampled}");
            assert_eq!(collector.of_path("/seen.php").trace, TRACE);
            assert!(collector.spans().iter().all(|span| span.trace == TRACE), "{:#?}", collector.spans());
        },
    );
}

#[test]
fn the_trace_is_in_the_logs() {
    for (format, mark) in [("text", " trace="), ("json", ",\"trace_id\":\"")] {
        let collector = Collector::start();
        let log = tempfile::NamedTempFile::new().unwrap();
        let path = log.path().to_str().unwrap().to_owned();
        with(
            &collector,
            "",
            |s| s.arg("--access-log").arg(&path).setting("log.format", &format!("{format:?}")),
            |site| {
                assert_eq!(site.get_ok("/a.txt"), "static");
                let span = collector.of_path("/a.txt");
                assert_eq!(value(&span, "howdah.front"), Some("static"));
                let line = || std::fs::read_to_string(&path).unwrap();
                assert!(eventually(PATIENCE, || line().contains(&format!("{mark}{}", span.trace))), "{}", line());
            },
        );
    }
}

#[test]
fn a_forwarded_request_carries_its_trace() {
    let collector = Collector::start();
    let upstream = Upstream::saying("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let route = upstream.route();
    with(
        &collector,
        "",
        |s| s.setting("rule", &route),
        |site| {
            let request = Request::get("/p/x").header("traceparent", PARENT).header("tracestate", "a=1");
            assert_eq!(site.send(&request).expect(200).text(), "ok");
            let span = collector.of_path("/p/x");
            assert_eq!((&*span.name, value(&span, "http.route")), ("GET /p/*", Some("/p/*")));
            let proxy = &collector.below(&span)["proxy"];
            assert_eq!(proxy.kind, 3);
            let head = upstream.last_head();
            let expected = format!("00-{}-{}-01", span.trace, proxy.id);
            assert_eq!(howdah_tests::upstream::field(&head, "traceparent"), Some(&*expected));
            assert_eq!(howdah_tests::upstream::field(&head, "tracestate"), None);
            upstream.cut();
        },
    );
}

#[test]
fn a_collector_that_refuses_costs_spans_and_is_logged_once() {
    let collector = Collector::start();
    collector.set(Behavior::Refuses);
    with(
        &collector,
        "",
        |s| s.expect_log("spans lost"),
        |site| {
            for _ in 0..10 {
                assert_eq!(site.get_ok("/a.txt"), "static");
            }
            assert!(eventually(PATIENCE, || counted(site, "failed") >= 10), "{}", site.log());
            assert_eq!(site.log().matches("spans lost").count(), 1, "{}", site.log());
            collector.set(Behavior::Takes);
            assert_eq!(site.get_ok("/seen.php").len(), "00--- none".len() + 32 + 16 + 2);
            let _ = collector.of_path("/seen.php");
            let _ = site.wait_for_log(&["exporting spans to "]);
        },
    );
}

#[test]
fn a_missing_or_hanging_collector_delays_no_request() {
    for listens in [true, false] {
        let collector = if listens { Collector::start() } else { Collector::absent() };
        collector.set(Behavior::Hangs);
        with(
            &collector,
            "",
            |s| {
                s.own_env("OTEL_BSP_MAX_QUEUE_SIZE", "20")
                    .own_env("OTEL_EXPORTER_OTLP_TIMEOUT", "60000")
                    .allow_log("spans ")
            },
            |site| {
                for _ in 0..50 {
                    assert_eq!(site.get_ok("/a.txt"), "static");
                }
                if listens {
                    assert!(eventually(PATIENCE, || counted(site, "dropped") > 0), "{}", site.log());
                }
                // Long before an export's timeout.
                site.howdah().signal(rustix::process::Signal::TERM);
                assert_eq!(site.howdah_mut().wait(), Some(0));
            },
        );
    }
}

#[test]
fn standard_variables_fill_in_missing_settings() {
    let collector = Collector::start();
    let url = collector.url();
    let setup = |s: Setup| {
        s.workers(1)
            .setting("telemetry", "{ endpoint = \"env\" }")
            .own_env("OTEL_BSP_SCHEDULE_DELAY", "10")
            .file("a.txt", "static")
            .own_env("OTEL_EXPORTER_OTLP_ENDPOINT", &url)
            .own_env("OTEL_SERVICE_NAME", "from-environment")
            .own_env("OTEL_RESOURCE_ATTRIBUTES", "team=a%20b,service.name=other")
            .own_env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=k%3D1")
    };
    run(Mode::Classic, setup, |site| {
        assert_eq!(site.get_ok("/a.txt"), "static");
        let span = collector.of_path("/a.txt");
        let resource = |key: &str| span.resource.get(key).map(String::as_str);
        assert_eq!((resource("service.name"), resource("team")), (Some("from-environment"), Some("a b")));
        let (path, fields) = collector.exports().remove(0);
        assert_eq!((&*path, fields.get("x-key").map(|value| value.as_bytes())), ("/v1/traces", Some(&b"k=1"[..])));
    });
}

#[test]
fn the_last_spans_are_sent_before_the_server_ends() {
    let collector = Collector::start();
    run(
        Mode::Classic,
        |s| {
            s.workers(1)
                .setting("telemetry", &collector.section(""))
                .own_env("OTEL_BSP_SCHEDULE_DELAY", "3600000")
                .file("a.txt", "static")
        },
        |site| {
            assert_eq!(site.get_ok("/a.txt"), "static");
            site.howdah().signal(rustix::process::Signal::TERM);
            assert_eq!(site.howdah_mut().wait(), Some(0));
            assert!(!collector.spans().is_empty());
        },
    );
}

/// Prometheus's own client library for Python, which parses as Prometheus does.
const PYTHON: &str = "/usr/bin/python3";

#[test]
fn a_bucket_of_the_metrics_leads_to_a_trace_that_fell_into_it() {
    let has_library = |library| Command::new(PYTHON).args(["-c", &format!("import {library}")]).output();
    if !has_library("prometheus_client").is_ok_and(|output| output.status.success()) {
        skip!("python3-prometheus-client", "its parser reads the OpenMetrics page");
    }
    let collector = Collector::start();
    with(
        &collector,
        "parent = \"always\"",
        |s| s,
        |site| {
            let _ = site.send(&Request::get("/seen.php").header("traceparent", PARENT)).expect(200);
            let page = |accept: &str| {
                let request = Request::get("/metrics").header("Accept", accept).close();
                Conn::open(&site.howdah().admin()).exchange(&request).expect(200)
            };
            let accept = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.4";
            let mut metrics = String::new();
            assert!(
                eventually(PATIENCE, || {
                    metrics = page(accept).text();
                    metrics.contains(TRACE)
                }),
                "{metrics}"
            );
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/openmetrics/read.py");
            let mut reader = Command::new(PYTHON);
            reader.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut reader = reader.spawn().unwrap();
            reader.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
            let output = reader.wait_with_output().unwrap();
            let (read, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            for name in ["howdah_request_duration_seconds_bucket", "howdah_site_request_duration_seconds_bucket"] {
                assert!(read.contains(&format!("{name} {TRACE}\n")), "{read}{errors}\n{metrics}");
            }
            assert!(!page("text/plain").text().contains(TRACE), "the older format has no exemplars");
        },
    );
}

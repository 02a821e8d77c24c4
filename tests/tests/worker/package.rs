//! The Composer package `howdah/runtime` (`php/runtime`), as worker scripts use it.

use howdah_tests::{Mode, Part, Request, Setup, multipart, php, run};

/// A worker script that can load the package's classes.
fn worker(setup: Setup, code: &str) -> Setup {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../php/runtime/src/");
    let autoload = php!("package/worker.php", PACKAGE = package);
    setup.script("worker.php").php("worker.php", &format!("require __DIR__ . '/gate.php'; {autoload}\n{code}"))
}

#[test]
fn the_loop_keeps_the_boots_state_and_ends_at_its_limit() {
    let code = php!("package/the_loop_keeps_the_boots_state_and_ends_at_its_limit.php");
    run(
        Mode::Worker,
        |s| worker(s.workers(1).ini("display_errors", "0").expect_log("thrown on purpose"), code),
        |site| {
            // The readiness check took one request.
            assert_eq!(site.get_ok("/a?q"), r#"[2,"kept","\/a?q","\/worker.php",false]"#);
            assert_eq!(site.get("/?throw").status, 500);
            site.wait_for_mark("after-throw", 1);
            site.wait_for_mark("ran-3", 1);
            assert_eq!(site.get_ok("/b"), r#"[1,"kept","\/b","\/worker.php",false]"#);
        },
    );
}

#[test]
fn symfonys_runtime_loops_and_terminates_after_the_answer() {
    let code = php!("package/symfonys_runtime_loops_and_terminates_after_the_answer.php");
    run(
        Mode::Worker,
        |s| worker(s.workers(1), code),
        |site| {
            let ask = |n: u32, path: &str| {
                let answer = site.send(&Request::form(&format!("/{path}?a=1&{path}"), "b=2")).expect(202);
                assert_eq!(answer.text(), format!("{n} /{path} 1 2 prod web=1&worker=1"));
            };
            let gate = site.gate("g");
            let first: u32 = site.get("/").text().split(' ').next().unwrap().parse().unwrap();
            ask(first + 1, "hold");
            let held = gate.wait();
            assert_eq!(site.marks("terminated-202"), 0);
            held.release();
            site.wait_for_mark("terminated-202", 1);
            ask(first + 2, "next");
        },
    );
}

/// Debian has PSR-7 packages and none of PSR-15; these are its two interfaces.
const PSR15: &str = php!("package/psr15_interfaces.php");

/// A PSR-15 application: reports its input, in headers and a body of several pieces.
const PSR15_APP: &str = php!("package/psr15_application.php");

fn a_psr15_application_is_served(package: &str, factory: &str) {
    let autoload = php!(
        "package/a_psr15_application_is_served.php",
        PACKAGE = package,
        SRC = concat!(env!("CARGO_MANIFEST_DIR"), "/../php/runtime/src/")
    );
    run(
        Mode::Worker,
        |s| {
            s.workers(1)
                .ini("display_errors", "0")
                .expect_log("thrown on purpose")
                .script("worker.php")
                .library("autoload.php", &autoload)
                .file("worker.php", format!("<?php\n{PSR15}\n{}", PSR15_APP.replace("FACTORY", factory)))
        },
        |site| {
            let host = format!("localhost:{}", site.port());
            let first = site.conn().exchange(&Request::get("/ready")).json()[0].as_u64().unwrap();
            let form = Request::form("/p/a%20b?q=1&l[]=2", "a=1&b[]=2")
                .header("Host", &host)
                .header("Cookie", "c=3; d=4")
                .header("X-Mark", "m");
            let told = site.send(&form).expect(203);
            assert_eq!((told.reason.as_str(), told.header("content-type")), ("Told", Some("application/json")));
            assert_eq!((told.all("x-two"), told.all("set-cookie")), (vec!["a", "b"], vec!["one=1", "two=2"]));
            assert!(told.body.len() > 200_000);
            let expected = serde_json::json!([
                first + 1, "POST", format!("http://{host}/p/a%20b?q=1&l[]=2"), { "q": "1", "l": ["2"] },
                { "a": "1", "b": ["2"] }, { "c": "3", "d": "4" }, "m", 9, [], "1.1", "127.0.0.1"
            ]);
            let mut seen = told.json();
            // One of the packages encodes the brackets in a query.
            seen[2] = seen[2].as_str().unwrap().replace("%5B", "[").replace("%5D", "]").into();
            assert_eq!(seen, expected);
            let json = site.send(&Request::post("/j", "application/json", "{\"a\":1}")).expect(203).json();
            assert_eq!((&json[4], &json[7]), (&serde_json::Value::Null, &7.into()), "only forms are parsed");
            let upload =
                multipart("/u", &[Part { name: "f[]", file: Some(("a.txt", "text/plain")), content: b"small" }]);
            let files = &site.send(&upload).expect(203).json()[8];
            assert_eq!(*files, serde_json::json!([["a.txt", 5, "eb5c1399a871211c7e7ed732d15e3a8b"]]));
            assert_eq!(site.get("/?throw=1").status, 500);
            let last = site.get("/").expect(203).json();
            assert_eq!(
                (&last[0], &last[3], &last[5]),
                (&(first + 5).into(), &serde_json::json!([]), &serde_json::json!([]))
            );
        },
    );
}

#[test]
fn psr15_applications_run_with_nyholms_messages() {
    a_psr15_application_is_served("/usr/share/php/Nyholm/Psr7/autoload.php", "Nyholm\\Psr7\\Factory\\Psr17Factory");
}

#[test]
fn psr15_applications_run_with_guzzles_messages() {
    a_psr15_application_is_served("/usr/share/php/GuzzleHttp/Psr7/autoload.php", "GuzzleHttp\\Psr7\\HttpFactory");
}

/// Each kind of object has a separate factory in Slim; the package finds the first one that is installed.
#[test]
fn psr15_applications_run_with_slims_messages() {
    let messages = "/usr/share/php/Slim/Psr7/autoload.php";
    if !std::path::Path::new(messages).exists() {
        howdah_skip::skip!("slim", "Debian's php-slim-psr7 is not installed");
    }
    let own = |kind: &str| {
        format!(
            "function create{kind}(...$all) {{ return (new Slim\\Psr7\\Factory\\{kind}Factory)->create{kind}(...$all); }}"
        )
    };
    a_psr15_application_is_served(messages, &format!("class {{ {} {} }}", own("Response"), own("Stream")));
}

#[test]
fn stubs_match_the_extension() {
    let stubs = include_str!("../../../php/stubs/howdah.stub.php");
    // Everything in the extension, and everything in the stubs, with types and defaults.
    let code = php!("package/stubs_match_the_extension.php");
    run(
        Mode::Classic,
        |s| s.file("stubs.txt", stubs).php("check.php", code),
        |site| assert_eq!(site.get_ok("/check.php"), "[true,[]]"),
    );
}

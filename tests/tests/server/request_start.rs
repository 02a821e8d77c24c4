//! A request begins as PHP begins it, in every mode: it is parsed before any application code runs.

use howdah_tests::{Mode, Part, Request, Site, multipart, php, run, script_scenario};

const SCRIPT: &str = php!("request_start/handlers_that_throw.php");

/// Requests with PHP's warnings during parsing, and the number of variables that the script still gets.
fn requests_with_warnings() -> [(&'static str, Request, &'static str); 3] {
    let fields = (0..60).map(|n| format!("v{n}=1")).collect::<Vec<_>>().join("&");
    [
        ("PHP Request Startup: Input variables exceeded 50", Request::form("/p.php", &fields), "51 fields"),
        (
            "PHP Request Startup: POST Content-Length of 5002 bytes",
            Request::form("/p.php", &format!("a={}", "x".repeat(5000))),
            "0 fields",
        ),
        ("Missing boundary in multipart/form-data", Request::post("/p.php", "multipart/form-data", "x"), "0 fields"),
    ]
}

fn the_application_runs(site: &Site) {
    for (warning, request, expected) in requests_with_warnings() {
        for _ in 0..2 {
            let response = site.send(&request).expect(200);
            assert_eq!(
                (response.text().as_str(), response.header("x-application")),
                (expected, Some("ran")),
                "{warning}"
            );
        }
        let line = site.wait_for_log(&[warning]);
        assert!(line.contains("in Unknown on line 0"), "{line}");
    }
}

script_scenario!(
    warnings_of_the_parser_are_not_for_the_applications_handler,
    |s| s
        .workers(1)
        .ini("display_errors", "0")
        .ini("log_errors", "1")
        .ini("max_input_vars", "50")
        .ini("post_max_size", "4096")
        .allow_log("PHP Request Startup")
        .allow_log("Missing boundary")
        .php("p.php", SCRIPT),
    |site| the_application_runs(site),
);

/// The handlers are those of the boot.
#[test]
fn warnings_of_the_parser_are_not_for_handlers_set_at_boot() {
    run(
        Mode::Snapshot,
        |s| {
            s.workers(1)
                .ini("display_errors", "0")
                .ini("log_errors", "1")
                .ini("max_input_vars", "50")
                .ini("post_max_size", "4096")
                .allow_log("PHP Request Startup")
                .allow_log("Missing boundary")
                .boot("boot.php")
                .php("boot.php", SCRIPT)
                .php("p.php", SCRIPT)
        },
        |site| the_application_runs(site),
    );
}

script_scenario!(
    an_upload_reports_its_progress_in_the_session,
    |s| s
        .workers(1)
        .ini("session.upload_progress.enabled", "1")
        .ini("session.upload_progress.cleanup", "0")
        .ini("session.save_path", "@TOP@")
        .ini("session.use_strict_mode", "0")
        .php("p.php", php!("request_start/progress.php")),
    |site| {
        for (n, name) in ["one", "two", "three"].iter().enumerate() {
            let parts = [
                Part { name: "PHP_SESSION_UPLOAD_PROGRESS", file: None, content: name.as_bytes() },
                Part { name: "f", file: Some(("a.txt", "text/plain")), content: b"12345" },
            ];
            let id = format!("progressofupload{n}abcdef0123456789");
            let request = multipart(&format!("/p.php?key={name}"), &parts).header("Cookie", &format!("PHPSESSID={id}"));
            assert_eq!(site.send(&request).expect(200).text(), "done a.txt 5 active", "{name}");
            let later = Request::get(&format!("/p.php?key={name}")).header("Cookie", &format!("PHPSESSID={id}"));
            assert_eq!(site.send(&later).expect(200).text(), "done a.txt  active", "the next request sees the same");
            assert_eq!(site.get_ok(&format!("/p.php?key={name}")), "none   active", "another visitor sees nothing");
        }
    },
);

//! The Composer package `howdah/symfony-bundle` (`php/symfony-bundle`): the content of its panel in Symfony's profiler
//! for a request, in each mode that runs one request at a time.

use howdah_tests::{Mode, Setup, php, run};
use std::path::Path;

const PROFILER: &str = "/usr/share/php/Symfony/Bundle/WebProfilerBundle/autoload.php";

fn application(setup: Setup) -> Setup {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../php/symfony-bundle");
    let setup = setup
        .workers(1)
        .php("index.php", &php!("profiler/index.php", PACKAGE = package))
        .file("../app/.keep", "")
        .ini("display_errors", "0")
        .ini("error_reporting", "E_ALL & ~E_DEPRECATED & ~E_USER_DEPRECATED");
    if Path::new(PROFILER).exists() {
        setup
    } else {
        setup.lacks("symfony", "Debian's php-symfony-web-profiler-bundle is not installed")
    }
}

fn the_panel_shows(mode: Mode, expected: &[&str], other: &[&str]) {
    run(
        mode,
        |s| if mode == Mode::Classic { application(s) } else { application(s).script("index.php") },
        |site| {
            for _ in 0..3 {
                let home = site.get("/").expect(200);
                let token = home.header("x-debug-token").expect("a profile").to_owned();
                let panel = site.get_ok(&format!("/_profiler/{token}?panel=howdah"));
                let has = |text: &str| panel.contains(text);
                assert!(expected.iter().all(|text| has(text)) && !other.iter().any(|text| has(text)), "{panel}");
                assert!(regex_lite::Regex::new("id=[0-9a-f]{16}<").unwrap().is_match(&panel), "{panel}");
                let toolbar = site.get_ok(&format!("/_wdt/{token}"));
                assert!(toolbar.contains("sf-toolbar-block-howdah"), "{toolbar}");
            }
        },
    );
}

#[test]
fn symfonys_profiler_says_that_the_application_stays() {
    the_panel_shows(Mode::Worker, &["worker: the application stays", "Requests since the boot"], &["autoloader"]);
}

#[test]
fn symfonys_profiler_says_that_requests_are_undone() {
    the_panel_shows(Mode::Snapshot, &["snapshot: each request begins"], &["autoloader", "Requests since the boot"]);
}

#[test]
fn symfonys_profiler_says_that_every_request_is_new() {
    the_panel_shows(Mode::Classic, &["classic: every request", "autoloader"], &["Requests since the boot"]);
}

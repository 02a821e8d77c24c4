//! The published comparisons and a choice, from outside: each runs to its end with the installed systems,
//! names the missing ones, and keeps its measurements when it is stopped.

#![allow(clippy::unwrap_used, reason = "helpers of tests; only functions marked as tests are exempt by clippy.toml")]

mod bench;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bench::{Bench, has_generator, text};
use howdah_lab::apps::REQUIREMENTS;
use howdah_lab::cases::App;
use howdah_lab::record::SystemStatus;
use howdah_lab::reproduce::article::{self, Article};
use howdah_lab::reproduce::document::Document;
use howdah_lab::systems;
use howdah_skip::skip;

impl Bench {
    fn document(&self) -> Document {
        serde_json::from_str(&fs::read_to_string(self.path("out/summary.json")).unwrap()).unwrap()
    }
}

fn found(id: &str) -> bool {
    let system = systems::builtin().into_iter().find(|system| system.id() == id);
    system.is_some_and(|system| matches!(system.find(), SystemStatus::Found { .. }))
}

/// Returns the systems of the tiny form that are installed. The others are recorded, except FrankenPHP, which is in no
/// package.
fn systems_here(article: &Article) -> Vec<String> {
    let mut here = Vec::new();
    for id in &article.tiny.systems {
        if found(id) {
            here.push(id.clone());
        } else if !id.starts_with("frankenphp") {
            let name = if id.contains("swoole") { "swoole" } else { id.as_str() };
            howdah_skip::record(name, "nothing is measured with it");
        }
    }
    here
}

/// Runs the tiny form to its end and checks its output.
fn reproduced(name: &str) {
    let article = article::find(name).unwrap();
    let here = systems_here(&article);
    if !has_generator() || here.is_empty() {
        skip!("wrk", "or none of the systems is here: {here:?}");
    }
    let bench = Bench::new();
    let output = bench.command(&["reproduce", name, "--tiny", "--out", &bench.out()]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let document = bench.document();
    assert!(!document.interrupted && document.conclusions.len() == article.conclusions.len());
    assert_eq!(document.cases.len(), article.tiny.rows.len());
    let page = fs::read_to_string(bench.path("out/page.md")).unwrap();
    for case in &document.cases {
        for id in &article.tiny.systems {
            let cell = &case.cells[id];
            match cell.figures() {
                Some(figures) => assert!(figures.rate.median > 0.0 && figures.server_us.median > 0.0, "{id}: {cell:?}"),
                // A missing system is named and never shown as zero.
                None => assert!(
                    !here.contains(id) || cell.reason().is_some_and(|why| why.contains("serves no files")),
                    "{id}: {cell:?}"
                ),
            }
        }
    }
    for system in document.systems.iter().filter(|system| matches!(system.status, SystemStatus::Missing { .. })) {
        assert!(page.contains(&format!("{} is not on this machine", system.title)), "{}", system.title);
    }
    assert!(page.contains("the tiny form: some rows") && page.contains(&article.source), "{page}");
    open_in_browser(&bench.path("out/page.html"), "<svg ");
    bench.assert_clean();
}

#[test]
fn classic_vs_fpm_runs_to_its_end() {
    reproduced("classic-vs-fpm");
}

#[test]
fn coroutine_vs_fpm_runs_to_its_end() {
    reproduced("coroutine-vs-fpm");
}

#[test]
fn three_environments_runs_to_its_end() {
    reproduced("three-environments");
}

#[test]
fn sylius_worker_vs_thread_runs_to_its_end() {
    if let Some(lack) = REQUIREMENTS.iter().find(|requirement| requirement.app == App::Heavy && !requirement.is_met()) {
        skip!("symfony", "{} is not installed", lack.name);
    }
    reproduced("sylius-worker-vs-thread");
}

#[test]
fn an_interrupt_keeps_an_articles_measured_results() {
    if !has_generator() || !found("nginx-fpm") {
        skip!("wrk", "or nginx with PHP-FPM is not here");
    }
    let bench = Bench::new();
    let mut command = bench.command(&["reproduce", "classic-vs-fpm", "--short", "--out", &bench.out()]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(240);
    let measured = || fs::read_to_string(bench.path("out/result.json")).is_ok_and(|text| text.contains("\"measured\""));
    while !measured() {
        assert!(Instant::now() < deadline, "not one run within four minutes");
        thread::sleep(Duration::from_millis(50));
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let document = bench.document();
    assert!(document.interrupted);
    let cells = || document.cases.iter().flat_map(|case| case.cells.values());
    assert!(cells().any(|cell| cell.figures().is_some()));
    assert!(cells().any(|cell| cell.reason().is_some_and(|why| why.contains("stopped"))));
    assert!(fs::read_to_string(bench.path("out/page.html")).unwrap().contains("stopped before its end"));
    bench.assert_clean();
}

#[test]
fn a_choice_ends_in_a_page_and_the_site_leads_to_it() {
    let systems: Vec<&str> =
        ["nginx-fpm", "howdah-classic", "howdah-worker"].into_iter().filter(|id| found(id)).collect();
    if !has_generator() || systems.is_empty() {
        skip!("wrk", "or none of the systems is here");
    }
    let bench = Bench::new();
    let app = bench.path("app");
    fs::create_dir(&app).unwrap();
    fs::write(app.join("index.php"), "<?php echo 'you are at ', strtok($_SERVER['REQUEST_URI'], '?');").unwrap();
    fs::write(bench.path("paths"), "# two\n/ 3\n/cart\n").unwrap();
    let (app, paths) = (app.display().to_string(), bench.path("paths").display().to_string());
    let out = bench.path("kept/choice").display().to_string();
    let mut command =
        bench.command(&["choose", "--app", &app, "--paths", &paths, "--systems", &systems.join(","), "--out", &out]);
    command.args([
        "--duration",
        "1",
        "--warmup",
        "0",
        "--rounds",
        "1",
        "--load",
        "50",
        "--need",
        "5000",
        "--no-doctor",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let page = fs::read_to_string(bench.path("kept/choice/page.md")).unwrap();
    assert!(
        page.contains("Fewest machines without a change of code") && page.contains("machines for 5 000 /s"),
        "{page}"
    );
    assert!(page.contains("latency at 50 requests per second") && page.contains("/cart (share 1"), "{page}");
    if systems.contains(&"howdah-worker") {
        assert!(page.contains("the application has no script that boots once"), "{page}");
    }
    open_in_browser(&bench.path("kept/choice/page.html"), "<rect ");
    let (kept, site) = (bench.path("kept").display().to_string(), bench.path("site").display().to_string());
    let output = bench.command(&["site", &kept, "--out", &site]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    open_in_browser(&bench.path("site/index.html"), "choice/index.html");
    assert!(fs::read_to_string(bench.path("site/choice/index.html")).unwrap().contains("How to serve app"));
    bench.assert_clean();
}

#[test]
fn a_line_of_a_paths_file_that_makes_no_sense_is_named() {
    let bench = Bench::new();
    fs::write(bench.path("paths"), "/\n/cart often\n").unwrap();
    let (app, paths) = (bench.dir.path().display().to_string(), bench.path("paths").display().to_string());
    let output = bench.command(&["choose", "--app", &app, "--paths", &paths]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("line 2") && text(&output).contains("/PATH SHARE"), "{}", text(&output));
}

/// If a Chromium is installed, it must show the page, in light, in dark and on paper, without errors.
fn open_in_browser(page: &Path, expected: &str) {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(systems::program) else {
        skip!("chromium", "the page was not opened");
    };
    let profile = tempfile::tempdir().unwrap();
    let run = |arguments: &[String]| {
        let output = Command::new(&browser)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(arguments)
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        let complaints: String =
            String::from_utf8_lossy(&output.stderr).lines().filter(|line| line.contains("CONSOLE")).collect();
        assert_eq!(complaints, "");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let dom = run(&["--dump-dom".to_owned()]);
    assert!(dom.contains(expected) && dom.contains("</main>"), "{expected:?} is not on the page");
    let paper = profile.path().join("page.pdf");
    run(&[format!("--print-to-pdf={}", paper.display())]);
    assert!(fs::read(&paper).is_ok_and(|bytes| bytes.starts_with(b"%PDF")), "not printable");
}

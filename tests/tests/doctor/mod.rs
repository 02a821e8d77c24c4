//! `howdah doctor`: applications that leak on purpose, one that does not, the reported culprits, and the end of a run.

mod access;
mod against;
mod frameworks;
mod shadow;
mod table;

use howdah_tests::howdah::{php_program, program};
use howdah_tests::process::signal;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use table::{HARMLESS, LEAKS, Leak};
use tempfile::TempDir;

const LIB: &str = include_str!("php/lib.php");

/// An application: scripts by their paths below the document root, and a front page that links to all of them.
fn application(scripts: &[(String, String)]) -> (TempDir, PathBuf) {
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("shop");
    let put = |path: &str, text: &str| {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("src/lib.php", LIB);
    put("src/settings.php", "<?php\nreturn ['a' => 1];\n");
    let links: String = scripts.iter().map(|(path, _)| format!("<a href=\"/{path}\">{path}</a>\n")).collect();
    put("public/index.php", &format!("<h1>links</h1>\n{links}"));
    for (path, code) in scripts {
        put(&format!("public/{path}"), &format!("<?php\nrequire_once '{}/src/lib.php';\n{code}\n", dir.display()));
    }
    (top, dir)
}

fn leaking(leaks: &[&Leak]) -> Vec<(String, String)> {
    leaks.iter().map(|Leak(name, _, _, code)| (format!("leak/{name}.php"), (*code).to_owned())).collect()
}

fn harmless() -> Vec<(String, String)> {
    HARMLESS.iter().map(|(name, code)| (format!("ok/{name}.php"), (*code).to_owned())).collect()
}

/// `howdah doctor` with an environment independent of the test's.
fn command(top: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program())
        .arg("doctor")
        .args(arguments)
        .current_dir(top)
        .env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("TMPDIR", top).env("HOWDAH_ALLOW_ROOT", "true").env("HOWDAH_PHP", php_program());
    command
}

fn doctor(top: &Path, arguments: &[&str]) -> Output {
    command(top, arguments).output().unwrap()
}

/// Runs it on an application and returns its report.
fn report(top: &Path, dir: &Path, arguments: &[&str]) -> Value {
    let dir = dir.display().to_string();
    let output = doctor(top, &[&[&*dir, "--quiet", "--json", "-"], arguments].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let left: Vec<_> = fs::read_dir(top).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("howdah-doctor-")), "{left:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{why}: {error}"))
}

fn mode<'a>(report: &'a Value, name: &str) -> &'a Value {
    let modes = report["modes"].as_array().unwrap();
    let mode = modes.iter().find(|mode| mode["mode"] == name).unwrap_or_else(|| panic!("mode {name} was not tried"));
    assert!(mode["fails"].is_null(), "{mode}");
    mode
}

/// Route, kind and name of each leak.
fn leaks(mode: &Value) -> Vec<(String, String, String)> {
    let findings = mode["findings"].as_array().unwrap().iter().filter(|finding| finding["severity"] == "leak");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    findings.map(|leak| (text(&leak["route"]), text(&leak["kind"]), text(&leak["name"]))).collect()
}

#[test]
fn nearly_a_hundred_kinds_of_leaks_are_attributed_to_their_scripts() {
    howdah_tests::time_limit(180, "200 pages in each mode");
    let all: Vec<&Leak> = LEAKS.iter().collect();
    let (top, dir) = application(&[leaking(&all), harmless()].concat());
    let report = report(top.path(), &dir, &["--pages", "200", "--modes", "worker"]);
    assert_eq!(report["routes"].as_array().unwrap().len(), LEAKS.len() + HARMLESS.len() + 1);
    let found = leaks(mode(&report, "worker"));
    let mut missed = Vec::new();
    for Leak(script, kind, name, _) in LEAKS {
        let route = format!("GET /leak/{script}.php");
        if !found.iter().any(|(r, k, n)| *r == route && k == kind && n.contains(name)) {
            let instead: Vec<_> = found.iter().filter(|(r, _, _)| *r == route).collect();
            missed.push(format!("{script}: {kind} {name}; found {instead:?}"));
        }
    }
    assert!(missed.is_empty(), "{} of {}: {missed:#?}", missed.len(), LEAKS.len());
    let blamed: Vec<_> = found.iter().filter(|(route, _, _)| !route.starts_with("GET /leak/")).collect();
    assert!(blamed.is_empty(), "blamed without reason: {blamed:#?}");
}

/// One or two leaks of each kind, in the modes that keep less state.
#[test]
fn leftover_state_is_found_in_every_mode_in_which_it_stays() {
    let chosen = [
        "array",
        "first-visitor",
        "service",
        "names",
        "directory",
        "transaction",
        "environment",
        "shown-name",
        "token",
    ];
    let own = ["precision", "time-zone", "error-handler", "global", "mb-encoding"];
    let is_chosen = |leak: &&Leak| chosen.contains(&leak.0) || own.contains(&leak.0);
    let (top, dir) = application(&leaking(&LEAKS.iter().filter(is_chosen).collect::<Vec<_>>()));
    let report = report(top.path(), &dir, &["--modes", "snapshot,async"]);
    let kept: Vec<_> = leaks(mode(&report, "snapshot"));
    assert!(kept.is_empty(), "nothing stays in snapshot mode: {kept:#?}");
    // Async mode gives each request its own settings and handlers, and shares state of classes and of the process.
    let found = leaks(mode(&report, "async"));
    let has = |script: &str| found.iter().any(|(route, _, _)| *route == format!("GET /leak/{script}.php"));
    let missed: Vec<&str> = chosen.into_iter().filter(|script| !has(script)).collect();
    assert!(missed.is_empty(), "{missed:?}: {found:#?}");
    assert!(!own.iter().any(|script| has(script)), "{found:#?}");
}

#[test]
fn a_clean_application_has_no_findings() {
    let (top, dir) = application(&harmless());
    let (page, json) = (top.path().join("report.html"), top.path().join("report.json"));
    let (page_name, json_name) = (page.display().to_string(), json.display().to_string());
    let output = doctor(top.path(), &[&dir.display().to_string(), "--html", &page_name, "--json", &json_name]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    for name in ["worker", "snapshot", "async"] {
        let found = leaks(mode(&report, name));
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("For howdah.toml:") && text.contains("19 of 19"), "{text}");
    let (_, pages) = text.split_once("\nPAGE (MS / CPU MS)").unwrap_or_else(|| panic!("{text}"));
    let costs = |line: &&str| line.starts_with("GET /") && line.matches(" / ").count() >= 4 && !line.contains('!');
    assert_eq!(pages.lines().filter(costs).count(), 19, "each page, in four modes: {text}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Worker") && page.contains("None was found.") && page.ends_with("</html>\n"), "{page}");
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("{{"), "the page loads nothing");
}

#[test]
fn a_page_that_shows_leftovers_of_another_is_not_blamed() {
    let own = |path: &str, code: &str| (path.to_owned(), code.to_owned());
    let (top, dir) = application(&[
        own("a-date.php", "echo date('e');"),
        own("b-tokyo.php", "date_default_timezone_set('Asia/Tokyo'); echo 'set';"),
        own("c-clean.php", "echo 'clean';"),
        own("d-date.php", "echo date('e'), '!';"),
    ]);
    let report = report(top.path(), &dir, &["--modes", "worker"]);
    let worker = mode(&report, "worker");
    assert!(leaks(worker).iter().all(|(route, _, _)| route == "GET /b-tokyo.php"), "{worker:#}");
    let shown: Vec<&Value> =
        worker["findings"].as_array().unwrap().iter().filter(|f| !f["seen_on"].is_null()).collect();
    let seen: Vec<&str> = shown.iter().map(|finding| finding["seen_on"].as_str().unwrap()).collect();
    assert_eq!(seen, ["GET /a-date.php", "GET /d-date.php"], "{worker:#}");
    let safe: Vec<bool> = worker["safe"].as_array().unwrap().iter().map(|safe| safe.as_bool().unwrap()).collect();
    assert_eq!(safe, [true, true, false, true, true]);
}

#[test]
fn a_release_that_leaks_more_than_the_last_is_an_error() {
    let first: Vec<&Leak> = LEAKS.iter().filter(|leak| leak.0 == "array").collect();
    let (top, dir) = application(&leaking(&first));
    let (last, name) = (top.path().join("last.json"), dir.display().to_string());
    let last = last.display().to_string();
    let arguments = [&*name, "--quiet", "--modes", "worker"];
    let output = doctor(top.path(), &[&arguments[..], &["--json", &last]].concat());
    assert_eq!(output.status.code(), Some(0), "leaks alone are not errors: {output:?}");
    let output = doctor(top.path(), &[&arguments[..], &["--against", &last]].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    let script = dir.join("public/leak/more.php");
    fs::write(script, "<?php\nini_set('precision', '4');\n").unwrap();
    let front = dir.join("public/index.php");
    fs::write(&front, fs::read_to_string(&front).unwrap() + "<a href=\"/leak/more.php\">more</a>").unwrap();
    let output = doctor(top.path(), &[&arguments[..], &["--against", &last, "--json", "-"]].concat());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let new: Vec<&str> =
        report["new_leaks"].as_array().unwrap().iter().map(|leak| leak["route"].as_str().unwrap()).collect();
    assert_eq!(new, ["GET /leak/more.php"]);

    fs::write(top.path().join("no-report.json"), "{}").unwrap();
    for wrong in [["--against", "no-report.json"], ["--against", "missing.json"], ["--list", "missing.txt"]] {
        let output = doctor(top.path(), &[&arguments[..], &wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {output:?}");
    }
}

#[test]
fn pages_of_a_list_are_requested_and_writing_ones_only_if_allowed() {
    let (top, dir) = application(&harmless());
    fs::write(top.path().join("urls.txt"), "/ok/nothing.php\nPOST /ok/who.php a=1\nhttps://shop.example/ok/time.php\n")
        .unwrap();
    let log = "192.0.2.1 - - [01/Jan/2026:00:00:00 +0000] \"GET /ok/cache.php HTTP/1.1\" 200 17 \"-\" \"x\"\n";
    fs::write(top.path().join("access.log"), log.repeat(3)).unwrap();
    let routes = |arguments: &[&str]| {
        let report = report(top.path(), &dir, &[&["--modes", "snapshot"], arguments].concat());
        report["routes"].as_array().unwrap().iter().map(|route| route.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(routes(&["--list", "urls.txt"]), ["GET /ok/nothing.php", "GET /ok/time.php"]);
    assert_eq!(
        routes(&["--list", "urls.txt", "--writes"]),
        ["GET /ok/nothing.php", "POST /ok/who.php", "GET /ok/time.php"]
    );
    assert_eq!(routes(&["--list", "access.log"]), ["GET /ok/cache.php"]);
}

#[test]
fn the_applications_worker_script_is_tried_unmodified_with_a_copied_database() {
    let (top, dir) = application(&[]);
    fs::write(dir.join("worker.php"), include_str!("php/worker.php")).unwrap();
    fs::write(dir.join("howdah.toml"), "root = \"public\"\nmode = \"worker\"\nscript = \"worker.php\"\nworkers = 7\n")
        .unwrap();
    fs::write(dir.join("public/index.php"), include_str!("php/front.php")).unwrap();
    let made = Command::new("sqlite3").arg(dir.join("visits.sqlite")).arg("create table visit (at)").status();
    assert!(made.unwrap().success());
    let before = fs::read(dir.join("visits.sqlite")).unwrap();
    let report = report(top.path(), &dir, &["--modes", "worker,snapshot,async"]);
    assert_eq!(fs::read(dir.join("visits.sqlite")).unwrap(), before, "the database is unchanged");
    for name in ["worker", "async"] {
        let found = leaks(mode(&report, name));
        let expected = [r"App\Basket->items", "memory"];
        assert!(
            found.iter().all(|(route, _, n)| route == "GET /basket" && expected.contains(&&**n) || n == "body"),
            "{found:#?}"
        );
        assert!(
            found.iter().any(|(_, kind, name)| kind == "object" && name == r"App\Basket->items"),
            "{name}: {found:#?}"
        );
    }
    assert_eq!(leaks(mode(&report, "snapshot")), []);
    let script = mode(&report, "worker")["script"].as_str().unwrap();
    assert_eq!(script, dir.join("worker.php").display().to_string());
}

/// Nothing must remain: neither the servers nor the directory with their settings.
#[test]
fn an_interrupted_run_ends_its_servers_and_removes_its_directory() {
    let (top, dir) = application(&harmless());
    let mut command = command(top.path(), &[&dir.display().to_string()]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // At this point the servers of classic and worker mode are running.
    assert!(lines.any(|line| line.unwrap().starts_with("worker: 1 of")));
    signal(child.id(), Signal::TERM);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(rest.last().map(String::as_str), Some("howdah: interrupted"), "{rest:#?}");
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let left: Vec<_> = fs::read_dir(top.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["shop"]);
}

/// The server must accept the settings that the doctor recommends.
#[test]
fn advised_settings_can_be_used() {
    let first: Vec<&Leak> = LEAKS.iter().filter(|leak| leak.0 == "array").collect();
    let (top, dir) = application(&[leaking(&first), harmless()].concat());
    let report = report(top.path(), &dir, &["--modes", "worker", "--loop", "howdah-loop.php"]);
    let advised = report["advice"]["settings"].as_str().unwrap();
    // Whichever mode is fastest on this machine: the part with the routes is tested in any case.
    let routes = "\n[pool.classic]\nmode = \"classic\"\nscript = \"\"\nboot = \"\"\n[[rule]]\npath = \"/leak/array.php\"\npool = \"classic\"\n";
    let script = top.path().join("howdah-loop.php").display().to_string();
    for settings in [advised.to_owned(), format!("mode = \"worker\"\nscript = \"{script}\"\n{routes}")] {
        fs::write(dir.join("howdah.toml"), format!("root = \"public\"\n{settings}")).unwrap();
        let mut check = Command::new(program());
        check.arg("check").current_dir(&dir).env("HOWDAH_ALLOW_ROOT", "true").env("HOWDAH_PHP", php_program());
        let output = check.output().unwrap();
        assert!(output.status.success(), "{settings}\n{output:?}");
    }
}

//! A request ends as PHP ends it: the next one in the same process finds the state of a new process, except for the
//! exceptions in docs/internals/request-state.md.

use howdah_tests::{Mode, Request, Site, php, run};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const TABLE: &str = include_str!("../../../docs/internals/request-state.md");

/// The cells of the table's rows, the first one without its backquotes.
fn rows() -> Vec<Vec<String>> {
    rows_of(TABLE)
}

fn rows_of(text: &str) -> Vec<Vec<String>> {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>();
    let rows = text.lines().filter(|line| line.starts_with("| `")).map(cells);
    rows.map(|cells| cells[1..cells.len() - 1].to_vec()).collect()
}

/// Rows that a request cannot probe, with the scenarios that test them.
const ELSEWHERE: [(&str, &str); 4] = [
    // The harness's own scripts change it.
    ("chdir()", "the_current_directory_stays_where_a_loop_has_changed_it"),
    ("ini_set(opcache.enable)", "server::settings_of_requests"),
    ("php_value of .htaccess", "server::settings_of_requests"),
    // No function reports them; those of a request run at its end.
    ("register_shutdown_function()", "server::script_life"),
];

/// Rows of the table about PHP; `server::process_changes` tests those about the kernel.
fn rows_about_php() -> Vec<String> {
    let part = TABLE.split("\n## ").nth(1).unwrap_or_default();
    rows_of(part).into_iter().map(|cells| cells[0].clone()).collect()
}

/// State that a mode keeps, according to the table.
fn kept(mode: Mode) -> BTreeSet<String> {
    let column =
        1 + [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async].iter().position(|m| *m == mode).unwrap();
    rows().into_iter().filter(|cells| cells[column] == "kept").map(|cells| cells[0].clone()).collect()
}

fn probe(site: &Site) -> Map<String, Value> {
    let text = site.get_ok("/probe.php");
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn the_next_request_finds_the_state_of_a_new_process() {
    let mut found = Vec::new();
    for mode in [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async] {
        run(
            mode,
            |s| {
                s.workers(1)
                    .ini("output_buffering", "0")
                    .ini("session.save_path", "@TOP@")
                    .ini("pcre.jit", "0")
                    .allow_log("PHP ")
                    .php("probe.php", php!("request_end/probe.php"))
                    .php("dirty.php", php!("request_end/dirty.php"))
                    .php("pid.php", "echo getmypid();")
            },
            |site| {
                let process = site.get_ok("/pid.php");
                let fresh = probe(site);
                for _ in 0..2 {
                    let _ = site.send(&Request::get("/dirty.php?left=1")).expect(202);
                }
                let left = probe(site);
                let changed: BTreeSet<String> = fresh.keys().filter(|key| fresh[*key] != left[*key]).cloned().collect();
                let named: BTreeSet<String> = rows().into_iter().map(|cells| cells[0].clone()).collect();
                let expected: BTreeSet<String> = kept(mode).into_iter().filter(|key| fresh.contains_key(key)).collect();
                for key in fresh.keys().filter(|key| !named.contains(*key)) {
                    found.push(format!("not in the table: {key}"));
                }
                let elsewhere = |row: &String| ELSEWHERE.iter().any(|(name, _)| name == &row.replace('\'', ""));
                for row in rows_about_php().iter().filter(|row| !fresh.contains_key(*row) && !elsewhere(row)) {
                    found.push(format!("in the table, and tried nowhere: {row}"));
                }
                for key in changed.symmetric_difference(&expected) {
                    found.push(format!("{mode:?}: {key}: {} in a new process, then {}", fresh[key], left[key]));
                }
                assert_eq!(site.get_ok("/pid.php"), process, "{mode:?}: by another process");
            },
        );
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

#[test]
fn the_current_directory_stays_where_a_loop_has_changed_it() {
    let script = "while (frankenphp_handle_request(function () { echo getcwd(); chdir('/'); })) {}";
    for mode in [Mode::Worker, Mode::Async] {
        run(
            mode,
            |s| s.workers(1).script("loop.php").php("loop.php", script),
            |site| {
                let _ = site.get_ok("/");
                assert_eq!(site.get_ok("/"), "/", "{mode:?}");
            },
        );
    }
}

#[test]
fn a_script_declares_any_number_of_functions_and_classes_in_each_request() {
    let numbers = 0..6_000;
    let many: String = numbers.map(|n| format!("function f{n}() {{ return {n}; }} class C{n} {{}}\n")).collect();
    for mode in [Mode::Classic, Mode::Snapshot] {
        run(
            mode,
            |s| {
                s.workers(1).php("many.php", &many).php(
                    "all.php",
                    "require __DIR__ . '/many.php';\necho getmypid(), ' ', count(get_defined_functions()['user']), ' ', f0() + f5999();",
                )
            },
            |site| {
                let first = site.get_ok("/all.php");
                assert!(first.ends_with(" 5999"), "{first}");
                for _ in 0..3 {
                    assert_eq!(site.get_ok("/all.php"), first, "{mode:?}");
                }
            },
        );
    }
}

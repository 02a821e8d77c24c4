//! A script's changes to its process end with its request: they are undone, or the process is replaced.

use howdah_tests::{Mode, php, run};
use serde_json::Value;

const CHANGES: &[&str] = &[
    "proc_nice",
    "pcntl_setpriority",
    "posix_setrlimit",
    "posix_setsid",
    "posix_setpgid",
    "posix_setuid",
    "posix_setgid",
    "posix_seteuid",
    "posix_setegid",
    "posix_initgroups",
    "pcntl_unshare",
    "pcntl_signal",
    "pcntl_sigprocmask",
    "pcntl_alarm",
    "pcntl_setns",
    "pcntl_setcpuaffinity",
];

const OF_ROOT: &[&str] = &["posix_initgroups", "pcntl_unshare", "pcntl_setns"];

/// Functions since PHP 8.4.
const NEW: &[&str] = &["pcntl_setns", "pcntl_setcpuaffinity"];

/// Changes that snapshot mode undoes in the same process.
const RESTORED: &[&str] = &["pcntl_signal", "pcntl_sigprocmask", "pcntl_alarm"];

#[test]
fn no_request_finds_process_changes_of_another() {
    for mode in [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async] {
        run(
            mode,
            |s| {
                s.workers(1)
                    .php("change.php", php!("process_changes/change.php"))
                    .php("state.php", php!("process_changes/state.php"))
            },
            |site| {
                let state = || -> (Value, Value) { serde_json::from_str(&site.get_ok("/state.php")).unwrap() };
                let (mut process, fresh) = state();
                let is_root = fresh[6].as_str().unwrap().starts_with("0\t");
                assert_eq!(fresh[0], false, "{mode:?}: chroot() exists");
                for what in CHANGES.iter().filter(|what| is_root || !OF_ROOT.contains(what)) {
                    let changed = site.get_ok(&format!("/change.php?what={what}"));
                    if changed == "missing" && NEW.contains(what) {
                        howdah_skip::record("php8.4", what);
                        continue;
                    }
                    assert_eq!(changed, "true", "{mode:?}: {what}");
                    let (next, left) = state();
                    assert_eq!(left, fresh, "{mode:?}: {what}");
                    let restored = mode == Mode::Snapshot && RESTORED.contains(what);
                    assert_eq!(next == process, restored, "{mode:?}: {what}: {process}, then {next}");
                    process = next;
                }
                for what in ["umask", "wait"] {
                    assert_eq!(site.get_ok(&format!("/change.php?what={what}")), "true", "{mode:?}: {what}");
                    assert_eq!(state(), (process.clone(), fresh.clone()), "{mode:?}: {what}: in the same process");
                }
            },
        );
    }
}

#[test]
fn data_of_a_request_is_released_unless_its_variables_stay() {
    for mode in [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async] {
        run(
            mode,
            |s| {
                s.workers(1)
                    .php("hold.php", php!("process_changes/hold.php"))
                    .php("held.php", php!("process_changes/held.php"))
            },
            |site| {
                let held = || -> Value { serde_json::from_str(&site.get_ok("/held.php")).unwrap() };
                let fresh = held();
                for what in ["descriptor", "lock", "mapping", "semaphore"] {
                    assert_eq!(site.get_ok(&format!("/hold.php?what={what}")), "", "{mode:?}: {what}");
                    let more = held()[what].as_u64().unwrap() - fresh[what].as_u64().unwrap();
                    let stays = matches!(mode, Mode::Worker | Mode::Async);
                    assert_eq!(more, u64::from(stays), "{mode:?}: {what}");
                }
                assert_eq!(site.get_ok("/hold.php?what=clean"), "");
            },
        );
    }
}

/// Only FFI can change these; PHP itself only offers `pfsockopen()` for them.
#[test]
fn state_that_stays_with_the_process_is_that_of_the_table() {
    // Connections wait to be accepted.
    let peer = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = peer.local_addr().unwrap().port();
    for mode in [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async] {
        run(
            mode,
            |s| {
                s.workers(1)
                    .ini("ffi.enable", "true")
                    .php("stay.php", php!("process_changes/stay.php"))
                    .php("stayed.php", php!("process_changes/stayed.php"))
            },
            |site| {
                let stayed = || -> Value { serde_json::from_str(&site.get_ok("/stayed.php")).unwrap() };
                for (what, in_table) in [
                    ("connection", "pfsockopen(), persistent connections"),
                    ("name", "process name"),
                    ("thread", "threads"),
                ] {
                    let fresh = stayed();
                    let target = format!("/stay.php?what={what}&port={port}");
                    assert_eq!(site.get_ok(&target), "done", "{mode:?}: {what}");
                    let left = stayed();
                    let found = match (fresh["process"] == left["process"], fresh[what] == left[what]) {
                        (false, _) => "replaced",
                        (true, true) => "reset",
                        (true, false) => "kept",
                    };
                    // State that belongs to each request ends with it.
                    let said = said(in_table, mode).replace("own", "reset");
                    assert_eq!(found, said, "{mode:?}: {what}: {fresh}, then {left}");
                }
            },
        );
    }
}

/// The table's cell for a row and a mode.
fn said(row: &str, mode: Mode) -> String {
    const TABLE: &str = include_str!("../../../docs/internals/request-state.md");
    let column =
        2 + [Mode::Classic, Mode::Worker, Mode::Snapshot, Mode::Async].iter().position(|m| *m == mode).unwrap();
    let rows = TABLE.lines().map(|line| line.split('|').map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>());
    rows.filter(|cells| cells.get(1).is_some_and(|name| name == row)).map(|cells| cells[column].clone()).next().unwrap()
}

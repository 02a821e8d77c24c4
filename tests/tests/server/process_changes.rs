//! What a script does to its process is gone with its request: put back, or with the process.

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
];

const OF_ROOT: &[&str] = &["posix_initgroups", "pcntl_unshare"];

/// Snapshot mode takes these back in the same process.
const RESTORED: &[&str] = &["pcntl_signal", "pcntl_sigprocmask", "pcntl_alarm"];

#[test]
fn no_request_finds_what_another_has_done_to_the_process() {
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
                assert_eq!(fresh[0], false, "{mode:?}: there is no chroot()");
                for what in CHANGES.iter().filter(|what| is_root || !OF_ROOT.contains(what)) {
                    assert_eq!(site.get_ok(&format!("/change.php?what={what}")), "true", "{mode:?}: {what}");
                    let (next, left) = state();
                    assert_eq!(left, fresh, "{mode:?}: {what}");
                    let restored = mode == Mode::Snapshot && RESTORED.contains(what);
                    assert_eq!(next == process, restored, "{mode:?}: {what}: {process}, then {next}");
                    process = next;
                }
                assert_eq!(site.get_ok("/change.php?what=umask"), "true");
                assert_eq!(state(), (process, fresh), "{mode:?}: the umask is put back in the same process");
            },
        );
    }
}

#[test]
fn what_a_request_holds_is_released_unless_its_variables_stay() {
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

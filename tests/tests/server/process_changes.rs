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
    "pcntl_signal",
    "pcntl_sigprocmask",
    "pcntl_alarm",
];

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
                assert_eq!(fresh[0], false, "{mode:?}: there is no chroot()");
                for what in CHANGES {
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

//! The browsers' clients, in Node: pusher-js used by laravel-echo (`scripts/pusher-clients.sh`).

use super::pusher;
use howdah_tests::{Mode, Setup, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directory of the clients, if they are installed.
pub(crate) fn installed() -> Option<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| tests.join("../target"), PathBuf::from);
    let place = target.join("pusher-clients");
    (place.join("version").exists() && Command::new("node").arg("--version").output().is_ok()).then_some(place)
}

#[test]
fn laravel_echo_works_as_it_does_with_reverb() {
    let clients = installed();
    let setup = |s: Setup| match clients {
        Some(_) => pusher(s.workers(2)),
        None => s.lacks("pusher-clients", "run scripts/pusher-clients.sh, which needs npm and a network"),
    };
    run(Mode::Classic, setup, |site| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/pusher/js/echo.mjs");
        let clients = installed().unwrap();
        let output = Command::new("node").arg(script).arg(clients).arg(site.port().to_string()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "all came\n", "{errors}");
    });
}

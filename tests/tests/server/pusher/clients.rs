//! The browsers' clients, in Node (`scripts/pusher-clients.sh`): pusher-js used by laravel-echo, and ws.

use super::pusher;
use howdah_tests::{Mode, Setup, Site, php, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directory of the clients, if they are installed.
pub(crate) fn installed() -> Option<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| tests.join("../target"), PathBuf::from);
    let place = target.join("pusher-clients");
    (place.join("version").exists() && Command::new("node").arg("--version").output().is_ok()).then_some(place)
}

/// The setup, or the reason why the clients are not there.
fn with_clients(setup: Setup) -> Setup {
    match installed() {
        Some(_) => setup.workers(2),
        None => setup.lacks("pusher-clients", "run scripts/pusher-clients.sh, which needs npm and a network"),
    }
}

/// Runs a script of Node, which tests everything itself.
fn all_comes(site: &Site, script: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server").join(script);
    let clients = installed().unwrap();
    let output = Command::new("node").arg(script).arg(clients).arg(site.port().to_string()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "all came\n", "{errors}");
}

#[test]
fn laravel_echo_works_as_it_does_with_reverb() {
    run(Mode::Classic, |s| pusher(with_clients(s)), |site| all_comes(site, "pusher/js/echo.mjs"));
}

#[test]
fn nodes_websocket_client_exchanges_messages_of_every_kind() {
    let setup = |s: Setup| {
        let s = with_clients(s).http1("the upgrade of a connection is HTTP/1.1's");
        s.php("echo.php", php!("ws.php")).setting("rule", "[{ path = \"/echo.php\", websocket = \"/echo.php\" }]")
    };
    run(Mode::Classic, setup, |site| all_comes(site, "websocket/ws.mjs"));
}

//! Certificates that several servers share in a broker.

use super::acme::{Ports, has_certificate, needs_pebble, once, root_file};
use howdah_skip::skip;
use howdah_tests::pebble::{self, Authority, Pebble};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::servers::Server;
use howdah_tests::{Mode, Setup, Site};
use std::process::Command;
use tempfile::TempDir;

/// A server with its own directory that shares certificates at `address`, a value in TOML.
fn sharing(ports: &Ports, state: &TempDir, authority: &Authority, names: &[&str], address: &str) -> Setup {
    let state = format!("{:?}", state.path().display().to_string());
    let setup = ports.server_in(&state, Setup::default(), authority, names);
    setup.setting("acme.challenges", "[\"http-01\"]").setting("share", address)
}

/// Two servers with separate directories. The authority connects only to the first one, whichever has ordered.
#[test]
fn servers_share_certificates_in_redis_and_continue_without_it() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble::default());
    let keys = tempfile::tempdir().unwrap();
    let own = howdah_tests::tls::certificate(keys.path(), "redis", &["localhost"]);
    let redis = Server::redis_with_password(&own, "pass/word");
    let in_redis = |words: &[&str]| {
        let port = redis.port.to_string();
        let mut command = Command::new("redis-cli");
        command.args(["-h", "localhost", "-p", &port, "--tls", "--cacert"]).arg(&own.cert);
        let output = command
            .args(["-n", "2", "--user", "default", "-a", "pass/word", "--no-auth-warning"])
            .args(words)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    // No more rights than the guide grants.
    let user = ["ACL", "SETUSER", "howdah", "on", ">half@word", "~howdah:*", "+select"];
    let commands = ["+get", "+set", "+del", "+eval", "+pexpire"];
    assert_eq!(in_redis(&[&user[..], &commands].concat()), "OK");
    let ca = own.cert.display();
    let address = format!("\"rediss://howdah:half%40word@localhost:{}/2?ca={ca}\"", redis.port);
    let names = ["one.example.org", "two.example.org", "three.example.org"];
    let states = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let other = Ports::hold();
    let setup = |ports: &Ports, state: &TempDir| sharing(ports, state, &authority, &names, &address);
    let first = Site::start(Mode::Classic, &setup(&ports, &states[0]));
    let second = Site::start(Mode::Classic, &setup(&other, &states[1]));
    for name in names {
        let (one, two) = (once(&first, name, has_certificate), once(&second, name, has_certificate));
        assert_eq!(one["until"], two["until"]);
    }
    assert_eq!(authority.issued(), names.len());
    assert!(!authority.log().contains("There are now 2 accounts"), "{}", authority.log());
    second.finish();
    first.finish();
    // A Redis that has lost its data gets it back from the servers.
    assert_eq!(in_redis(&["FLUSHALL"]), "OK");
    let first = Site::start(Mode::Classic, &setup(&ports, &states[0]));
    for name in names {
        once(&first, name, has_certificate);
    }
    let is_back = || in_redis(&["KEYS", "howdah:acme:*:certificates:*.pem"]).lines().count() == names.len();
    assert!(eventually(PATIENCE, is_back), "{}", in_redis(&["KEYS", "*"]));
    first.finish();
    // A certificate that a server has loaded is served even if Redis does not respond any more.
    redis.suspend();
    let late = setup(&other, &states[1]).allow_log("Redis localhost");
    let second = Site::start(Mode::Classic, &late);
    for name in names {
        once(&second, name, has_certificate);
    }
    let _ = second.wait_for_log(&["did not respond within", ": using "]);
    let root = root_file(&authority, keys.path());
    assert_eq!(other.fetch(names[0], &root).as_deref(), Some("ready\n"));
    assert_eq!(authority.issued(), names.len());
    second.finish();
}

/// Servers with separate directories, one of which is killed. The authority connects only to the first one.
#[test]
fn servers_share_certificates_in_nats_and_continue_without_it() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble::default());
    let nats = Server::nats();
    let address = format!("\"nats://127.0.0.1:{}\"", nats.port);
    let names = ["one.example.org", "two.example.org"];
    let states = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let other = Ports::hold();
    let setup = |ports: &Ports, state: &TempDir| sharing(ports, state, &authority, &names, &address);
    let mut first = Site::start(Mode::Classic, &setup(&ports, &states[0]));
    let mut second = Site::start(Mode::Classic, &setup(&other, &states[1]));
    for name in names {
        let (one, two) = (once(&first, name, has_certificate), once(&second, name, has_certificate));
        assert_eq!(one["until"], two["until"]);
    }
    assert_eq!(authority.issued(), names.len());
    assert!(!authority.log().contains("There are now 2 accounts"), "{}", authority.log());
    second.accept_descriptors();
    second.finish();
    first.accept_descriptors();
    first.finish();
    // A server without a copy gets everything from NATS; one with copies does not need NATS.
    let empty = tempfile::tempdir().unwrap();
    let mut third = Site::start(Mode::Classic, &setup(&other, &empty));
    for name in names {
        once(&third, name, has_certificate);
    }
    third.accept_descriptors();
    third.finish();
    nats.suspend();
    let late = setup(&other, &states[1]).allow_log("NATS");
    let mut second = Site::start(Mode::Classic, &late);
    for name in names {
        once(&second, name, has_certificate);
    }
    let _ = second.wait_for_log(&["no response within", ": using "]);
    let root = root_file(&authority, states[0].path());
    assert_eq!(other.fetch(names[0], &root).as_deref(), Some("ready\n"));
    assert_eq!(authority.issued(), names.len());
    second.accept_descriptors();
    second.finish();
}

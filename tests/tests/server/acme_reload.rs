//! Names that are added to and removed from the settings while the server runs.

use super::acme::{Ports, has_certificate, needs_pebble, once, root_file, status};
use howdah_skip::skip;
use howdah_tests::pebble::{self, Pebble, certificate_of};
use howdah_tests::process::{PATIENCE, eventually};
use howdah_tests::{Mode, Setup, Site, run};
use serde_json::Value;

/// Reloads with `names` instead of `before`; returns the output.
fn reload(site: &Site, before: &[&str], names: &[&str]) -> String {
    let file = site.place().run.join("howdah.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let (old, new) = (format!("names = {before:?}"), format!("names = {names:?}"));
    assert!(text.contains(&old), "{text}");
    std::fs::write(&file, text.replace(&old, &new)).unwrap();
    let output = site.howdah().command(&["reload"]);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && !said.contains("restart"), "{said}{}", site.log());
    said
}

#[test]
fn a_reload_obtains_certificates_for_new_names_and_forgets_removed_ones() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble::default());
    let root = tempfile::tempdir().unwrap();
    let root = root_file(&authority, root.path());
    let setup = |setup: Setup| ports.server(setup, &authority, &["one.example.org", "two.example.org"]);
    run(Mode::Classic, setup, |site| {
        once(site, "one.example.org", has_certificate);
        once(site, "two.example.org", has_certificate);
        let said = reload(site, &["one.example.org", "two.example.org"], &["new.example.org", "two.example.org"]);
        assert!(said.contains("acme.names"), "{said}");
        once(site, "new.example.org", has_certificate);
        for name in ["new.example.org", "two.example.org"] {
            assert_eq!(ports.fetch(name, &root).as_deref(), Some("ready\n"), "{name}");
        }
        assert_eq!(certificate_of(&status(site), "one.example.org"), Value::Null);
        assert_eq!(ports.fetch("one.example.org", &root), None, "a certificate of another name");
        assert_eq!(authority.issued(), 3);
        // The certificate is still in the directory.
        reload(site, &["new.example.org", "two.example.org"], &["two.example.org", "one.example.org"]);
        once(site, "one.example.org", has_certificate);
        assert_eq!(ports.fetch("one.example.org", &root).as_deref(), Some("ready\n"));
        assert_eq!(authority.issued(), 3);
    });
}

#[test]
fn a_server_with_private_names_gets_others_and_an_authority_by_a_reload() {
    needs_pebble!();
    let ports = Ports::hold();
    let authority = ports.authority(Pebble::default());
    let keys = tempfile::tempdir().unwrap();
    let public = root_file(&authority, keys.path());
    run(
        Mode::Classic,
        |setup| ports.server(setup, &authority, &["shop.test"]),
        |site| {
            let local = site.place().top.join("state/local-ca/ca.pem");
            assert_eq!(ports.fetch("other.test", &local), None);
            reload(site, &["shop.test"], &["shop.test", "other.test"]);
            let serves = |name: &str| eventually(PATIENCE, || ports.fetch(name, &local).as_deref() == Some("ready\n"));
            assert!(serves("shop.test") && serves("other.test"), "{}", site.log());
            // The local CA loses a name, and the authority gains one.
            reload(site, &["shop.test", "other.test"], &["new.example.org", "shop.test"]);
            once(site, "new.example.org", has_certificate);
            assert_eq!(ports.fetch("new.example.org", &public).as_deref(), Some("ready\n"));
            assert!(serves("shop.test"), "{}", site.log());
            assert_eq!(ports.fetch("other.test", &local), None);
            assert_eq!(certificate_of(&status(site), "other.test"), Value::Null);
        },
    );
}

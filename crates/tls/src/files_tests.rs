//! Tests with certificate files that change while the server runs.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{Made, make};
use rustls::SignatureScheme;
use rustls_pki_types::CertificateDer;

struct Fixture {
    dir: tempfile::TempDir,
    files: Files,
    store: Store,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = make(&["a.example"]).write(dir.path());
    let files = Files::load([Pair { certificate, key, site: None }]).unwrap();
    let store = Store::default();
    files.put_into(&store);
    Fixture { dir, files, store }
}

impl Fixture {
    fn served(&self) -> CertificateDer<'static> {
        self.store.find(Some("a.example"), &[SignatureScheme::ECDSA_NISTP256_SHA256]).unwrap().cert[0].clone()
    }

    fn poll(&mut self) -> CertificateDer<'static> {
        self.files.poll(&self.store);
        self.served()
    }

    fn replace(&self, name: &str, content: &str) {
        let path = self.dir.path().join(name);
        std::fs::write(path.with_extension("new"), content).unwrap();
        std::fs::rename(path.with_extension("new"), path).unwrap();
    }
}

fn der(made: &Made) -> CertificateDer<'static> {
    made.loaded().key.cert[0].clone()
}

#[test]
fn a_pair_is_replaced_once_both_files_match() {
    let mut fixture = fixture();
    let before = fixture.served();
    assert_eq!(fixture.poll(), before);
    let new = make(&["a.example"]);
    fixture.replace("key.pem", &new.key);
    assert_eq!(fixture.poll(), before, "the key alone does not match");
    fixture.replace("cert.pem", &new.chain);
    assert_eq!(fixture.poll(), der(&new));
}

#[test]
fn a_broken_or_missing_file_keeps_the_served_certificate() {
    let mut fixture = fixture();
    let before = fixture.served();
    fixture.replace("cert.pem", "nonsense");
    assert_eq!(fixture.poll(), before);
    std::fs::remove_file(fixture.dir.path().join("cert.pem")).unwrap();
    assert_eq!(fixture.poll(), before);
    let new = make(&["a.example"]);
    new.write(fixture.dir.path());
    assert_eq!(fixture.poll(), der(&new));
}

#[test]
fn a_changed_link_replaces_the_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (make(&["a.example"]), make(&["a.example"]));
    for (name, made) in [("old", &old), ("new", &new)] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        made.write(&dir.path().join(name));
    }
    let live = dir.path().join("live");
    std::os::unix::fs::symlink("old", &live).unwrap();
    let pair = Pair { certificate: live.join("cert.pem"), key: live.join("key.pem"), site: None };
    let files = Files::load([pair]).unwrap();
    let store = Store::default();
    files.put_into(&store);
    let mut fixture = Fixture { dir, files, store };
    assert_eq!(fixture.served(), der(&old));
    std::fs::remove_file(&live).unwrap();
    std::os::unix::fs::symlink("new", &live).unwrap();
    assert_eq!(fixture.poll(), der(&new));
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let pair = |name: &str| Pair { certificate: name.into(), key: name.into(), site: None };
    let errors = Files::load([pair("/none/a"), pair("/none/b")]).unwrap_err();
    assert_eq!(errors.len(), 2);
}

#[test]
fn a_key_readable_by_all_users_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = fixture();
    let key = fixture.dir.path().join("key.pem");
    std::fs::set_permissions(fixture.dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(fixture.files.warnings().is_empty());
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(fixture.files.warnings().is_empty(), "its directory is closed");
    std::fs::set_permissions(fixture.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(fixture.files.warnings()[0].contains("every user of this machine can read the key"));
}

#[test]
fn files_that_the_servers_user_cannot_see_have_not_changed() {
    let mut fixture = fixture();
    let key = fixture.dir.path().join("key.pem");
    let hidden = fixture.dir.path().join("hidden");
    std::fs::rename(&key, &hidden).unwrap();
    fixture.files.forget_hidden();
    assert_eq!(fixture.files.loaded[0].seen, seen(&fixture.files.loaded[0].pair));
    let before = fixture.served();
    assert_eq!(fixture.poll(), before);
    std::fs::rename(&hidden, &key).unwrap();
    let new = make(&["a.example"]);
    new.write(fixture.dir.path());
    assert_eq!(fixture.poll(), der(&new));
}

//! Tests with certificate files that change while the server runs.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{Made, make};
use rustls::SignatureScheme;
use rustls_pki_types::CertificateDer;

struct Scene {
    dir: tempfile::TempDir,
    files: Files,
    store: Store,
}

fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = make(&["a.example"]).write(dir.path());
    let files = Files::load([Pair { certificate, key, site: None }]).unwrap();
    let store = Store::default();
    files.put_into(&store);
    Scene { dir, files, store }
}

impl Scene {
    fn served(&self) -> CertificateDer<'static> {
        self.store.find(Some("a.example"), &[SignatureScheme::ECDSA_NISTP256_SHA256]).unwrap().cert[0].clone()
    }

    fn look(&mut self) -> CertificateDer<'static> {
        self.files.look(&self.store);
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
fn a_pair_is_exchanged_when_both_files_fit() {
    let mut scene = scene();
    let before = scene.served();
    assert_eq!(scene.look(), before);
    let new = make(&["a.example"]);
    scene.replace("key.pem", &new.key);
    assert_eq!(scene.look(), before, "the key alone fits nothing");
    scene.replace("cert.pem", &new.chain);
    assert_eq!(scene.look(), der(&new));
}

#[test]
fn a_broken_or_missing_file_leaves_what_was_served() {
    let mut scene = scene();
    let before = scene.served();
    scene.replace("cert.pem", "nonsense");
    assert_eq!(scene.look(), before);
    std::fs::remove_file(scene.dir.path().join("cert.pem")).unwrap();
    assert_eq!(scene.look(), before);
    let new = make(&["a.example"]);
    new.write(scene.dir.path());
    assert_eq!(scene.look(), der(&new));
}

#[test]
fn a_link_that_moves_is_an_exchange() {
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
    let mut scene = Scene { dir, files, store };
    assert_eq!(scene.served(), der(&old));
    std::fs::remove_file(&live).unwrap();
    std::os::unix::fs::symlink("new", &live).unwrap();
    assert_eq!(scene.look(), der(&new));
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let pair = |name: &str| Pair { certificate: name.into(), key: name.into(), site: None };
    let errors = Files::load([pair("/none/a"), pair("/none/b")]).unwrap_err();
    assert_eq!(errors.len(), 2);
}

#[test]
fn a_key_that_everybody_can_read_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let scene = scene();
    let key = scene.dir.path().join("key.pem");
    std::fs::set_permissions(scene.dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(scene.files.warnings().is_empty());
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(scene.files.warnings().is_empty(), "its directory is closed");
    std::fs::set_permissions(scene.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(scene.files.warnings()[0].contains("every user of this machine can read the key"));
}

#[test]
fn files_that_the_servers_user_cannot_see_have_not_changed() {
    let mut scene = scene();
    let key = scene.dir.path().join("key.pem");
    let hidden = scene.dir.path().join("hidden");
    std::fs::rename(&key, &hidden).unwrap();
    scene.files.forget_hidden();
    assert_eq!(scene.files.loaded[0].seen, seen(&scene.files.loaded[0].pair));
    let before = scene.served();
    assert_eq!(scene.look(), before);
    std::fs::rename(&hidden, &key).unwrap();
    let new = make(&["a.example"]);
    new.write(scene.dir.path());
    assert_eq!(scene.look(), der(&new));
}

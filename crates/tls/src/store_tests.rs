//! Which certificate a name gets.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::certificate;

const ECDSA: &[SignatureScheme] = &[SignatureScheme::ECDSA_NISTP256_SHA256];

fn is(found: Option<Arc<CertifiedKey>>, certificate: &Certificate) -> bool {
    found.is_some_and(|found| Arc::ptr_eq(&found, &certificate.key))
}

#[test]
fn exact_names_come_before_wildcards_and_the_first_certificate_is_for_everybody_else() {
    let (first, wildcard, exact) =
        (certificate(&["first.example"]), certificate(&["*.example.org"]), certificate(&["www.example.org"]));
    let store = Store::default();
    assert!(store.is_empty() && store.find(Some("a"), ECDSA).is_none() && store.find(None, ECDSA).is_none());
    store.replace_files([&first, &wildcard, &exact]);
    let find = |name: &str| store.find(Some(name), ECDSA);
    assert!(is(find("www.example.org"), &exact));
    assert!(is(find("WWW.Example.ORG."), &exact));
    assert!(is(find("api.example.org"), &wildcard));
    // One label, and not none.
    assert!(is(find("a.b.example.org"), &first));
    assert!(is(find("example.org"), &first));
    assert!(is(find("*.example.org"), &wildcard));
    assert!(is(store.find(None, ECDSA), &first));
    assert!(is(find(&"a".repeat(300)), &first));
    assert!(is(find(""), &first) && is(find("."), &first));
    assert!(store.has("x.example.org") && !store.has("unknown.example"));
}

#[test]
fn a_name_of_the_greatest_length_does_not_overflow() {
    let store = Store::default();
    store.replace_files([&certificate(&["a.example"])]);
    for length in [252, 253, 254, 255] {
        assert!(!store.has(&format!(".{}", "a".repeat(length - 1))));
        assert!(!store.has(&format!("{}.", "a".repeat(length - 1))));
    }
}

#[test]
fn own_certificates_stay_when_files_are_exchanged_and_files_come_first() {
    let (file, own, newer) =
        (certificate(&["a.example"]), certificate(&["a.example", "b.example"]), certificate(&["b.example"]));
    let store = Store::default();
    store.insert([&own]);
    assert!(store.find(Some("c.example"), ECDSA).is_none());
    store.set_default(Some(&own));
    assert!(is(store.find(Some("c.example"), ECDSA), &own));
    store.replace_files([&file]);
    assert!(is(store.find(Some("a.example"), ECDSA), &file));
    assert!(is(store.find(Some("b.example"), ECDSA), &own));
    store.insert([&newer]);
    store.replace_files([]);
    assert!(is(store.find(Some("a.example"), ECDSA), &own));
    assert!(is(store.find(Some("b.example"), ECDSA), &newer));
    store.remove(["A.example"]);
    store.set_default(None);
    assert!(store.find(Some("a.example"), ECDSA).is_none());
}

#[test]
fn of_two_certificates_for_a_name_the_client_gets_one_that_it_can_check() {
    let ecdsa = certificate(&["a.example"]);
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    let chain = params.self_signed(&key).unwrap().pem();
    let ed25519 = crate::testing::Made { chain, key: key.serialize_pem() }.loaded();
    let store = Store::default();
    store.replace_files([&ed25519, &ecdsa]);
    assert!(is(store.find(Some("a.example"), ECDSA), &ecdsa));
    assert!(is(store.find(Some("a.example"), &[SignatureScheme::ED25519]), &ed25519));
    // None fits: the first says what is wrong.
    assert!(is(store.find(Some("a.example"), &[]), &ed25519));
}

#[test]
fn ten_thousand_certificates_are_added_at_once() {
    let one = certificate(&["a.example"]);
    let many: Vec<Certificate> = (0..10_000)
        .map(|number| Certificate { names: vec![format!("n{number}.example").into()], ..one.clone() })
        .collect();
    let store = Store::default();
    store.insert(&many);
    assert!(store.has("n9999.example"));
}

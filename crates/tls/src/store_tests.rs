//! Tests of the certificate selection by name.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::certificate;

const ECDSA: &[SignatureScheme] = &[SignatureScheme::ECDSA_NISTP256_SHA256];

fn is(found: Option<Arc<CertifiedKey>>, certificate: &Certificate) -> bool {
    found.is_some_and(|found| Arc::ptr_eq(&found, &certificate.key))
}

#[test]
fn exact_names_come_before_wildcards_and_the_first_certificate_is_for_all_others() {
    let (first, wildcard, exact) =
        (certificate(&["first.example"]), certificate(&["*.example.org"]), certificate(&["www.example.org"]));
    let store = Store::default();
    assert!(store.is_empty() && store.find(Some("a"), ECDSA).is_none() && store.find(None, ECDSA).is_none());
    store.replace_files([&first, &wildcard, &exact]);
    let find = |name: &str| store.find(Some(name), ECDSA);
    assert!(is(find("www.example.org"), &exact));
    assert!(is(find("WWW.Example.ORG."), &exact));
    assert!(is(find("api.example.org"), &wildcard));
    // A wildcard stands for exactly one label.
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
fn obtained_certificates_survive_a_file_reload_and_files_take_precedence() {
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
fn of_two_certificates_for_a_name_the_client_gets_one_that_it_supports() {
    let ecdsa = certificate(&["a.example"]);
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    let chain = params.self_signed(&key).unwrap().pem();
    let ed25519 = crate::testing::Made { chain, key: key.serialize_pem() }.loaded();
    let store = Store::default();
    store.replace_files([&ed25519, &ecdsa]);
    assert!(is(store.find(Some("a.example"), ECDSA), &ecdsa));
    assert!(is(store.find(Some("a.example"), &[SignatureScheme::ED25519]), &ed25519));
    // None is supported: the first one makes the client's error clear.
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

/// `shop` has its own certificate; `blog` and all other hosts do not.
fn with_sites(own: &Certificate, general: &[&Certificate]) -> Arc<Store> {
    let store = Store::new();
    let mut hosts = Hosts::default();
    hosts.exact("shop.example", 0);
    hosts.below("shop.example", 0);
    hosts.exact("blog.shop.example", 1);
    store.set_hosts(hosts);
    let general = general.iter().map(|certificate| (None, *certificate));
    store.replace_all_files([(Some(0), own)].into_iter().chain(general));
    store
}

#[test]
fn a_sites_certificate_is_used_only_for_its_hosts() {
    let (own, general) = (certificate(&["shop.example", "blog.shop.example"]), certificate(&["shop.example"]));
    let store = with_sites(&own, &[&general]);
    let found = |name: Option<&str>| store.find(name, ECDSA).unwrap();
    for name in ["shop.example", "SHOP.example.", "x.shop.example"] {
        assert!(Arc::ptr_eq(&found(Some(name)), &own.key), "{name}");
    }
    for name in [Some("blog.shop.example"), Some("nobody.example"), None] {
        assert!(Arc::ptr_eq(&found(name), &general.key), "{name:?}");
    }
    // If there are no others, the site's own certificate is better than none.
    let store = with_sites(&own, &[]);
    assert!(Arc::ptr_eq(&store.find(None, ECDSA).unwrap(), &own.key) && !store.is_empty());
    assert!(store.has("shop.example") && !store.has("x.shop.example") && !store.has("blog.shop.example"));
}

#[test]
fn a_certificate_for_the_name_precedes_the_sites_other_ones() {
    let (own, general) = (certificate(&["shop.example"]), certificate(&["www.shop.example"]));
    let store = with_sites(&own, &[&general]);
    assert!(Arc::ptr_eq(&store.find(Some("www.shop.example"), ECDSA).unwrap(), &general.key));
    assert!(Arc::ptr_eq(&store.find(Some("other.shop.example"), ECDSA).unwrap(), &own.key));
}

#[test]
fn a_host_is_covered_if_another_names_certificate_includes_it() {
    let store = Store::new();
    let (both, one) = (certificate(&["a.example", "*.a.example"]), certificate(&["b.example"]));
    store.replace_files([&both, &one]);
    assert!(store.covers("a.example", "X.a.example") && store.covers("x.a.example", "a.example."));
    assert!(!store.covers("a.example", "b.example") && !store.covers("b.example", "a.example"));
    // An unknown name gets the default certificate.
    assert!(store.covers("nobody.example", "a.example") && !store.covers("nobody.example", "b.example"));
    assert!(!store.covers("a.example", "x.y.a.example"));
}

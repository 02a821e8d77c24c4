//! Tests with matching and mismatched pairs.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::{Made, make, make_with};

fn load(made: &Made) -> Result<Certificate, CertificateError> {
    Certificate::from_pem(made.chain.as_bytes(), made.key.as_bytes(), Path::new("c.pem"), Path::new("k.pem"))
}

#[test]
fn names_come_from_the_certificate_in_lower_case() {
    let certificate = load(&make(&["Example.ORG", "*.example.org", "127.0.0.1", "::1"])).unwrap();
    assert_eq!(certificate.names, ["example.org", "*.example.org", "127.0.0.1", "::1"].map(Box::from));
}

#[test]
fn a_key_of_another_certificate_is_named() {
    let (mut one, other) = (make(&["a.example"]), make(&["a.example"]));
    one.key = other.key;
    let error = load(&one).unwrap_err().to_string();
    assert!(error.contains("k.pem does not belong to the first certificate in c.pem"), "{error}");
}

#[test]
fn swapped_files_are_reported() {
    let made = make(&["a.example"]);
    let error = load(&Made { chain: made.key.clone(), key: made.key.clone() }).unwrap_err().to_string();
    assert_eq!(error, "c.pem has no certificate in PEM, but a private key");
    let error = load(&Made { chain: made.chain.clone(), key: made.chain.clone() }).unwrap_err().to_string();
    assert_eq!(error, "k.pem has no private key in PEM, but a certificate");
}

#[test]
fn an_encrypted_key_is_reported_with_the_remedy() {
    let mut made = make(&["a.example"]);
    made.key = made.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let error = load(&made).unwrap_err().to_string();
    assert!(error.contains("it is encrypted; `openssl pkey"), "{error}");
}

#[test]
fn hostile_bytes_are_errors() {
    let made = make(&["a.example"]);
    for end in [0, 1, 30, 100, made.chain.len() / 2, made.chain.len() - 2] {
        let cut = Made { chain: made.chain[..end].to_owned(), key: made.key.clone() };
        assert!(load(&cut).is_err(), "{end}");
    }
    let empty = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n";
    assert!(load(&Made { chain: empty.to_owned(), key: made.key.clone() }).is_err());
    let empty = "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n";
    assert!(load(&Made { chain: made.chain, key: empty.to_owned() }).is_err());
}

#[test]
fn a_missing_file_and_a_directory_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = make(&["a.example"]).write(dir.path());
    assert!(Certificate::from_files(&certificate, &key).is_ok());
    let error = Certificate::from_files(&certificate, &dir.path().join("none.pem")).unwrap_err().to_string();
    assert!(error.contains("none.pem: No such file"), "{error}");
    let error = Certificate::from_files(dir.path(), &key).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn chain_and_key_may_be_in_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let made = make(&["a.example"]);
    let path = dir.path().join("both.pem");
    std::fs::write(&path, format!("{}{}", made.key, made.chain)).unwrap();
    assert!(Certificate::from_files(&path, &path).is_ok());
}

#[test]
fn warnings_concern_validity_and_missing_names() {
    let ended = make_with(&["a.example"], |params| {
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2001, 1, 1), rcgen::date_time_ymd(2002, 1, 1));
    });
    assert!(matches!(load(&ended).unwrap().concerns(SystemTime::now())[..], [CertificateWarning::Expired(_)]));
    let future = make_with(&[], |params| params.not_before = rcgen::date_time_ymd(2100, 1, 1));
    let concerns = load(&future).unwrap().concerns(SystemTime::now());
    assert!(matches!(concerns[..], [CertificateWarning::NotYetValid(_), CertificateWarning::NoNames]), "{concerns:?}");
    let good = load(&make(&["a.example"])).unwrap();
    assert!(good.concerns(SystemTime::now()).is_empty());
    let near = SystemTime::UNIX_EPOCH + Duration::from_secs(good.not_after - 3 * 86400);
    assert_eq!(good.concerns(near)[0].to_string(), "expires in 3 days");
}

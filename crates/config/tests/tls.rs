//! Contradictory TLS settings.
#![allow(clippy::unwrap_used)]

use howdah_config::{CertificateFiles, Environment, ListenAddr, ServeFlags, load_in};

/// The certificates in a `howdah.toml`, or its errors.
fn load(text: &str) -> Result<Vec<CertificateFiles>, String> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("howdah.toml"), text).unwrap();
    let environment = Environment { current_dir: dir.path().to_path_buf(), ..Environment::default() };
    let loaded = load_in(&ServeFlags::default(), &environment).map_err(|errors| errors.to_string())?;
    assert!(loaded.settings.listen.iter().any(|addr| matches!(addr, ListenAddr::Https(_))));
    let relative = |path: &std::path::Path| path.strip_prefix(dir.path()).unwrap().to_path_buf();
    let certificates = loaded.settings.tls.certificates.iter();
    Ok(certificates.map(|one| CertificateFiles { cert: relative(&one.cert), key: relative(&one.key) }).collect())
}

#[test]
fn certificate_paths_are_relative_to_the_configuration() {
    let text =
        "listen = \"https://:443\"\n[tls]\ncertificates = [{ cert = \"a.pem\", key = \"a.key\" }, \"both.pem\"]\n";
    let pair = |cert: &str, key: &str| CertificateFiles { cert: cert.into(), key: key.into() };
    assert_eq!(load(text).unwrap(), [pair("a.pem", "a.key"), pair("both.pem", "both.pem")]);
    let tables = "listen = \"https://:443\"\n[[tls.certificates]]\ncert = \"a.pem\"\nkey = \"a.key\"\n";
    assert_eq!(load(tables).unwrap(), [pair("a.pem", "a.key")]);
}

#[test]
fn settings_that_cannot_work_are_reported_with_their_line() {
    let https = "listen = \"https://:443\"\n[tls]\ncertificates = [\"a.pem\"]\n";
    for (text, expected) in [
        ("listen = \"https://:443\"\n".to_owned(), "howdah.toml:1: listen: https://0.0.0.0:443 needs a certificate"),
        ("[tls]\ncertificates = [\"a.pem\"]\n".to_owned(), "so they would not be used"),
        ("[tls]\nredirect = true\n".to_owned(), "howdah.toml:2: [tls] redirect: needs an address to redirect to"),
        (format!("admin = \"https://127.0.0.1:1\"\n{https}"), "the admin endpoint does not support TLS"),
        (format!("{https}client_auth = \"required\"\n"), "howdah.toml:4: [tls] client_auth: needs `client_ca`"),
        (format!("{https}client_ca = \"ca.pem\"\n"), "has no effect while `client_auth` is \"off\""),
        (format!("{https}min_version = \"1.1\"\n"), "[tls] min_version: expected one of \"1.2\", \"1.3\""),
        (https.replace("\"a.pem\"", "{ key = \"a.key\" }"), "expected a certificate"),
    ] {
        let said = load(&text).unwrap_err();
        assert!(said.contains(expected), "{text}: {said}");
    }
}

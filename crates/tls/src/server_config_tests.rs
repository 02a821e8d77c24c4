//! Tests with in-memory handshakes.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::session::Session;
use crate::testing::{certificate, client, client_of_authority, handshake, unauthenticated};
use rustls::ClientConfig;

fn store() -> Arc<Store> {
    let store = Store::new();
    store.replace_files([&certificate(&["a.example"]), &certificate(&["b.example"])]);
    store
}

fn session(server: &Arc<ServerConfig>, client: &Arc<ClientConfig>) -> Session {
    let (server, _) = handshake(server, client, "a.example").unwrap();
    Session::of(&server).unwrap()
}

#[test]
fn the_protocol_is_negotiated_and_its_variables_have_usual_names() {
    let server = tcp(store(), &Options::default()).unwrap();
    let h2 = session(&server, &Arc::new(client(&[b"http/1.1", b"h2"])));
    assert!(h2.h2 && h2.version == "TLSv1.3" && h2.server_name.as_deref() == Some("a.example"));
    assert!(h2.cipher.starts_with("TLS_") && !h2.cipher_bits.is_empty() && h2.client.is_none());
    assert!(!session(&server, &Arc::new(client(&[b"http/1.1"]))).h2);
    assert!(!session(&server, &Arc::new(client(&[]))).h2);
    assert!(!session(&server, &Arc::new(client(&[b"http/1.0"]))).h2);
    assert!(handshake(&server, &Arc::new(client(&[b"smtp"])), "a.example").is_err());
}

#[test]
fn the_client_gets_the_certificate_of_the_name_it_asks_for() {
    let store = Store::new();
    let (one, other) = (certificate(&["a.example"]), certificate(&["b.example"]));
    store.replace_files([&one, &other]);
    let server = tcp(store.clone(), &Options::default()).unwrap();
    let client = Arc::new(client(&[]));
    let served = |name| {
        let (_, client) = handshake(&server, &client, name).unwrap();
        client.peer_certificates().unwrap()[0].clone()
    };
    assert_eq!(served("b.example"), other.key.cert[0]);
    assert_eq!(served("unknown.example"), one.key.cert[0]);
    store.replace_files([&other]);
    assert_eq!(served("a.example"), other.key.cert[0]);
}

#[test]
fn a_challenge_certificate_is_served_only_over_acme_tls() {
    let store = store();
    let challenge = certificate(&["a.example"]);
    let server = tcp(store.clone(), &Options::default()).unwrap();
    let authority = Arc::new(client(&[ACME_TLS]));
    assert!(handshake(&server, &authority, "a.example").is_err(), "there is no challenge yet");
    store.insert_challenge("A.example", challenge.key.clone());
    let (connection, asked) = handshake(&server, &authority, "a.example").unwrap();
    assert_eq!(asked.peer_certificates().unwrap()[0], challenge.key.cert[0]);
    assert_eq!(connection.alpn_protocol(), Some(ACME_TLS));
    let (_, usual) = handshake(&server, &Arc::new(client(&[b"http/1.1", ACME_TLS])), "a.example").unwrap();
    assert_ne!(usual.peer_certificates().unwrap()[0], challenge.key.cert[0]);
    assert!(handshake(&server, &authority, "b.example").is_err());
    store.remove_challenge("a.example");
    assert!(handshake(&server, &authority, "a.example").is_err());
}

#[test]
fn sessions_are_resumed_only_by_their_own_configuration() {
    let options = Options::default();
    let server = tcp(store(), &options).unwrap();
    let again = Arc::new(client(&[b"http/1.1"]));
    assert!(!session(&server, &again).resumed);
    assert!(session(&server, &again).resumed);
    // Neither a restarted server nor another configuration knows the sessions.
    let other = tcp(store(), &options).unwrap();
    assert!(!session(&other, &again).resumed);
}

#[test]
fn the_minimum_version_is_enforced() {
    let old = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS12]).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    let certificate = certificate(&["a.example"]);
    roots.add(certificate.key.cert[0].clone()).unwrap();
    let old = Arc::new(old.with_root_certificates(roots).with_no_client_auth());
    let store = Store::new();
    store.replace_files([&certificate]);
    let server = tcp(store.clone(), &Options::default()).unwrap();
    assert_eq!(session(&server, &old).version, "TLSv1.2");
    assert!(session(&server, &old).resumed);
    let strict = tcp(store, &Options { min_version: MinVersion::Tls13, ..Options::default() }).unwrap();
    assert!(handshake(&strict, &old, "a.example").is_err());
}

#[test]
fn client_certificates_are_optional_or_required() {
    let dir = tempfile::tempdir().unwrap();
    let (authority, chain, key) = client_of_authority(dir.path());
    let known = Arc::new(unauthenticated().with_client_auth_cert(chain, key).unwrap());
    let (_, other_chain, other_key) = client_of_authority(tempfile::tempdir().unwrap().path());
    let unknown = Arc::new(unauthenticated().with_client_auth_cert(other_chain, other_key).unwrap());
    let nobody = Arc::new(client(&[]));

    let auth = ClientAuth::Required(authority.clone());
    let server = tcp(store(), &Options { client_auth: auth, ..Options::default() }).unwrap();
    assert!(handshake(&server, &nobody, "a.example").is_err());
    assert!(handshake(&server, &unknown, "a.example").is_err());
    let certificate = *session(&server, &known).client.unwrap();
    assert_eq!(certificate.subject, "CN=Ann,O=Smith\\, Sons,C=DE");
    assert_eq!((certificate.common_name.as_str(), certificate.serial.as_str()), ("Ann", "0ABC"));
    assert!(certificate.issuer.contains("CN=Test CA") && certificate.fingerprint.len() == 64, "{certificate:?}");
    assert!(certificate.not_after.ends_with(" GMT"), "{certificate:?}");
    // No session outlives the certificate: each connection presents it again.
    for quic in [false, true] {
        let options = || Options { client_auth: ClientAuth::Required(authority.clone()), ..Options::default() };
        let config = if quic { super::quic(store(), &options(), true) } else { tcp(store(), &options()) }.unwrap();
        assert!(!config.ticketer.enabled() && !config.session_storage.can_cache() && config.send_tls13_tickets == 0);
    }
    let again = session(&server, &known);
    assert!(!again.resumed && again.client.as_deref() == Some(&certificate));

    let auth = ClientAuth::Optional(authority);
    let server = tcp(store(), &Options { client_auth: auth, ..Options::default() }).unwrap();
    assert!(session(&server, &nobody).client.is_none());
    assert!(session(&server, &known).client.is_some());
    assert!(handshake(&server, &unknown, "a.example").is_err());

    let missing = ClientAuth::Required(dir.path().join("none.pem"));
    let error = tcp(store(), &Options { client_auth: missing, ..Options::default() }).unwrap_err().to_string();
    assert!(error.contains("none.pem"), "{error}");
}

#[test]
fn quic_speaks_only_http_3() {
    let server = quic(store(), &Options::default(), true).unwrap();
    assert_eq!(server.alpn_protocols, [b"h3".to_vec()]);
    assert_eq!(server.max_early_data_size, u32::MAX);
    assert_eq!(quic(store(), &Options::default(), false).unwrap().max_early_data_size, 0);
}

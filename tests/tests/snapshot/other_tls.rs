//! Connections encrypted by another library than OpenSSL: by GnuTLS, which Debian's libldap uses, and by unknown
//! libraries.

use super::boot::booted;
use howdah_tests::{Mode, Setup, php, run, tls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

/// Position of the message id in a request, and the response that accepts any bind (RFC 4511).
const NUMBER: usize = 4;
const WELCOME: [u8; 14] = [0x30, 0x0c, 0x02, 0x01, 0, 0x61, 0x07, 0x0a, 0x01, 0x00, 0x04, 0x00, 0x04, 0x00];

/// An LDAP server over TLS that knows one response. It ends with the test.
fn directory() -> u16 {
    let place = tempfile::tempdir().unwrap();
    let files = tls::certificate(place.path(), "ldap", &["localhost"]);
    let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
    let chain = vec![CertificateDer::from_pem_file(&files.cert).unwrap()];
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            std::thread::spawn(move || {
                let mut request = [0; 1000];
                while stream.read(&mut request).is_ok_and(|length| length > NUMBER) {
                    let mut response = WELCOME;
                    response[NUMBER] = request[NUMBER];
                    let _ = stream.write_all(&response);
                }
            });
        }
    });
    port
}

fn with_ldap(setup: Setup, boot: &str) -> Setup {
    booted(setup.extension("ldap", "extension"), boot)
}

#[test]
fn a_connection_by_gnutls_that_the_boot_leaves_open_is_refused() {
    let port = directory();
    let boot = php!("other_tls/bind.php", PORT = port);
    run(
        Mode::Snapshot,
        |s| {
            with_ldap(s, &boot)
                .expect_boot_failure()
                .expect_log("the encrypted connection")
                .expect_log("ended before it was ready")
        },
        |site| {
            let peer = format!("the encrypted connection to one of 127.0.0.1:{port} is open; open it in each request");
            let _ = site.wait_for_log(&["ended before it was ready", &peer]);
        },
    );
}

/// The boot communicates through functions that are not hooked, as another TLS library does.
#[test]
fn a_connection_on_which_the_boot_has_talked_unseen_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"welcome");
            kept.push(stream);
        }
    });
    let boot = php!("other_tls/unseen.php", PORT = port);
    run(
        Mode::Snapshot,
        |s| {
            booted(s.ini("ffi.enable", "true"), &boot)
                .expect_boot_failure()
                .expect_log("its library cannot be observed")
                .expect_log("ended before it was ready")
        },
        |site| {
            let peer = format!("a connection to 127.0.0.1:{port} is open: its library cannot be observed");
            let _ = site.wait_for_log(&["ended before it was ready", &peer]);
        },
    );
}

#[test]
fn connections_by_gnutls_that_requests_open_are_theirs() {
    let port = directory();
    let bind = php!("other_tls/bind.php", PORT = port);
    run(
        Mode::Snapshot,
        |s| {
            let s = with_ldap(s, &format!("{bind}\nldap_unbind($directory);"));
            s.file("index.php", format!("<?php\n{bind}\necho (int) $bound, ' ', getmypid();\n"))
        },
        |site| {
            let first = site.get_ok("/");
            assert!(first.starts_with("1 "), "{first}");
            for _ in 0..3 {
                assert_eq!(site.get_ok("/"), first, "the worker is restored, not replaced");
            }
        },
    );
}

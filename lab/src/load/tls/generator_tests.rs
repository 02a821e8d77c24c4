//! The generator against a small server with rustls, so that its counts are exact.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::cases::Protocol;
use crate::certificate::Certificate;
use crate::load::client;

/// Responds to each request on every connection.
fn server(certificate: &Certificate, tickets: usize, reply: &'static str) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = CertificateDer::from_pem_file(&certificate.chain).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], PrivateKeyDer::from_pem_file(&certificate.key).unwrap())
        .unwrap();
    config.send_tls13_tickets = tickets;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let state = ServerConnection::new(Arc::clone(&config)).unwrap();
            thread::spawn(move || {
                let mut stream = StreamOwned::new(state, stream);
                let mut request = [0; 1024];
                while stream.read(&mut request).is_ok_and(|count| count > 0) {
                    let close = String::from_utf8_lossy(&request).contains("Connection: close");
                    if stream.write_all(reply.as_bytes()).is_err() || close {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn load(connections: Connections, tickets: usize, reply: &'static str) -> Result<LoadReport> {
    let dir = tempfile::tempdir().unwrap();
    let certificate = Certificate::make(dir.path()).unwrap();
    let address = server(&certificate, tickets, reply);
    let tls = Tls { protocol: Protocol::Http1, connections, authority: certificate.authority };
    let target = Target { address, path: "/x".into(), accept_encoding: "identity".into(), tls: Some(tls.clone()) };
    // The certificate is valid for a client that checks it.
    client::ask(&target, Duration::from_secs(20)).unwrap();
    run(&target, &tls, Shape { connections: 3, threads: 2, seconds: 0.3 }, &Interrupt::default())
}

const SIZED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn answers_of_kept_connections_are_counted_with_their_bytes() {
    for reply in [SIZED, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"] {
        let report = load(Connections::Kept, 2, reply).unwrap();
        assert!(report.requests >= 3 && report.errors.total() == 0, "{report:?}");
        assert_eq!(report.bytes, report.requests * reply.len() as u64);
        assert!(report.latency.at(50.0).unwrap() > 1.0 && report.generator_cpu >= 0.0);
    }
    let report = load(Connections::Kept, 2, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n").unwrap();
    assert_eq!(report.errors.status, report.requests);
}

#[test]
fn handshakes_are_full_or_resumed_as_the_case_wants() {
    assert!(load(Connections::New, 2, SIZED).unwrap().requests >= 3);
    assert!(load(Connections::Resumed, 2, SIZED).unwrap().requests >= 3);
}

#[test]
fn a_system_without_tickets_has_no_figure_for_resumed_handshakes() {
    let error = load(Connections::Resumed, 0, SIZED).unwrap_err().to_string();
    assert!(error.contains("resumed 0 of"), "{error}");
}

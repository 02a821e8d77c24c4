//! Parameters of the clients' handshakes: for the load, and for checks of responses.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use howdah_trusting::Trusting;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::cases::{Connections, Protocol};
use crate::certificate::NAME;
use crate::load::Tls;

/// Number of tickets that a client keeps.
const TICKETS: usize = 8;

/// A blocking connection whose server has presented the right certificate.
pub type Checked = StreamOwned<ClientConnection, TcpStream>;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws_lc_rs::default_provider()
    })
}

/// Returns the server name that clients request.
pub(super) fn name() -> io::Result<ServerName<'static>> {
    ServerName::try_from(NAME).map_err(io::Error::other)
}

/// Returns the configuration of one client, which resumes only its own sessions.
pub(super) fn of_load(protocol: Protocol, connections: Connections) -> Result<ClientConfig, rustls::Error> {
    let provider = provider();
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        // Under load the client is not what is measured.
        .with_custom_certificate_verifier(Trusting::blind(provider))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.alpn().to_vec()];
    config.resumption = match connections {
        Connections::Resumed => Resumption::in_memory_sessions(TICKETS),
        Connections::Kept | Connections::New => Resumption::disabled(),
    };
    Ok(config)
}

/// Opens a connection for checks: the certificate must be the lab's. Uses HTTP/1.1, whatever the protocol of the load.
pub fn checked(tls: &Tls, stream: TcpStream) -> io::Result<Checked> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(&tls.authority).map_err(io::Error::other)?;
    roots.add(authority).map_err(io::Error::other)?;
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), name()?).map_err(io::Error::other)?;
    Ok(StreamOwned::new(client, stream))
}

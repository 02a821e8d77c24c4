//! Certificates for tests, and in-memory handshakes.
#![allow(clippy::unwrap_used)]

use crate::certificate::Certificate;
use crate::provider::provider;
use howdah_trusting::Trusting;
use rcgen::{CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A chain and a key in PEM.
pub(crate) struct Made {
    pub(crate) chain: String,
    pub(crate) key: String,
}

pub(crate) fn make_with(names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Made {
    let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let chain = params.self_signed(&key).unwrap().pem();
    Made { chain, key: key.serialize_pem() }
}

pub(crate) fn make(names: &[&str]) -> Made {
    make_with(names, |_| {})
}

impl Made {
    pub(crate) fn write(&self, dir: &Path) -> (PathBuf, PathBuf) {
        let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
        std::fs::write(&certificate, &self.chain).unwrap();
        std::fs::write(&key, &self.key).unwrap();
        (certificate, key)
    }

    pub(crate) fn loaded(&self) -> Certificate {
        Certificate::from_pem(self.chain.as_bytes(), self.key.as_bytes(), Path::new("c"), Path::new("k")).unwrap()
    }
}

pub(crate) fn certificate(names: &[&str]) -> Certificate {
    make(names).loaded()
}

/// Creates an authority, and a client certificate that it signed, with its key.
pub(crate) fn client_of_authority(dir: &Path) -> (PathBuf, Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "Test CA");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let path = dir.join("ca.pem");
    std::fs::write(&path, authority.pem()).unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CountryName, "DE");
    params.distinguished_name.push(DnType::OrganizationName, "Smith, Sons");
    params.distinguished_name.push(DnType::CommonName, "Ann");
    params.serial_number = Some(rcgen::SerialNumber::from(vec![0x0a, 0xbc]));
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    (path, vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

/// A client that accepts every certificate.
pub(crate) fn client(alpn: &[&[u8]]) -> ClientConfig {
    let mut config = unauthenticated().with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config
}

pub(crate) fn unauthenticated() -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Trusting::new(provider()))
}

/// Runs a handshake and the messages that follow it on both sides, such as tickets.
pub(crate) fn handshake(
    server: &Arc<ServerConfig>,
    client: &Arc<ClientConfig>,
    name: &str,
) -> Result<(ServerConnection, ClientConnection), rustls::Error> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(client.clone(), name)?;
    let mut server = ServerConnection::new(server.clone())?;
    for _ in 0..10 {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut wire = wire.as_slice();
        while !wire.is_empty() {
            server.read_tls(&mut wire).unwrap();
            server.process_new_packets()?;
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut wire = wire.as_slice();
        while !wire.is_empty() {
            client.read_tls(&mut wire).unwrap();
            client.process_new_packets()?;
        }
    }
    assert!(!server.is_handshaking() && !client.is_handshaking());
    Ok((server, client))
}

//! Selects the certificate for a ClientHello.

use crate::store::Store;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// The protocol by which an authority checks a name (RFC 8737). It carries no data: the connection ends after its
/// handshake.
pub const ACME_TLS: &[u8] = b"acme-tls/1";

/// Selects a certificate by the name that the client sent (SNI).
#[derive(Debug)]
pub(crate) struct Resolver(pub(crate) Arc<Store>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if is_challenge(&hello) {
            return self.0.challenge(hello.server_name()?);
        }
        self.0.find(hello.server_name(), hello.signature_schemes())
    }
}

/// An authority offers only this protocol (RFC 8737 section 3). Clients that offer others as well get one of those.
fn is_challenge(hello: &ClientHello<'_>) -> bool {
    let Some(mut offered) = hello.alpn() else { return false };
    offered.next() == Some(ACME_TLS) && offered.next().is_none()
}

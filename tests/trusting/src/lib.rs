//! TLS clients that accept every certificate: for tests, whose servers create their own, and for the lab's load
//! generator. No part of the server may use this.
#![forbid(unsafe_code)]

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::sync::Arc;

/// Accepts every certificate.
#[derive(Debug)]
pub struct Trusting {
    provider: Arc<CryptoProvider>,
    checks_signatures: bool,
}

impl Trusting {
    /// Checks only that the server has the certificate's key.
    pub fn new(provider: Arc<CryptoProvider>) -> Arc<Self> {
        Arc::new(Self { provider, checks_signatures: true })
    }

    /// Skips that check too: a load generator would measure its own work.
    pub fn blind(provider: Arc<CryptoProvider>) -> Arc<Self> {
        Arc::new(Self { provider, checks_signatures: false })
    }
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.checks_signatures {
            true => {
                verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
            }
            false => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.checks_signatures {
            true => {
                verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
            }
            false => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

//! Verification of client certificates.

use crate::provider::provider;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Requirements for client certificates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ClientAuth {
    /// No certificate is requested.
    #[default]
    Off,
    /// A certificate is optional. One that these authorities did not sign ends the handshake.
    Optional(PathBuf),
    /// A certificate from these authorities is required.
    Required(PathBuf),
}

/// Creates the verifier for the settings.
pub(crate) fn verifier(auth: &ClientAuth) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let (path, optional) = match auth {
        ClientAuth::Off => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientAuth::Optional(path) => (path, true),
        ClientAuth::Required(path) => (path, false),
    };
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider());
    if optional {
        builder = builder.allow_unauthenticated();
    }
    builder.build().map_err(|error| format!("{}: {error}", path.display()))
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let pem = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| format!("{}: {error}", path.display()))?;
        roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if roots.is_empty() {
        return Err(format!("{} has no certificate in PEM", path.display()));
    }
    Ok(roots)
}

//! The authorities whose clients are known.

use crate::provider::provider;
use crate::server_config::{ClientAuth, ConfigError};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::Path;
use std::sync::Arc;

/// Checks clients' certificates as the settings say.
pub(crate) fn verifier(auth: &ClientAuth) -> Result<Arc<dyn ClientCertVerifier>, ConfigError> {
    let (path, optional) = match auth {
        ClientAuth::Off => return Ok(WebPkiClientVerifier::no_client_auth()),
        ClientAuth::Optional(path) => (path, true),
        ClientAuth::Required(path) => (path, false),
    };
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(path)?), provider());
    if optional {
        builder = builder.allow_unauthenticated();
    }
    builder.build().map_err(|error| ConfigError::ClientCa(format!("{}: {error}", path.display())))
}

fn roots(path: &Path) -> Result<RootCertStore, ConfigError> {
    let failed = |why: String| ConfigError::ClientCa(why);
    let pem = std::fs::read(path).map_err(|error| failed(format!("cannot read {}: {error}", path.display())))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| failed(format!("{}: {error}", path.display())))?;
        roots.add(certificate).map_err(|error| failed(format!("{}: {error}", path.display())))?;
    }
    if roots.is_empty() {
        return Err(failed(format!("{} has no certificate in PEM", path.display())));
    }
    Ok(roots)
}

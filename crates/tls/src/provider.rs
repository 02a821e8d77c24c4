//! The only cryptography provider. It is passed explicitly wherever rustls takes one: if two providers are compiled in,
//! rustls panics when it has to choose.

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use std::sync::{Arc, OnceLock};

/// AWS-LC, with rustls' choice of cipher suites and of key exchange (X25519 with ML-KEM first).
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(aws_lc_rs::default_provider())).clone()
}

/// Installs it as the process default as well, for libraries that use the default. Called once, at start.
pub fn install() {
    // An error means that a default is already installed, which can only be this provider.
    let _ = CryptoProvider::clone(&provider()).install_default();
}

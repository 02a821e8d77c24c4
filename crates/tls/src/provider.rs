//! The one provider of cryptography. It is passed explicitly wherever rustls takes one: where two providers are compiled in,
//! rustls' own choice is a panic at start.

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use std::sync::{Arc, OnceLock};

/// AWS-LC, with rustls' choice of cipher suites and of key exchange (X25519 with ML-KEM first).
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER.get_or_init(|| Arc::new(aws_lc_rs::default_provider())).clone()
}

/// Makes it the process's default as well, for libraries that ask for that. To be called once, at start.
pub fn install() {
    // An error says that there is one already, which can only be this one.
    let _ = CryptoProvider::clone(&provider()).install_default();
}

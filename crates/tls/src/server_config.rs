//! Settings of rustls for the server: versions, protocols, resumption, client certificates.

use crate::client_ca::{self, ClientAuth};
use crate::provider::provider;
use crate::resolver::{ACME_TLS, Resolver};
use crate::store::Store;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{NoServerSessionStorage, ProducesTickets, ServerSessionMemoryCache};
use rustls::ticketer::TicketRotator;
use rustls::version::{TLS12, TLS13};
use std::sync::Arc;

/// Maximum number of cached sessions: for TLS 1.2 clients without ticket support, and QUIC with early data.
const CACHED_SESSIONS: usize = 2048;

/// Seconds after which new tickets use a new key. Tickets of the previous key are accepted for as long again.
const TICKET_ROTATION: u32 = 6 * 3600;

/// The minimum TLS version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MinVersion {
    /// TLS 1.2.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// Options of the server configuration.
#[derive(Debug, Clone)]
pub struct Options {
    /// The minimum TLS version.
    pub min_version: MinVersion,
    /// Requirements for client certificates.
    pub client_auth: ClientAuth,
}

impl Default for Options {
    fn default() -> Self {
        Self { min_version: MinVersion::default(), client_auth: ClientAuth::Off }
    }
}

/// Reason why the configuration cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The authorities for client certificates cannot be used.
    #[error("{0}")]
    ClientCa(String),
    #[error("TLS cannot be set up: {0}")]
    Rustls(#[from] rustls::Error),
}

/// For connections over TCP. All I/O threads share one configuration, so each thread can resume the others' sessions.
///
/// # Errors
/// The authorities' file is missing or invalid.
pub fn tcp(store: Arc<Store>, options: &Options) -> Result<Arc<ServerConfig>, ConfigError> {
    let versions: &[_] = match options.min_version {
        MinVersion::Tls12 => &[&TLS13, &TLS12],
        MinVersion::Tls13 => &[&TLS13],
    };
    let mut config = base(store, options, versions)?;
    // Without a common protocol a handshake fails (RFC 7301 3.2). Order is preference. Some clients offer only
    // HTTP/1.0.
    let protocols: [&[u8]; 4] = [b"h2", b"http/1.1", b"http/1.0", ACME_TLS];
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// For QUIC: only TLS 1.3 and HTTP/3. `early_data` lets a resumed client send its first requests at once (0-RTT).
///
/// # Errors
/// The authorities' file is missing or invalid.
pub fn quic(store: Arc<Store>, options: &Options, early_data: bool) -> Result<Arc<ServerConfig>, ConfigError> {
    let mut config = base(store, options, &[&TLS13])?;
    config.alpn_protocols = vec![b"h3".to_vec()];
    // QUIC allows only these two values (RFC 9001 4.6.1).
    config.max_early_data_size = if early_data { u32::MAX } else { 0 };
    if early_data {
        // Tickets could be replayed; a cached session is removed on its first use.
        config.ticketer = Arc::new(NoTickets);
    }
    Ok(Arc::new(config))
}

/// Each configuration has its own ticket keys: a session must not be resumed under another configuration, which may
/// require client certificates.
fn base(
    store: Arc<Store>,
    options: &Options,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Result<ServerConfig, ConfigError> {
    let verifier = client_ca::verifier(&options.client_auth).map_err(ConfigError::ClientCa)?;
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(versions)?;
    let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(Arc::new(Resolver(store)));
    if options.client_auth == ClientAuth::Off {
        config.ticketer = tickets()?;
        config.session_storage = ServerSessionMemoryCache::new(CACHED_SESSIONS);
    } else {
        // A resumed session is not verified again: it would outlive the client's certificate.
        config.ticketer = Arc::new(NoTickets);
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// Creates tickets with rotating keys.
fn tickets() -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
    let generate = || match Ticketer::new() {
        Ok(ticketer) => Ok(Box::new(Key(ticketer)) as Box<dyn ProducesTickets>),
        Err(_) => Err(rustls::crypto::GetRandomFailed),
    };
    Ok(Arc::new(TicketRotator::new(TICKET_ROTATION, generate)?))
}

/// One ticket key, with the interface that rustls expects.
#[derive(Debug)]
struct Key(Arc<dyn ProducesTickets>);

impl ProducesTickets for Key {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.0.decrypt(cipher)
    }
}

/// Disables stateless tickets: sessions are cached on the server, or not resumed.
#[derive(Debug)]
struct NoTickets;

impl ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[cfg(test)]
#[path = "server_config_tests.rs"]
mod tests;

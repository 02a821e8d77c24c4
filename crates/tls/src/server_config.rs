//! rustls' settings for the server, in one place: versions, protocols, resumption, clients' certificates.

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

/// Sessions that are kept for clients of TLS 1.2 that know no tickets.
const CACHED_SESSIONS: usize = 2048;

/// Seconds after which new tickets use a new key. Those of the previous key are accepted for as long again.
const TICKET_ROTATION: u32 = 6 * 3600;

/// The oldest version that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MinVersion {
    /// TLS 1.2.
    #[default]
    Tls12,
    /// TLS 1.3.
    Tls13,
}

/// Configuration of the server's side.
#[derive(Debug, Clone)]
pub struct Options {
    /// The oldest version that is spoken.
    pub min_version: MinVersion,
    /// Clients' certificates.
    pub client_auth: ClientAuth,
}

impl Default for Options {
    fn default() -> Self {
        Self { min_version: MinVersion::default(), client_auth: ClientAuth::Off }
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The authorities of clients' certificates cannot be used.
    #[error("{0}")]
    ClientCa(String),
    /// rustls has refused.
    #[error("TLS cannot be set up: {0}")]
    Rustls(#[from] rustls::Error),
}

/// For connections over TCP. All I/O threads share one: what one has made a ticket for, another resumes.
///
/// # Errors
/// The authorities' file is missing or wrong.
pub fn tcp(store: Arc<Store>, options: &Options) -> Result<Arc<ServerConfig>, ConfigError> {
    let versions: &[_] = match options.min_version {
        MinVersion::Tls12 => &[&TLS13, &TLS12],
        MinVersion::Tls13 => &[&TLS13],
    };
    let mut config = base(store, options, versions)?;
    // Without a common protocol a handshake fails (RFC 7301 3.2). Order is preference. Some clients offer HTTP/1.0 alone.
    let protocols: [&[u8]; 4] = [b"h2", b"http/1.1", b"http/1.0", ACME_TLS];
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// For QUIC: TLS 1.3 and HTTP/3 alone. `early_data` lets a resumed client send its first requests at once (0-RTT).
///
/// # Errors
/// The authorities' file is missing or wrong.
pub fn quic(store: Arc<Store>, options: &Options, early_data: bool) -> Result<Arc<ServerConfig>, ConfigError> {
    let mut config = base(store, options, &[&TLS13])?;
    config.alpn_protocols = vec![b"h3".to_vec()];
    // QUIC knows all or nothing (RFC 9001 4.6.1).
    config.max_early_data_size = if early_data { u32::MAX } else { 0 };
    if early_data {
        // Tickets could be used many times; sessions that are kept here are taken out by their first use.
        config.ticketer = Arc::new(NoTickets);
    }
    Ok(Arc::new(config))
}

/// Each configuration has its own keys of tickets: a session that was made under one must not be resumed under another,
/// which may ask clients for certificates.
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

/// Tickets whose key changes.
fn tickets() -> Result<Arc<dyn ProducesTickets>, rustls::Error> {
    let generate = || match Ticketer::new() {
        Ok(ticketer) => Ok(Box::new(Key(ticketer)) as Box<dyn ProducesTickets>),
        Err(_) => Err(rustls::crypto::GetRandomFailed),
    };
    Ok(Arc::new(TicketRotator::new(TICKET_ROTATION, generate)?))
}

/// One key of tickets, in the library's shape.
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

/// No tickets that stand for themselves: sessions are kept.
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

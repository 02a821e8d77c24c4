//! The server's side of TLS: certificates, their selection for a client, and the facts about a connection.
//!
//! Reading order: `certificate` (a chain and its key, loaded and checked together), `store` (certificates by name, read
//! without locks), `resolver` (selection for a ClientHello), `server_config` (rustls' settings), `files` (certificate
//! files, reloaded while the server runs), `acme` (certificates from an ACME authority), `local_ca` (certificates that
//! the server signs itself), `session` (variables for PHP), `client` (TLS to other servers).
//!
//! No PHP process has private keys or the secrets of session tickets in memory: all descend from processes that were
//! started by exec.
#![forbid(unsafe_code)]

mod access;
pub mod acme;
pub mod certificate;
pub mod client;
mod client_ca;
mod distinguished_name;
pub mod files;
mod hosts;
pub mod local_ca;
pub mod names;
pub mod provider;
mod resolver;
pub mod server_config;
pub mod session;
pub mod store;
#[cfg(test)]
mod testing;

pub use access::FileUser;
pub use certificate::{Certificate, CertificateError, CertificateWarning};
pub use client_ca::ClientAuth;
pub use files::{Files, Pair};
pub use hosts::Hosts;
pub use provider::provider;
pub use resolver::ACME_TLS;
pub use rustls::ServerConfig;
pub use server_config::{ConfigError, MinVersion, Options};
pub use session::{ClientCertificate, Session};
pub use store::Store;

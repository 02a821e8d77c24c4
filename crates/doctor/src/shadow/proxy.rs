//! State that all connections of clients share.

use super::sample::Sampler;
use super::tally::Tally;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Durations after which the proxy gives up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Wait for the next request of a connection, its head included.
    pub(super) idle: Duration,
    /// Wait for a connection to the old server.
    pub(super) connect: Duration,
    /// Time in which nothing moves in a running exchange, in either direction.
    pub(super) stalled: Duration,
    /// Time for a client to read a response that came before the end of its request.
    pub(super) linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(75),
            connect: Duration::from_secs(10),
            stalled: Duration::from_secs(300),
            linger: Duration::from_secs(5),
        }
    }
}

/// State shared by all connections.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) old: SocketAddr,
    pub(super) sampler: Arc<Sampler>,
    pub(super) tally: Arc<Tally>,
    pub(super) limits: Limits,
}

//! The interface to pools and proxies that the phases use. Tests substitute their own implementation.

use howdah_pool::{Fault, Request};
use howdah_protocol::{Outbound, Response};
use http::StatusCode;
use std::time::Duration;

/// The failure of an upstream server to respond.
#[derive(Debug)]
pub struct Unreachable {
    /// The status that the client gets.
    pub status: StatusCode,
    /// The proxy's name.
    pub proxy: String,
    /// The server and the error, for the log.
    pub why: String,
}

/// The status page of a pool in PHP-FPM's formats. With the query `ping`, it only shows if the pool has a worker.
#[derive(Debug)]
pub struct PoolPageText {
    pub status: StatusCode,
    pub media_type: &'static str,
    pub body: String,
}

/// The pools that may run a request, by their positions in the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub pool: usize,
    /// A recipe's pool that runs the request instead, as long as it is serving.
    pub preferred: Option<usize>,
}

/// Runs requests. `cli` implements it with the pools and proxies.
pub trait Upstream: Send + Sync + 'static {
    /// Waits, for a limited time, until the pool that would run a request has room for it. Returns the time waited.
    fn room(&self, target: Target) -> impl Future<Output = Duration> + Send {
        let _ = target;
        std::future::ready(Duration::ZERO)
    }

    /// Maximum size in bytes of a form that PHP reads in the pool with this position in the settings; `None` for no
    /// limit.
    fn form_limit(&self, pool: usize) -> Option<u64> {
        let _ = pool;
        None
    }

    /// `Ok` if the server is ready for requests.
    ///
    /// # Errors
    /// The reason why it is not ready.
    fn ready(&self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the status page of the pool with this position in the settings.
    fn pool_page(&self, pool: usize, query: &[u8]) -> Option<PoolPageText> {
        let _ = (pool, query);
        None
    }

    /// Sends a request to a server of the proxy with this position in the settings.
    fn forward(&self, proxy: usize, outbound: Outbound) -> impl Future<Output = Result<Response, Unreachable>> + Send {
        let _ = outbound;
        std::future::ready(Err(Unreachable {
            status: StatusCode::BAD_GATEWAY,
            proxy: proxy.to_string(),
            why: "proxies are not supported here".to_owned(),
        }))
    }

    /// Runs `request`, which is boxed because it is large and often moved.
    fn run(
        &self,
        target: Target,
        request: Box<Request>,
    ) -> impl Future<Output = Result<howdah_pool::Response, Fault>> + Send;
}

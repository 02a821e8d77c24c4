//! The border to PHP and to other servers: what the phases need of the pools and of proxies, so that tests can put something else
//! in their place.

use howdah_pool::{Fault, Request};
use howdah_protocol::{Outbound, Response};
use http::StatusCode;
use std::time::Duration;

/// Why another server has not responded.
#[derive(Debug)]
pub struct Unreachable {
    /// The status that the client gets.
    pub status: StatusCode,
    /// The proxy's name.
    pub proxy: String,
    /// Which server it was and what happened, for the log.
    pub why: String,
}

/// The server's own page about a pool: its state, in the formats of PHP-FPM, or with the query `ping` whether it has a worker.
#[derive(Debug)]
pub struct PoolPageText {
    pub status: StatusCode,
    pub media_type: &'static str,
    pub body: String,
}

/// The pools that a request may run in, by their positions in the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub pool: usize,
    /// The pool that takes the request instead while it serves.
    pub ahead: Option<usize>,
}

/// Runs requests. The composition root implements it on the pools and proxies.
pub trait Upstream: Send + Sync + 'static {
    /// Returns when the pool that would run a request has a place for it, or has had none for a while; how long that took.
    fn room(&self, target: Target) -> impl Future<Output = Duration> + Send {
        let _ = target;
        std::future::ready(Duration::ZERO)
    }

    /// The largest form that the PHP of the pool with this position in the settings reads; none for any.
    fn form_limit(&self, pool: usize) -> Option<u64> {
        let _ = pool;
        None
    }

    /// `Ok` if requests should be sent here.
    ///
    /// # Errors
    /// The reason why not.
    fn ready(&self) -> Result<(), String> {
        Ok(())
    }

    /// The page about the pool at this position in the settings.
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
            why: "there is no way to other servers here".to_owned(),
        }))
    }

    /// Runs `request`.
    fn run(
        &self,
        target: Target,
        request: Request,
    ) -> impl Future<Output = Result<howdah_pool::Response, Fault>> + Send;
}

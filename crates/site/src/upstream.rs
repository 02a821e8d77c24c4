//! The border to PHP: what the PHP phase needs from the pools, so that tests can put something else in their place.

use howdah_pool::{Fault, Request, Response};

/// Runs requests. The composition root implements it on the pools.
pub trait Upstream: Send + Sync + 'static {
    /// Returns when the pool with this position in the settings has a place for a request, or has had none for a while.
    fn room(&self, pool: usize) -> impl Future<Output = ()> + Send {
        let _ = pool;
        std::future::ready(())
    }

    /// Runs `request` on the pool with this position in the settings.
    fn run(&self, pool: usize, request: Request) -> impl Future<Output = Result<Response, Fault>> + Send;
}

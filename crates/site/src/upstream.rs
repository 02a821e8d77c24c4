//! The border to PHP: what the PHP phase needs from the pools, so that tests can put something else in their place.

use howdah_pool::{Call, Fault, Reply};

/// Runs requests. The composition root implements it on the pools.
pub trait Upstream: Send + Sync + 'static {
    /// Returns when the pool with this position in the settings has a place for a request, or has had none for a while.
    fn room(&self, pool: usize) -> impl Future<Output = ()> + Send {
        let _ = pool;
        std::future::ready(())
    }

    /// Runs `call` on the pool with this position in the settings.
    fn call(&self, pool: usize, call: Call) -> impl Future<Output = Result<Reply, Fault>> + Send;
}

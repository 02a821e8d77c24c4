//! Runs blocking work off the runtime's threads.

use crate::acme::failure::Failure;
use tokio::task::spawn_blocking;

/// Runs `work` on a thread for blocking work.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    spawn_blocking(work).await.map_err(|_| Failure::of_name("the server is stopping"))
}

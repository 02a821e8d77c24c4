//! Orders from the admin endpoint to the server's supervision loop.

use tokio::sync::oneshot;

/// The receiver of an upgrade's result.
pub(crate) type Waiter = oneshot::Sender<Result<String, String>>;

#[derive(Debug)]
pub(crate) enum Order {
    /// Stop; respond when the shutdown is complete.
    Stop(oneshot::Sender<()>),
    /// Replace this process with a new one; respond with the result.
    Upgrade(Waiter),
}

//! Orders from the admin endpoint to the server's supervision loop.

use tokio::sync::oneshot;

/// The receiver of an upgrade's result.
pub(crate) type Waiter = oneshot::Sender<Result<String, String>>;

/// An order.
#[derive(Debug)]
pub(crate) enum Order {
    /// Stop; respond when everything has ended.
    Stop(oneshot::Sender<()>),
    /// Have another process take this one's place; respond with what came of it.
    Upgrade(Waiter),
}

//! What the admin endpoint asks of the server, which whoever supervises the server does.

use tokio::sync::oneshot;

/// Who asked for an upgrade, and hears what came of it.
pub(crate) type Waiter = oneshot::Sender<Result<String, String>>;

/// See above.
#[derive(Debug)]
pub(crate) enum Order {
    /// Stop; respond when everything has ended.
    Stop(oneshot::Sender<()>),
    /// Have another process take this one's place; respond with what came of it.
    Upgrade(Waiter),
}

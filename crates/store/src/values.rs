//! Values, announcements and locks in a broker. All operations block.

use std::collections::HashSet;
use std::io;
use std::sync::mpsc::sync_channel;
use std::time::Duration;
use tokio::runtime::Handle;

/// Lifetime of a lock that is not extended.
pub(crate) const LOCK_LIFE: Duration = Duration::from_secs(30);
/// Lifetime of announcements, in case a server never removes them.
pub(crate) const ANNOUNCED_LIFE: Duration = Duration::from_secs(3600);

/// Values in a broker. Errors: the broker is unreachable or too slow, or its reply is not valid.
pub(crate) trait Values: Send + Sync {
    fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>>;

    fn set(&self, key: &str, value: &[u8]) -> io::Result<()>;

    /// Sets a value unless it exists.
    fn add(&self, key: &str, value: &[u8]) -> io::Result<()>;

    fn remove(&self, key: &str) -> io::Result<()>;

    /// Sets the value `prefix:name`, which expires, and announces its name.
    fn announce(&self, prefix: &str, name: &str, value: &[u8]) -> io::Result<()>;

    /// The names announced with this prefix.
    fn announced(&self, prefix: &str) -> io::Result<HashSet<String>>;

    /// Removes an announced value and its name.
    fn withdraw(&self, prefix: &str, name: &str) -> io::Result<()>;

    /// Takes a lock. `true`: `own` holds it now.
    fn take_lock(&self, key: &str, own: &str) -> io::Result<bool>;

    /// Extends a lock. `false`: `own` does not hold it.
    fn extend_lock(&self, key: &str, own: &str) -> io::Result<bool>;

    /// Releases a lock that `own` holds.
    fn release_lock(&self, key: &str, own: &str) -> io::Result<()>;
}

/// The key of a value.
pub(crate) fn key(prefix: &str, name: &str) -> String {
    format!("{prefix}:{name}")
}

/// Blocks until this future, which runs on the broker's thread, has ended.
pub(crate) fn wait<T: Send + 'static>(
    runtime: &Handle,
    future: impl Future<Output = io::Result<T>> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = sync_channel(1);
    runtime.spawn(async move {
        let _ = sender.send(future.await);
    });
    receiver.recv().map_err(|_| io::Error::other("the server is stopping"))?
}

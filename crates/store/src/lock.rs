//! A lock in a broker: it expires unless its holder extends it, so a server that dies blocks no other for long.

use crate::broker::Broker;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Interval of extensions.
const EXTEND: Duration = Duration::from_secs(8);

/// A held lock. Dropping it ends the thread that extends it, which then releases the lock.
#[derive(Debug)]
pub struct SharedLock(#[expect(dead_code, reason = "holds the lock until it goes")] Sender<()>);

/// Takes a lock if it is free.
pub(crate) fn try_lock(broker: &Broker, key: String) -> io::Result<Option<SharedLock>> {
    let own = format!("{}-{:x}{:x}", std::process::id(), fastrand::u64(..), fastrand::u64(..));
    if !broker.values().take_lock(&key, &own)? {
        return Ok(None);
    }
    let (held, end) = channel::<()>();
    let broker = broker.clone();
    let keep = move || {
        while end.recv_timeout(EXTEND) == Err(RecvTimeoutError::Timeout) {
            if !extend(&broker, &key, &own) {
                tracing::warn!(
                    "the lock {key} in {} was taken by another server, which may repeat the work",
                    broker.place()
                );
                return;
            }
        }
        // Otherwise it expires.
        let _ = broker.values().release_lock(&key, &own);
    };
    std::thread::Builder::new().name("lock".to_owned()).spawn(keep)?;
    Ok(Some(SharedLock(held)))
}

/// Returns `false` if another server has the lock. While the broker is unreachable, no server can take the lock; after
/// an outage longer than the lock's lifetime, the first server that asks gets it.
pub(crate) fn extend(broker: &Broker, key: &str, own: &str) -> bool {
    match broker.values().extend_lock(key, own) {
        Ok(true) => true,
        Ok(false) => broker.values().take_lock(key, own).unwrap_or(true),
        Err(error) => {
            tracing::debug!("cannot extend the lock {key}: {error}");
            true
        }
    }
}

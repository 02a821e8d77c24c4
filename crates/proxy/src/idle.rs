//! Idle connections of one I/O thread to each server, reused in last-in, first-out order.

use crate::link::Link;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Interval at which idle connections are checked for age, and for closes by their server.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum idle time of a connection that may carry a request that must not be sent twice. A server may be closing an
/// older connection at this moment, and then it is unknown if it processed the request.
const SAFE_IDLE: Duration = Duration::from_secs(1);

/// Idle connections to one server of a proxy. The lock is used by one thread only, so it is never contended.
#[derive(Default)]
pub(crate) struct Idle(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    links: Vec<Link>,
    swept: bool,
}

impl std::fmt::Debug for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Idle({})", self.0.lock().links.len())
    }
}

impl Idle {
    /// Takes a connection that still appears to be open. `once`: for a request that must not be sent twice.
    pub(crate) fn take(&self, once: bool) -> Option<Link> {
        let mut waiting = self.0.lock();
        while let Some(mut link) = waiting.links.pop() {
            if once && link.since.elapsed() > SAFE_IDLE {
                waiting.links.push(link);
                return None;
            }
            if link.is_usable() {
                return Some(link);
            }
        }
        None
    }

    /// Keeps a connection for up to `timeout`; at most `most` connections.
    pub(crate) fn keep(self: &Arc<Self>, mut link: Link, most: usize, timeout: Duration) {
        if most == 0 || timeout.is_zero() || !link.is_usable() {
            return;
        }
        link.used = true;
        link.since = Instant::now();
        let mut waiting = self.0.lock();
        if waiting.links.len() >= most {
            return;
        }
        waiting.links.push(link);
        if !std::mem::replace(&mut waiting.swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self), timeout));
        }
    }

    /// Closes connections that have been idle for too long or were closed by their server. Returns `true` if none are
    /// left.
    fn look(&self, timeout: Duration) -> bool {
        let mut waiting = self.0.lock();
        waiting.links.retain_mut(|link| link.since.elapsed() < timeout && link.is_usable());
        waiting.swept = !waiting.links.is_empty();
        waiting.links.is_empty()
    }
}

/// Sweeps idle connections for as long as there are any.
async fn sweep(idle: Weak<Idle>, timeout: Duration) {
    loop {
        tokio::time::sleep(SWEEP_INTERVAL).await;
        let Some(idle) = idle.upgrade() else { return };
        if idle.look(timeout) {
            return;
        }
    }
}

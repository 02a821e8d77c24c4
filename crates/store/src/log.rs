//! A log that several servers share: each appends, and while its broker is reachable, all deliver the same entries in
//! the same order.
//!
//! A writer and a reader run on the broker's thread and retry with growing pauses. With Redis each has its own
//! connection, so that neither waits for the other. `redis_log` and `nats_log` implement them; `outbox` decides when
//! entries are delivered.

use crate::broker::{Broker, Kind};
use crate::log_shared::LogShared;
use crate::nats_log;
use crate::outbox::Outbox;
use crate::redis_log;
use bytes::Bytes;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// An entry of a log.
#[derive(Debug)]
pub struct Received {
    pub payload: Bytes,
    /// Another server had appended the entry before this one joined.
    pub is_old: bool,
}

/// One server's end of a log. Dropping it ends the log's tasks.
pub struct Log {
    end: Arc<LogShared>,
    tasks: [AbortHandle; 2],
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log({} in {})", self.end.key, self.end.place)
    }
}

impl Log {
    /// Opens a log. `deliver` gets every entry once, beginning with those kept by the log, unless the log has dropped
    /// it before it was read. It must not block.
    pub fn open(broker: &Broker, name: &str, deliver: impl Fn(Received) + Send + Sync + 'static) -> Self {
        let progress = watch::Sender::new(false);
        let caught_up = progress.subscribe();
        let deliver = move |payload, is_others: bool| {
            deliver(Received { payload, is_old: is_others && !*caught_up.borrow() });
        };
        let end = Arc::new(LogShared {
            key: format!("howdah:log:{name}"),
            place: broker.place(),
            outbox: Mutex::new(Outbox::new(fastrand::u64(..))),
            deliver: Box::new(deliver),
            appended: Notify::new(),
            progress,
        });
        let tasks = match broker.kind() {
            Kind::Redis { values, .. } => [
                broker.spawn(redis_log::write(values.clone(), end.clone())),
                broker.spawn(redis_log::read(values.clone(), end.clone())),
            ],
            Kind::Nats(nats) => [
                broker.spawn(nats_log::write(nats.clone(), end.clone())),
                broker.spawn(nats_log::read(nats.clone(), end.clone())),
            ],
        };
        Self { end, tasks }
    }

    /// Appends an entry.
    pub fn append(&self, payload: Bytes) {
        let end = &self.end;
        let mut outbox = end.outbox.lock();
        let is_shared = outbox.append(payload, &*end.deliver);
        let unshared = outbox.unshared;
        drop(outbox);
        match is_shared {
            true => end.appended.notify_one(),
            false if unshared == 1 => {
                tracing::warn!(
                    "an update of {} does not reach other servers: it is too large, or too many are waiting",
                    end.key
                );
            }
            false => {}
        }
    }

    /// `false` while the broker is known to be unreachable: entries are then delivered to this server alone.
    pub fn is_reachable(&self) -> bool {
        !self.end.outbox.lock().is_unreachable()
    }

    /// Waits until the kept entries were read, or the broker is unreachable.
    pub async fn caught_up(&self) {
        let mut progress = self.end.progress.subscribe();
        while !*progress.borrow_and_update() && !self.end.outbox.lock().is_unreachable() {
            if progress.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until all entries so far are stored, or the broker is unreachable.
    pub async fn stored(&self) {
        let end = &self.end;
        let last = end.outbox.lock().last();
        let mut progress = end.progress.subscribe();
        loop {
            let is_done = {
                let outbox = end.outbox.lock();
                outbox.last_stored() >= last || outbox.is_unreachable()
            };
            if is_done {
                return;
            }
            if progress.changed().await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

//! The state that a log's users, its writer and its reader share.

use crate::outbox::{Deliver, Outbox};
use bytes::Bytes;
use parking_lot::Mutex;
use std::io;
use tokio::sync::{Notify, watch};

/// Number of entries that a log keeps for servers that connect later; Redis may keep some more.
pub(crate) const KEPT: usize = 1024;
/// Maximum number of entries written at once.
const BATCH: usize = 128;

/// Shared by the log's users and its tasks.
pub(crate) struct LogShared {
    /// The key in the broker.
    pub(crate) key: String,
    pub(crate) place: String,
    pub(crate) outbox: Mutex<Outbox>,
    pub(crate) deliver: Box<Deliver>,
    pub(crate) appended: Notify,
    /// `true` once the entries kept by the log were read. Also sent whenever entries were stored, or the broker became
    /// unreachable.
    pub(crate) progress: watch::Sender<bool>,
}

impl LogShared {
    /// Number of the last stored entry.
    pub(crate) fn last_stored(&self) -> u64 {
        self.outbox.lock().last_stored()
    }

    /// Returns entries after this number, with the number of the last one; waits for at least one.
    pub(crate) async fn next(&self, sent: u64) -> (Vec<Bytes>, u64) {
        loop {
            let appended = self.appended.notified();
            let (entries, last) = self.outbox.lock().after(sent, BATCH);
            if !entries.is_empty() {
                return (entries, last);
            }
            appended.await;
        }
    }

    /// Records that entries up to this one are stored.
    pub(crate) fn stored(&self, number: u64) {
        self.change(|outbox| outbox.stored(number));
    }

    /// Handles entries from the log, possibly none.
    pub(crate) fn received<'a>(&self, entries: impl Iterator<Item = &'a Bytes>) {
        self.change(|outbox| {
            entries.for_each(|entry| outbox.received(entry, &*self.deliver));
            outbox.reads(true, &*self.deliver);
        });
    }

    /// Records that the entries kept by the log were read.
    pub(crate) fn caught_up(&self) {
        self.progress.send_replace(true);
    }

    pub(crate) fn cannot_write(&self, why: &io::Error) {
        self.cannot(why, |outbox| outbox.cannot_write(&*self.deliver));
    }

    pub(crate) fn cannot_read(&self, why: &io::Error) {
        self.cannot(why, |outbox| outbox.reads(false, &*self.deliver));
    }

    fn cannot(&self, why: &io::Error, change: impl FnOnce(&mut Outbox)) {
        if self.change(change) {
            tracing::warn!(
                "{} is unreachable ({why}): updates of {} reach other servers when it is back",
                self.place,
                self.key
            );
        }
    }

    /// Changes the state, and logs when the broker becomes reachable again. `true`: it has become unreachable.
    fn change(&self, change: impl FnOnce(&mut Outbox)) -> bool {
        let mut outbox = self.outbox.lock();
        let (was_unreachable, missed) = (outbox.is_unreachable(), outbox.missed);
        change(&mut outbox);
        let (is_unreachable, missed) = (outbox.is_unreachable(), outbox.missed - missed);
        let unshared = if is_unreachable { 0 } else { std::mem::take(&mut outbox.unshared) };
        drop(outbox);
        if was_unreachable && !is_unreachable {
            tracing::info!("{} is back: {} is shared again", self.place, self.key);
        }
        if missed > 0 {
            tracing::warn!("{missed} updates of other servers were lost: {} holds the last {KEPT}", self.key);
        }
        if unshared > 0 {
            tracing::warn!("{unshared} updates of {} reached only this server's subscribers", self.key);
        }
        self.progress.send_modify(|_| ());
        is_unreachable && !was_unreachable
    }
}

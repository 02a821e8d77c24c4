//! The line of requests before a full queue, first come, first served.
//!
//! A request in this line has not been accepted. If its body is unread (`Pool::room`), that stays with the client. Each
//! freed place in the queue admits one request. A turn is not a guarantee: a request that finds the queue full again
//! goes to the end of the line, but keeps its age.

use std::sync::Arc;
use tokio::sync::Semaphore;

/// The line, guarded by the pool's lock.
#[derive(Debug)]
pub(crate) struct AdmissionQueue {
    /// One permit for each request whose turn it is and that has not woken yet. Fair: first come, first served.
    turns: Arc<Semaphore>,
    /// Number of waiting requests whose turn it is not yet.
    waiting: usize,
}

impl Default for AdmissionQueue {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(0)), waiting: 0 }
    }
}

impl AdmissionQueue {
    /// Joins the line: the caller waits for a permit of the returned semaphore, and calls `leave` if it gives up.
    pub(crate) fn enter(&mut self) -> Arc<Semaphore> {
        self.waiting += 1;
        self.turns.clone()
    }

    /// Removes a request that gave up. If it was its turn, another request gets the permit and may find no free place.
    pub(crate) fn leave(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Admits one waiting request for each of the free `places`.
    pub(crate) fn let_in(&mut self, places: usize) {
        let turns = places.min(self.waiting);
        if turns > 0 {
            self.waiting -= turns;
            self.turns.add_permits(turns);
        }
    }

    /// `true` if no request waits.
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }
}

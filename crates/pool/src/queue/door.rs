//! Where requests wait before a full queue, in the order in which they came.
//!
//! Requests that wait here have not been accepted: its connection is not read, and a body that it wants to send stays with the
//! client. A freed place in the queue admits as many as there are places. A turn is no promise: a request that finds
//! the queue full again goes back to the end of the line, as old as before.

use std::sync::Arc;
use tokio::sync::Semaphore;

/// The line, guarded by the pool's lock.
#[derive(Debug)]
pub(crate) struct Door {
    /// One permit for each request whose turn it is and that has not noticed yet. Fair: first come, first served.
    turns: Arc<Semaphore>,
    /// Those that wait and whose turn it is not.
    waiting: usize,
}

impl Default for Door {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(0)), waiting: 0 }
    }
}

impl Door {
    /// One more waits: for a permit of this. It says `leave` if it gives up.
    pub(crate) fn come(&mut self) -> Arc<Semaphore> {
        self.waiting += 1;
        self.turns.clone()
    }

    /// A request has given up. If it was its turn, another one notices and finds no place.
    pub(crate) fn leave(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// Lets as many in as there are places.
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

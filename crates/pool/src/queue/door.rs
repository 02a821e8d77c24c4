//! Where requests wait before a full queue, in the order in which they came.
//!
//! What waits here has not been accepted: its connection is not read, and a body that it wants to send stays with the
//! client. Whoever frees a place in the queue lets as many in as there are places. A turn is no promise: who finds the
//! queue full again goes back to the end of the line, as old as before.

use std::sync::Arc;
use tokio::sync::Semaphore;

/// The line, guarded by the pool's lock.
#[derive(Debug)]
pub(crate) struct Door {
    /// One permit for each whose turn it is and who has not noticed yet. Fair: whoever came first gets it.
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

    /// One has given up. If it was its turn, somebody else notices, and looks in vain.
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

    /// True if nobody waits.
    pub(crate) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }
}

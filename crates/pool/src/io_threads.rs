//! The I/O threads. Each runs one current-thread runtime; a lane's reader lives on one of them (its home), and a
//! connection prefers workers whose home is its own thread, because then a response wakes no other thread.

use std::cell::Cell;
use tokio::runtime::Handle;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The I/O threads of the server, in order of their numbers.
#[derive(Debug, Clone)]
pub struct IoThreads(Vec<Handle>);

impl IoThreads {
    /// Creates the list from each thread's runtime; at least one.
    pub fn new(runtimes: Vec<Handle>) -> Self {
        Self(runtimes)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no I/O threads, so that nothing can run.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The runtime of an I/O thread; numbers wrap around.
    pub fn runtime(&self, number: usize) -> &Handle {
        &self.0[number % self.0.len()]
    }
}

/// Marks the calling thread as the I/O thread with this number. Called once, when an I/O thread starts.
pub fn enter(number: usize) {
    CURRENT.set(number);
}

/// Number of the calling I/O thread; 0 on other threads.
pub fn current() -> usize {
    CURRENT.get()
}

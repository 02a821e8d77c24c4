//! A word that the two ends of a lane share, as an interface.
//!
//! Code that must never lose a wake-up or run a request twice (`wake`, `request_state`) is written against it. In the
//! server and in workers a word is an atomic of the lane's memory, and this costs nothing; in `model_tests` it is one
//! of the model checker loom, so that the very same code is tried in every order in which a processor may run it.

use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// A shared word with the operations that are used on it.
pub(crate) trait Word {
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
    fn swap(&self, value: u32, order: Ordering) -> u32;
    /// True if it was `old` and is `new` now; `order` is that of success, a failure is `Relaxed`.
    fn exchange(&self, old: u32, new: u32, order: Ordering) -> bool;
    /// The sequentially consistent fence between a step on this word and one on another.
    fn fence(&self);
    /// Sleeps while the word has this value. May return at any time.
    fn sleep_while(&self, value: u32);
    fn wake_sleeper(&self);
}

impl Word for AtomicU32 {
    #[inline]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    #[inline]
    fn store(&self, value: u32, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.swap(value, order)
    }

    #[inline]
    fn exchange(&self, old: u32, new: u32, order: Ordering) -> bool {
        self.compare_exchange(old, new, order, Ordering::Relaxed).is_ok()
    }

    #[inline]
    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn sleep_while(&self, value: u32) {
        // Returns at once when the word has changed already; EINTR and EAGAIN both mean "look again". The word lives in
        // shared memory, so the futex is not process-private.
        let _ = futex::wait(self, futex::Flags::empty(), value, None);
    }

    fn wake_sleeper(&self) {
        // An error can only mean a bad address, which the mapping rules out.
        let _ = futex::wake(self, futex::Flags::empty(), 1);
    }
}

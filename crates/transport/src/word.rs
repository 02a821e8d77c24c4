//! Interface of a word that the two ends of a lane share.
//!
//! Code that must never lose a wake-up or run a request twice (`wake`, `request_state`) is written against it. In the
//! server and in workers a word is an atomic in the lane's memory, at no extra cost. In `model_tests` it is an atomic
//! of the model checker loom, which runs the very same code in every order in which a processor may execute it, within
//! a bound on preemptions.

use rustix::thread::futex;
use rustix::time::Timespec;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

/// A shared word with the operations that its users need.
pub(crate) trait Word {
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
    fn swap(&self, value: u32, order: Ordering) -> u32;
    /// Replaces `old` with `new`; true on success. `order` is that of success; a failure is `Relaxed`.
    fn exchange(&self, old: u32, new: u32, order: Ordering) -> bool;
    /// Sequentially consistent fence between an access to this word and an access to another one.
    fn fence(&self);
    /// Sleeps while the word has this value, at most this long. May return at any time.
    fn sleep_while(&self, value: u32, longest: Option<Duration>);
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

    fn sleep_while(&self, value: u32, longest: Option<Duration>) {
        let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
        // Returns at once if the word has already changed; EINTR and EAGAIN both mean "check again". The word lives in
        // shared memory, so the futex is not process-private.
        let _ = futex::wait(self, futex::Flags::empty(), value, longest.as_ref());
    }

    fn wake_sleeper(&self) {
        // An error can only mean a bad address, which the mapping rules out.
        let _ = futex::wake(self, futex::Flags::empty(), 1);
    }
}

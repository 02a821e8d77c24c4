//! Waking the other side, with a system call only when it sleeps.
//!
//! Both directions follow one pattern. The sleeper stores "I am going to sleep" into a word and then looks once more for
//! work; the waker publishes work and then looks at the word. A sequentially consistent fence between the two steps on
//! each side makes it impossible that both miss the other: either the sleeper sees the work or the waker sees the word.
//! The waker takes the word back to 0 with a swap, so that one sleep costs at most one wake-up.

use rustix::thread::futex;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// The worker waits for a call.
pub(crate) const WORKER_WAITS_CALL: u32 = 1;
/// The worker waits for room in the response ring.
pub(crate) const WORKER_WAITS_ROOM: u32 = 2;

/// Wakes the worker if it sleeps for the given reason. Call after publishing.
pub(crate) fn wake_worker(word: &AtomicU32, reason: u32) {
    fence(Ordering::SeqCst);
    if word.load(Ordering::Relaxed) == reason && word.swap(0, Ordering::Relaxed) != 0 {
        // The word lives in shared memory, so the futex is not process-private. An error can only mean a bad address,
        // which the mapping rules out.
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    }
}

/// Puts the worker to sleep for `reason` unless `ready` finds work after all. Returns after a wake-up, a signal or work;
/// the caller checks again in a loop.
pub(crate) fn sleep_worker(word: &AtomicU32, reason: u32, ready: impl Fn() -> bool) {
    word.store(reason, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if ready() {
        word.store(0, Ordering::Relaxed);
        return;
    }
    // Returns at once when the word has changed already; EINTR and EAGAIN both mean "look again".
    let _ = futex::wait(word, futex::Flags::empty(), reason, None);
    word.store(0, Ordering::Relaxed);
}

/// Wakes the server if it waits on its eventfd for this lane. Call after publishing.
pub(crate) fn wake_server(word: &AtomicU32, eventfd: BorrowedFd<'_>) {
    fence(Ordering::SeqCst);
    if word.load(Ordering::Relaxed) != 0 && word.swap(0, Ordering::Relaxed) != 0 {
        // The counter is never read (the server waits edge-triggered), so it can only overflow after 2^64 wake-ups.
        let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
    }
}

/// Announces that the server is about to wait; returns false if `ready` finds work after all.
pub(crate) fn prepare_server_sleep(word: &AtomicU32, ready: impl Fn() -> bool) -> bool {
    word.store(1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if ready() {
        word.store(0, Ordering::Relaxed);
        return false;
    }
    true
}

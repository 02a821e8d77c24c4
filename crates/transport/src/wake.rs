//! Waking the other side, with a system call only when it sleeps.
//!
//! Both directions follow one pattern. The sleeper stores "I am going to sleep" into a word and then looks once more
//! for work; the waker publishes work and then looks at the word. A sequentially consistent fence between the two steps
//! on each side makes it impossible that both miss the other: either the sleeper sees the work or the waker sees the
//! word. The waker takes the word back to 0, so that one sleep costs at most one wake-up. A multiplexed worker waits
//! for its wake pipe among its own descriptors instead of on the futex, except for room; the waker must take back
//! exactly the reason that it saw, since the worker may be waiting for another one by then.
//!
//! The wake pipe is one of which the server keeps the write end to itself: the worker cannot make a write to it wait. The
//! worker empties it now and then (`WorkerEnd::woken`), long before it is full.

use crate::word::Word;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

/// The worker waits for a request.
pub(crate) const WORKER_WAITS_REQUEST: u32 = 1;
/// The worker waits for room in the response ring.
pub(crate) const WORKER_WAITS_ROOM: u32 = 2;
/// The worker waits for its wake pipe, among other descriptors.
pub(crate) const WORKER_WAITS_EVENT: u32 = 3;

/// Takes the announcement of a sleep for this reason back; false if there is none.
pub(crate) fn take(word: &impl Word, reason: u32) -> bool {
    word.fence();
    word.load(Ordering::Relaxed) == reason && word.exchange(reason, 0, Ordering::Relaxed)
}

/// Takes back whatever is announced; false if nothing is. Call after publishing.
pub(crate) fn take_any(word: &impl Word) -> bool {
    word.fence();
    word.load(Ordering::Relaxed) != 0 && word.swap(0, Ordering::Relaxed) != 0
}

/// Announces something. What is looked at afterwards is as new as what `take` and `take_any` have missed.
pub(crate) fn announce(word: &impl Word, reason: u32) {
    word.store(reason, Ordering::Relaxed);
    word.fence();
}

/// Wakes the worker if it sleeps on the futex for the given reason. Call after publishing.
pub(crate) fn wake_worker(word: &impl Word, reason: u32) {
    if take(word, reason) {
        word.wake_sleeper();
    }
}

/// A wake pipe: the server's end, which it must not give away, and the worker's.
///
/// # Errors
/// The system's error when no descriptors can be made.
pub fn new_wake_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

/// Wakes the worker if it waits for its wake pipe. Call after publishing.
pub(crate) fn wake_worker_event(word: &impl Word, wake_pipe: BorrowedFd<'_>) {
    if take(word, WORKER_WAITS_EVENT) {
        // A worker whose wake pipe is full was woken more often than an honest one can be: it does not listen. A dead
        // worker has closed its end; its reader will notice.
        let _ = rustix::io::write(wake_pipe, &[1]);
    }
}

/// Empties a wake pipe.
pub(crate) fn silence(wake_pipe: BorrowedFd<'_>) {
    let mut bytes = [0u8; 4096];
    while matches!(rustix::io::read(wake_pipe, &mut bytes), Ok(1..) | Err(Errno::INTR)) {}
}

/// Announces that the worker is about to wait for its wake pipe; returns false if `ready` finds work after all.
pub(crate) fn prepare_worker_event(word: &impl Word, ready: impl Fn() -> bool) -> bool {
    announce(word, WORKER_WAITS_EVENT);
    // Should the server have seen the announcement meanwhile, it is woken once too often.
    !ready()
}

/// Puts the worker to sleep for `reason` unless `ready` finds work after all. Returns after a wake-up, a signal or work;
/// the caller checks again in a loop.
pub(crate) fn sleep_worker(word: &impl Word, reason: u32, ready: impl Fn() -> bool) {
    announce(word, reason);
    if ready() {
        word.store(0, Ordering::Relaxed);
        return;
    }
    word.sleep_while(reason);
    word.store(0, Ordering::Relaxed);
}

/// Wakes the server if it waits on its eventfd for this lane. Call after publishing.
pub(crate) fn wake_server(word: &impl Word, eventfd: BorrowedFd<'_>) {
    if take_any(word) {
        // The server waits edge-triggered and never reads the counter, which overflows after 2^64 wake-ups.
        let _ = rustix::io::write(eventfd.as_fd(), &1u64.to_ne_bytes());
    }
}

/// Announces that the server is about to wait; returns false if `ready` finds work after all.
pub(crate) fn prepare_server_sleep(word: &impl Word, ready: impl Fn() -> bool) -> bool {
    announce(word, 1);
    if ready() {
        word.store(0, Ordering::Relaxed);
        return false;
    }
    true
}

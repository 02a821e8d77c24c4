//! Waking the other side, with a system call only when it sleeps.
//!
//! Both directions follow one pattern. The sleeper stores "I am going to sleep" into a word and then checks once more
//! for work; the waker publishes work and then checks the word. A sequentially consistent fence between the two steps
//! on each side makes it impossible that both miss the other: either the sleeper sees the work or the waker sees the
//! word. The waker resets the word to 0, so that one sleep causes at most one wake-up. A multiplexed worker waits for
//! its wake pipe among its own descriptors instead of on the futex, except when it waits for room. The waker must reset
//! exactly the reason that it saw, since the worker may be waiting for another reason by then.
//!
//! Only the server has the write end of the wake pipe, so the worker cannot make the server's writes block. The worker
//! empties the pipe from time to time (`WorkerEnd::woken`), long before it is full.

use crate::word::Word;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The worker waits for a request.
pub(crate) const WORKER_WAITS_REQUEST: u32 = 1;
/// The worker waits for room in the response ring.
pub(crate) const WORKER_WAITS_ROOM: u32 = 2;
/// The worker waits for its wake pipe, among other descriptors.
pub(crate) const WORKER_WAITS_EVENT: u32 = 3;

/// Resets the announcement of a sleep for this reason; false if there is none.
pub(crate) fn take(word: &impl Word, reason: u32) -> bool {
    word.fence();
    word.load(Ordering::Relaxed) == reason && word.exchange(reason, 0, Ordering::Relaxed)
}

/// Resets any announcement; false if there is none. Call after publishing.
pub(crate) fn take_any(word: &impl Word) -> bool {
    word.fence();
    word.load(Ordering::Relaxed) != 0 && word.swap(0, Ordering::Relaxed) != 0
}

/// Stores an announcement. Reads after it see at least what was published before a `take` or `take_any` that missed it.
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

/// Creates a wake pipe: the server's end, which must stay in the server, and the worker's end.
///
/// # Errors
/// The system's error when descriptors run out.
pub fn new_wake_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
    Ok((ours, theirs))
}

/// Wakes the worker if it waits for its wake pipe. Call after publishing.
pub(crate) fn wake_worker_event(word: &impl Word, wake_pipe: BorrowedFd<'_>) {
    if take(word, WORKER_WAITS_EVENT) {
        // An honest worker empties its wake pipe before it is full. A dead worker has closed its end; the reader of its
        // lane detects that.
        let _ = rustix::io::write(wake_pipe, &[1]);
    }
}

/// Empties a wake pipe.
pub(crate) fn drain(wake_pipe: BorrowedFd<'_>) {
    let mut bytes = [0u8; 4096];
    while matches!(rustix::io::read(wake_pipe, &mut bytes), Ok(1..) | Err(Errno::INTR)) {}
}

/// Announces that the worker is about to wait for its wake pipe; returns false if `ready` finds work.
pub(crate) fn prepare_worker_event(word: &impl Word, ready: impl Fn() -> bool) -> bool {
    announce(word, WORKER_WAITS_EVENT);
    // If the server sees the announcement in between, the worker is woken once too often.
    !ready()
}

/// Puts the worker to sleep for `reason`, at most for `longest`, unless `ready` finds work. Returns after a wake-up, a
/// signal or work; the caller checks again in a loop.
pub(crate) fn sleep_worker(word: &impl Word, reason: u32, longest: Option<Duration>, ready: impl Fn() -> bool) {
    announce(word, reason);
    if ready() {
        word.store(0, Ordering::Relaxed);
        return;
    }
    word.sleep_while(reason, longest);
    word.store(0, Ordering::Relaxed);
}

/// Wakes the server if it waits on its eventfd for this lane. Call after publishing.
pub(crate) fn wake_server(word: &impl Word, eventfd: BorrowedFd<'_>) {
    if take_any(word) {
        // The server waits edge-triggered and never reads the counter, which would overflow after 2^64 wake-ups.
        let _ = rustix::io::write(eventfd.as_fd(), &1u64.to_ne_bytes());
    }
}

/// Announces that the server is about to wait; returns false if `ready` finds work.
pub(crate) fn prepare_server_sleep(word: &impl Word, ready: impl Fn() -> bool) -> bool {
    announce(word, 1);
    if ready() {
        word.store(0, Ordering::Relaxed);
        return false;
    }
    true
}

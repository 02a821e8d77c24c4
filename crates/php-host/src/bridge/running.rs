//! The request that runs, as signal handlers and the zygote see it.

use crate::priority;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The request that runs, and where to note that its script has run past its time limit: for a signal handler, which
/// must not touch the host.
static RUNNING: AtomicU64 = AtomicU64::new(0);
static TIMED_OUT: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// Processor time of the thread at the beginning of the running request, in nanoseconds, where that is measured; else
/// 0. The zygote reads it in the worker's memory.
static CPU_BEGAN: AtomicU64 = AtomicU64::new(0);

/// A number of a worker that is this process's too: both were forked from one.
fn number_in(memory: BorrowedFd<'_>, number: &AtomicU64) -> Option<u64> {
    let mut bytes = [0; 8];
    let at = (&raw const *number).addr() as u64;
    (rustix::io::pread(memory, &mut bytes, at) == Ok(8)).then(|| u64::from_ne_bytes(bytes))
}

/// The number of the request that runs in the worker with this memory, if it runs one at a time.
pub(crate) fn running_in(memory: BorrowedFd<'_>) -> Option<u64> {
    number_in(memory, &RUNNING)
}

/// The processor time that the request has had that runs in this worker, in microseconds.
pub(crate) fn processor_time_in(pid: i32, memory: BorrowedFd<'_>) -> Option<u64> {
    let began = number_in(memory, &CPU_BEGAN).filter(|&began| began > 0)?;
    let now = priority::processor_time_of(pid)?.as_nanos() as u64;
    Some(now.saturating_sub(began) / 1000)
}

/// The number of the current request; 0 for none.
pub(crate) fn running_request() -> u64 {
    RUNNING.load(Ordering::Relaxed)
}

/// The request with this number runs from now on, 0 for none; its thread's processor time was `cpu_began` then.
pub(super) fn begin(number: u64, cpu_began: u64) {
    select(number);
    CPU_BEGAN.store(cpu_began, Ordering::Relaxed);
}

pub(super) fn select(number: u64) {
    RUNNING.store(number, Ordering::Relaxed);
}

/// Where to note that a script has run past its time limit: a word of the lane, or NULL.
pub(super) fn set_timeout_word(word: *mut AtomicU64) {
    TIMED_OUT.store(word, Ordering::Relaxed);
}

/// The current request's script has run past its time limit. Called from a signal handler.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_timed_out() {
    let word = TIMED_OUT.load(Ordering::Relaxed);
    if !word.is_null() {
        // SAFETY: set by `bridge::install` to a word of the lane, which stays mapped until `bridge::leave` takes it back. One thread.
        unsafe { (*word).store(RUNNING.load(Ordering::Relaxed), Ordering::Relaxed) };
    }
}

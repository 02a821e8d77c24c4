//! The running request, as signal handlers and the zygote see it.

use crate::priority;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The running request, and the word that records that its script exceeded the time limit. For a signal handler, which
/// must not touch the host.
static RUNNING: AtomicU64 = AtomicU64::new(0);
static TIMED_OUT: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

/// Processor time of the thread at the start of the running request, in nanoseconds, if it is measured; else 0. The
/// zygote reads it from the worker's memory.
static CPU_BEGAN: AtomicU64 = AtomicU64::new(0);

/// Reads a static number from a worker's memory. Its address is the same in this process, from which the worker was
/// forked.
fn number_in(memory: BorrowedFd<'_>, number: &AtomicU64) -> Option<u64> {
    let mut bytes = [0; 8];
    let at = (&raw const *number).addr() as u64;
    (rustix::io::pread(memory, &mut bytes, at) == Ok(8)).then(|| u64::from_ne_bytes(bytes))
}

/// Number of the request that runs in the worker with this memory, if that worker runs one at a time.
pub(crate) fn running_in(memory: BorrowedFd<'_>) -> Option<u64> {
    number_in(memory, &RUNNING)
}

/// Processor time used so far by the request that runs in this worker, in microseconds.
pub(crate) fn processor_time_in(pid: i32, memory: BorrowedFd<'_>) -> Option<u64> {
    let began = number_in(memory, &CPU_BEGAN).filter(|&began| began > 0)?;
    let now = priority::processor_time_of(pid)?.as_nanos() as u64;
    Some(now.saturating_sub(began) / 1000)
}

/// Number of the current request; 0 for none.
pub(crate) fn running_request() -> u64 {
    RUNNING.load(Ordering::Relaxed)
}

/// Sets the running request, 0 for none; `cpu_began` is its thread's processor time at this moment.
pub(super) fn begin(number: u64, cpu_began: u64) {
    select(number);
    CPU_BEGAN.store(cpu_began, Ordering::Relaxed);
}

pub(super) fn select(number: u64) {
    RUNNING.store(number, Ordering::Relaxed);
}

/// Sets the word that records which script exceeded its time limit: in the lane, or NULL.
pub(super) fn set_timeout_word(word: *mut AtomicU64) {
    TIMED_OUT.store(word, Ordering::Relaxed);
}

/// Records that the current request's script has exceeded its time limit. Called from a signal handler.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_timed_out() {
    let word = TIMED_OUT.load(Ordering::Relaxed);
    if !word.is_null() {
        // SAFETY: `bridge::install` sets it to a word of the lane, which stays mapped until `bridge::leave` resets it.
        // Only the main thread handles signals.
        unsafe { (*word).store(RUNNING.load(Ordering::Relaxed), Ordering::Relaxed) };
    }
}

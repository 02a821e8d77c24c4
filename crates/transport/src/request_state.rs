//! Ownership of a request: an atomic exchange on its state decides between the worker, which begins it, and the server,
//! which takes it back to give it to another worker.
//!
//! Each side's exchange comes before its use of the request, hence `AcqRel`; the loser does not touch the request,
//! hence `Relaxed` on failure.

use crate::word::Word;
use std::sync::atomic::Ordering;

/// No worker has begun the request.
pub(crate) const QUEUED: u32 = 0;
/// The worker has begun the request.
pub(crate) const RUNNING: u32 = 1;
/// The server has taken the request back; the worker skips it.
pub(crate) const REVOKED: u32 = 2;

/// The worker's side; false if the server has taken the request back.
pub(crate) fn begin(state: &impl Word) -> bool {
    state.exchange(QUEUED, RUNNING, Ordering::AcqRel)
}

/// The server's side; false if the worker has begun the request.
pub(crate) fn take_back(state: &impl Word) -> bool {
    state.exchange(QUEUED, REVOKED, Ordering::AcqRel)
}

/// `true` if a worker has begun the request or the server has taken it back. `Relaxed`: only a hint; the exchange
/// decides.
pub(crate) fn is_decided(state: &impl Word) -> bool {
    state.load(Ordering::Relaxed) != QUEUED
}

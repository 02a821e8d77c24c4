//! Prepares a worker's forks and completes them: the next worker, or a process of a script.

use super::{host, leave};
use crate::memory;
use howdah_transport::worker_end::LaneCopy;
use std::cell::UnsafeCell;

/// Copy of the running request for a script's child, while the process forks.
struct ForkCopy(UnsafeCell<Option<LaneCopy>>);

// SAFETY: only the process's main thread uses it, the one that forks.
unsafe impl Sync for ForkCopy {}

static FORK_COPY: ForkCopy = ForkCopy(UnsafeCell::new(None));

/// Before each fork() of a worker. `with_lane`: the child continues as this worker. Any other child gets no lane, but
/// private memory at its address with the running request, and none of the lane's descriptors.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_fork_begins(with_lane: bool) {
    let Some(host) = host() else { return };
    if with_lane {
        // If this fails, the child dies at its first access to the lane, and the worker with it.
        let _ = host.lane.pass_to_fork(true);
    } else {
        // SAFETY: see `ForkCopy`.
        unsafe { *FORK_COPY.0.get() = Some(host.lane.copy_for_fork()) };
    }
}

/// After a fork(), in the parent.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_fork_ends(with_lane: bool) {
    let Some(host) = host() else { return };
    if with_lane {
        let _ = host.lane.pass_to_fork(false);
    } else {
        // SAFETY: see `ForkCopy`.
        unsafe { *FORK_COPY.0.get() = None };
    }
}

/// After a fork() without the lane, in the child.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_became_script_child() {
    memory::forget();
    // SAFETY: see `ForkCopy`.
    let copy = unsafe { (*FORK_COPY.0.get()).take() };
    if let (Some(hole), Some(copy)) = (leave(), copy) {
        // Without the copy, reading the request kills this process, which is not a worker.
        let _ = copy.put(hole);
    }
}

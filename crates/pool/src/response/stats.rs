//! Facts about a response in addition to its bytes: its worker, and the time that it took.

use std::sync::Arc;

/// A request's worker, times and memory; complete once the worker is done with the request, which may be after the
/// body's end.
#[derive(Debug, Clone, Default)]
pub struct RequestStats {
    pub pool: Arc<str>,
    /// The worker's number within its pool (stable while the worker lives).
    pub worker: u32,
    pub pid: u32,
    /// Microseconds from `Request::received` until a worker took the request; includes the upload of its body.
    pub queue_us: u64,
    /// Microseconds that the worker spent on the request, by its own clock. Until the worker is done: microseconds to
    /// the end of the response, by the server's clock.
    pub php_us: u64,
    /// Processor time in microseconds, if measured.
    pub cpu_us: u64,
    /// Microseconds of it in the kernel, if measured.
    pub system_us: u64,
    /// Peak memory of the script in bytes, as PHP reports it.
    pub peak_memory: u64,
    /// Number of times that the request was run again after its worker died.
    pub replays: u32,
}

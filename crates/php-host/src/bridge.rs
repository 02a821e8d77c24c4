//! The functions that the C shim calls (`shim/bridge.h`), by purpose: `request` takes requests and sends their
//! responses, `multiplexed` is for workers that run many requests, `fork` for processes that scripts fork, `running`
//! for signal handlers and the zygote. Each function returns; none calls back into PHP, none unwinds.
//!
//! A panic in an `extern "C"` function aborts the process, which is right here: the server replaces the worker.

mod connection_pools;
mod fork;
mod live;
mod multiplexed;
mod request;
mod running;

pub(crate) use running::{processor_time_in, running_in, running_request};

use crate::open_request::OpenRequest;
use crate::stack_signal;
use howdah_transport::live_order::LiveOrderBuilder;
use howdah_transport::{Hole, RequestMap, WorkerEnd};
use request::SnapshotNumbers;
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int};
use std::io::Write;

/// The worker's requests and their lane.
struct Host {
    lane: WorkerEnd,
    /// The request to which the functions below apply. A worker that runs one request at a time reuses this for all of
    /// them.
    current: Option<Box<OpenRequest>>,
    /// Async mode: the open requests that are not selected.
    others: RequestMap<Box<OpenRequest>>,
    /// Async mode: kept for reuse by later requests.
    #[expect(clippy::vec_box, reason = "this spares allocations: requests move between the maps as boxes")]
    spare: Vec<Box<OpenRequest>>,
    /// A head under construction; complete before another request is selected.
    head: Vec<u8>,
    interim: bool,
    /// An order under construction; complete before another request is selected.
    live: LiveOrderBuilder,
    /// Snapshot mode: numbers for the report at the end of the request.
    snapshot: SnapshotNumbers,
}

/// The one host of a worker process; `None` in the zygote, the template and processes of scripts.
struct HostCell(UnsafeCell<Option<Host>>);

// SAFETY: only the main thread uses it, and no function here calls another while it holds the reference.
unsafe impl Sync for HostCell {}

static HOST: HostCell = HostCell(UnsafeCell::new(None));

/// Gives the bridge its lane. Called once, in a worker, before PHP runs.
pub(crate) fn install(lane: WorkerEnd) {
    let is_multiplexed = lane.wake_fd().is_some();
    running::set_timeout_word(lane.timeout_word().cast_mut());
    let host = Host {
        lane,
        current: (!is_multiplexed).then(|| Box::new(OpenRequest::none())),
        others: RequestMap::default(),
        spare: Vec::new(),
        head: Vec::with_capacity(1024),
        interim: false,
        live: LiveOrderBuilder::default(),
        snapshot: SnapshotNumbers::default(),
    };
    // SAFETY: the main thread, and no reference to the cell is alive.
    unsafe { *HOST.0.get() = Some(host) };
}

/// Releases the lane in a process that was forked from the worker without it. Returns the hole at its address.
pub(crate) fn leave() -> Option<Hole> {
    stack_signal::forget();
    running::set_timeout_word(std::ptr::null_mut());
    // SAFETY: the main thread, and no reference to the cell is alive.
    let host = unsafe { (*HOST.0.get()).take() }?;
    // C may still point into the requests' memory.
    std::mem::forget((host.current, host.others));
    Some(host.lane.leave())
}

impl Host {
    /// True if this worker runs many requests at once.
    fn is_multiplexed(&self) -> bool {
        self.lane.wake_fd().is_some()
    }
}

/// The host, for the duration of one bridge function.
fn host() -> Option<&'static mut Host> {
    // SAFETY: the main thread; each bridge function takes the reference once and drops it before it returns; signal
    // handlers of this process do not use it.
    unsafe { (*HOST.0.get()).as_mut() }
}

/// Borrows bytes that C passed for the duration of a call.
///
/// # Safety
/// `data` is valid for `length` bytes for the duration of the calling bridge function.
pub(crate) unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// The worker can take requests: reports this to the server, once.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_ready() {
    if let Some(host) = host() {
        host.lane.ready();
    }
}

/// Writes a line to the server's log with the current request's id; level as in syslog(3), 0 emergency to 7 debug. Also
/// works before the first request (boot messages).
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_log(level: c_int, message: *const c_char, length: usize) {
    // SAFETY: C's promise in bridge.h.
    let message = unsafe { bytes(message, length) };
    match host() {
        Some(host) => {
            host.lane.log(level.clamp(0, 7) as u8, message);
            if host.lane.number() == 0 {
                // No response follows soon that would publish it.
                host.lane.publish();
            }
        }
        None => {
            // Without a lane: the server reads standard error for the whole pool.
            let mut err = std::io::stderr().lock();
            let _ = err.write_all(message);
            let _ = err.write_all(b"\n");
        }
    }
}

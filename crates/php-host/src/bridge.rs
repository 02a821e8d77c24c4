//! The functions that the C shim calls (`shim/bridge.h`). Each returns; none calls back into PHP, none unwinds.
//!
//! A panic in an `extern "C"` function aborts the process, which is right here: the server replaces the worker.

use howdah_transport::WorkerEnd;
use howdah_transport::wire::{DONE_RETIRE, DONE_WAY_SHIFT, WireCall, WireDone};
use howdah_transport::worker_end::{body_kind, call_parts};
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_uint};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// After a call shorter than this, PHP's cleaning up is shorter than a wake-up: answer and end are published together.
const SHORT_CALL: Duration = Duration::from_micros(200);

/// How the current call's body is read.
enum Body {
    Empty,
    Inline { data: *const u8, len: usize, read: usize },
    File { fd: OwnedFd, read: u64 },
}

/// The worker's side of the current call.
struct Host {
    lane: WorkerEnd,
    body: Body,
    began: Instant,
    /// A head under construction.
    head: Vec<u8>,
    interim: bool,
    head_sent: bool,
    ended: bool,
    /// Snapshot mode's numbers for the end of the call: bits of the flags, searches.
    snapshot: (u32, u32),
}

/// The one host of a worker process; `None` in the zygote.
struct HostCell(UnsafeCell<Option<Host>>);

// SAFETY: the process has one thread, and no function here calls another while it holds the reference.
unsafe impl Sync for HostCell {}

static HOST: HostCell = HostCell(UnsafeCell::new(None));

/// Gives the bridge its lane. Once, in a worker, before PHP runs.
pub(crate) fn install(lane: WorkerEnd) {
    let host = Host {
        lane,
        body: Body::Empty,
        began: Instant::now(),
        head: Vec::with_capacity(1024),
        interim: false,
        head_sent: false,
        ended: false,
        snapshot: (0, 0),
    };
    // SAFETY: one thread, and no reference to the cell is alive.
    unsafe { *HOST.0.get() = Some(host) };
}

/// The host, for the length of one bridge function.
fn host() -> Option<&'static mut Host> {
    // SAFETY: one thread, and each bridge function takes the reference once and drops it before it returns; signal
    // handlers of this process do not use it.
    unsafe { (*HOST.0.get()).as_mut() }
}

/// Borrows bytes that C passed for the length of a call.
///
/// # Safety
/// `data` is valid for `length` bytes for the duration of the calling bridge function.
unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_ready() {
    if let Some(host) = host() {
        host.lane.ready();
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_next_call() -> *const WireCall {
    let Some(host) = host() else { return std::ptr::null() };
    let call = match host.lane.next_call() {
        Ok(Some(call)) => call,
        Ok(None) => return std::ptr::null(),
        Err(error) => {
            eprintln!("howdah-php: {error}");
            return std::ptr::null();
        }
    };
    host.began = Instant::now();
    host.head_sent = false;
    host.ended = false;
    host.interim = false;
    host.head.clear();
    // SAFETY: `call` was just returned by `next_call`.
    let parts = unsafe { call_parts(call) };
    host.body = match body_kind(parts.head.flags) {
        (true, _) => Body::Inline { data: parts.body, len: parts.head.body_len as usize, read: 0 },
        (_, true) => match host.lane.receive_body() {
            Ok(fd) => Body::File { fd, read: 0 },
            Err(error) => {
                eprintln!("howdah-php: cannot get a request's body: {error}");
                return std::ptr::null();
            }
        },
        _ => Body::Empty,
    };
    call
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_read_body(buffer: *mut c_char, size: usize) -> usize {
    let Some(host) = host() else { return 0 };
    if buffer.is_null() || size == 0 {
        return 0;
    }
    match &mut host.body {
        Body::Empty => 0,
        Body::Inline { data, len, read } => {
            let n = size.min(*len - *read);
            // SAFETY: the call's frame, in which the body lies, is valid until `howdah_rs_done`; C's buffer has `size`
            // bytes; ring and buffer do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(data.add(*read), buffer.cast(), n) };
            *read += n;
            n
        }
        Body::File { fd, read } => {
            // SAFETY: C's buffer has `size` bytes and is not otherwise used during the call.
            let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) };
            loop {
                match rustix::io::pread(&*fd, &mut *buffer, *read) {
                    Ok(n) => {
                        *read += n as u64;
                        return n;
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return 0,
                }
            }
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_head_begin(status: c_uint, interim: bool) {
    let Some(host) = host() else { return };
    host.interim = interim;
    host.head.clear();
    host.head.extend_from_slice(&(status as u16).to_ne_bytes());
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_head_line(line: *const c_char, length: usize) {
    let Some(host) = host() else { return };
    // SAFETY: C's promise in bridge.h.
    let line = unsafe { bytes(line, length) };
    host.head.extend_from_slice(&(line.len() as u32).to_ne_bytes());
    host.head.extend_from_slice(line);
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_head_end() {
    let Some(host) = host() else { return };
    if host.head_sent || host.ended {
        return;
    }
    host.lane.head(host.interim, &host.head);
    host.head_sent = !host.interim;
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_write(data: *const c_char, length: usize) -> bool {
    let Some(host) = host() else { return true };
    if host.ended {
        return true; // what is printed after the answer's end is dropped, as FPM does
    }
    // SAFETY: C's promise in bridge.h.
    host.lane.write(unsafe { bytes(data, length) }).is_ok()
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_flush() -> bool {
    let Some(host) = host() else { return true };
    if host.ended {
        return true;
    }
    host.lane.flush();
    !host.lane.client_gone()
}

impl Host {
    fn end_response(&mut self, publish: bool) {
        if self.ended {
            return;
        }
        if !self.head_sent {
            // PHP ended without sending headers: only a broken shutdown does that.
            self.lane.head(false, &500u16.to_ne_bytes());
        }
        self.lane.end_response(publish);
        self.ended = true;
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_end_response(done_follows: bool) {
    if let Some(host) = host() {
        let wait_for_done = done_follows && host.began.elapsed() < SHORT_CALL;
        host.end_response(!wait_for_done);
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_done(peak_memory: u64, retire: bool) {
    let Some(host) = host() else { return };
    host.end_response(false);
    host.body = Body::Empty;
    host.lane.done(WireDone {
        php_ns: host.began.elapsed().as_nanos() as u64,
        peak_memory,
        flags: host.snapshot.0 | if retire { DONE_RETIRE } else { 0 },
        searches: host.snapshot.1,
    });
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_snapshot_numbers(way: c_uint, searches: u32) {
    if let Some(host) = host() {
        host.snapshot = (way << DONE_WAY_SHIFT, searches);
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_log(level: c_int, message: *const c_char, length: usize) {
    // SAFETY: C's promise in bridge.h.
    let message = unsafe { bytes(message, length) };
    match host() {
        Some(host) => {
            host.lane.log(level.clamp(0, 7) as u8, message);
            if host.lane.number() == 0 {
                // No answer follows that would carry it along.
                host.lane.publish();
            }
        }
        None => {
            // No lane: the server reads standard error of the whole pool.
            let mut err = std::io::stderr().lock();
            let _ = err.write_all(message);
            let _ = err.write_all(b"\n");
        }
    }
}

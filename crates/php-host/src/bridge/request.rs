//! Requests of a worker that runs one at a time; responses and ends of requests for all workers.

use super::{Host, bytes, host, running};
use crate::priority;
use howdah_transport::wire::{DONE_RESETS_SHIFT, DONE_RETIRE, DONE_UNFIT, DONE_WAY_SHIFT, WireDone, WireRequest};
use howdah_transport::worker_end::{NextRequest, body_kind};
use std::ffi::{c_char, c_int, c_uint};
use std::os::fd::IntoRawFd;
use std::time::Duration;

/// After a request shorter than this, PHP's cleanup takes less time than a wake-up: response and end are published
/// together.
const SHORT_REQUEST: Duration = Duration::from_micros(200);

/// Maximum number of open requests that are kept for reuse.
const SPARE_REQUESTS: usize = 64;

/// Additional fields of `howdah_rs_done()`, in snapshot mode.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SnapshotNumbers {
    /// Method by which written pages are found: snapshot_way in snapshot/engine/snapshot.h.
    way: u32,
    /// Number of searches for written pages since the snapshot.
    searches: u32,
    /// Number of pages put back by the last restore.
    restored_pages: u32,
    /// Duration of the last restore, in nanoseconds.
    restore_ns: u32,
    /// Number of sessions of boot-time connections that were reset at this request's end.
    resets: u32,
    /// The worker ends, as it cannot be restored after this request.
    unfit: bool,
}

impl SnapshotNumbers {
    fn flags(&self) -> u32 {
        let unfit = if self.unfit { DONE_UNFIT } else { 0 };
        self.way << DONE_WAY_SHIFT | self.resets.min(0xff) << DONE_RESETS_SHIFT | unfit
    }
}

/// Waits for the next request and marks it running. Returns NULL if the worker must end, also after an error. The frame
/// stays valid, in shared memory, until howdah_rs_done(). Layout: WireRequest, n_vars x WireVar, strings_len bytes,
/// inline body. `idle_ms`: after so many milliseconds without a request, returns NULL and sets `*idle`; 0: waits
/// without limit.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_next_request(idle_ms: c_uint, idle: *mut bool) -> *const WireRequest {
    let Some(host) = host() else { return std::ptr::null() };
    let longest = (idle_ms != 0).then(|| Duration::from_millis(u64::from(idle_ms)));
    loop {
        let request = match host.lane.next_request_within(longest) {
            Ok(NextRequest::Request(request)) => request,
            Ok(NextRequest::Stop) => return std::ptr::null(),
            Ok(NextRequest::Idle) => {
                // SAFETY: C's promise in bridge.h: a valid pointer, with no other user during the call.
                unsafe { idle.write(true) };
                return std::ptr::null();
            }
            Err(error) => {
                eprintln!("howdah-php: {error}");
                return std::ptr::null();
            }
        };
        host.interim = false;
        host.head.clear();
        // SAFETY: `request` was just returned by `next_request_within`.
        let flags = unsafe { (*request).flags };
        priority::apply_priority(flags);
        let body = match body_kind(flags) {
            (false, true) => match host.lane.receive_body() {
                Ok(Some(fd)) => Some(fd),
                Ok(None) => {
                    // The server has no body for it, and has answered its client.
                    host.lane.done(WireDone::default());
                    continue;
                }
                Err(error) => {
                    eprintln!("howdah-php: cannot receive a request's body: {error}");
                    return std::ptr::null();
                }
            },
            _ => None,
        };
        if let Some(current) = host.current.as_mut() {
            // SAFETY: `request` was just returned by `next_request_within`, and `howdah_rs_done` releases it.
            unsafe { current.begin(request, body) };
        }
        running::begin(host.lane.number(), host.current.as_ref().map_or(0, |current| current.cpu_began()));
        return request;
    }
}

/// Reads up to `size` bytes of the current request's body. Returns the number of bytes, 0 at the end. Does not block:
/// the body is complete.
#[unsafe(no_mangle)]
pub(super) extern "C" fn howdah_rs_read_body(buffer: *mut c_char, size: usize) -> usize {
    let Some(current) = host().and_then(|host| host.current.as_mut()) else { return 0 };
    if buffer.is_null() || size == 0 {
        return 0;
    }
    // SAFETY: C's buffer has `size` bytes and is not otherwise used during the call.
    current.read_body(unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) })
}

/// Begins the head of a response with its status. `interim` heads are 1xx responses and may be sent several times
/// before the real one.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_head_begin(status: c_uint, interim: bool) {
    let Some(host) = host() else { return };
    host.interim = interim;
    host.head.clear();
    host.head.extend_from_slice(&(status as u16).to_ne_bytes());
    if let Some(current) = host.current.as_ref().filter(|_| !interim) {
        current.add_route(&mut host.head);
    }
}

/// Sets the route that responds to the request; the response's head carries it to the server.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_route(name: *const c_char, length: usize) {
    let Some(current) = host().and_then(|host| host.current.as_mut()) else { return };
    // SAFETY: C's promise in bridge.h.
    current.set_route(unsafe { bytes(name, length) });
}

/// Adds a line "Name: value" to the head, without a line end.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_head_line(line: *const c_char, length: usize) {
    let Some(host) = host() else { return };
    // SAFETY: C's promise in bridge.h.
    let line = unsafe { bytes(line, length) };
    host.head.extend_from_slice(&(line.len() as u32).to_ne_bytes());
    host.head.extend_from_slice(line);
}

/// Finishes the head.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_head_end() {
    let Some(host) = host() else { return };
    let Some(current) = host.current.as_mut() else { return };
    if current.head_sent || current.ended {
        return;
    }
    host.lane.head(host.interim, &host.head);
    current.head_sent = !host.interim;
}

/// Appends to the response's body. May wait for room. Returns false if the client has gone or the request was
/// cancelled: the caller must then stop the script or drop its output.
#[unsafe(no_mangle)]
pub(super) extern "C" fn howdah_rs_write(data: *const c_char, length: usize) -> bool {
    let Some(host) = host() else { return true };
    match host.current.as_ref() {
        // Output after the response's end is dropped, as in PHP-FPM.
        Some(current) if !current.ended => {
            // SAFETY: C's promise in bridge.h.
            !current.cancelled && host.lane.write(unsafe { bytes(data, length) }).is_ok()
        }
        _ => true,
    }
}

/// Sends everything written so far to the client now. Returns false if the client has gone or the request was
/// cancelled.
#[unsafe(no_mangle)]
pub(super) extern "C" fn howdah_rs_flush() -> bool {
    let Some(host) = host() else { return true };
    match host.current.as_ref() {
        Some(current) if !current.ended => {
            host.lane.flush();
            !current.cancelled && !host.lane.client_gone()
        }
        _ => true,
    }
}

impl Host {
    fn end_response(&mut self, publish: bool) {
        let Some(current) = self.current.as_mut() else { return };
        if current.ended {
            return;
        }
        if !current.head_sent {
            // PHP ended without sending headers: only a broken shutdown does that.
            self.lane.head(false, &500u16.to_ne_bytes());
        }
        self.lane.end_response(publish);
        current.ended = true;
    }
}

/// Marks the response as complete for the client; the worker goes on with the request. Idempotent. `done_follows`: only
/// PHP's own cleanup is left before howdah_rs_done(); after a short request, or one whose usage is reported, the server
/// is then woken once for both. In async mode the end reaches the server when output is published next.
#[unsafe(no_mangle)]
pub(super) extern "C" fn howdah_rs_end_response(done_follows: bool) {
    let Some(host) = host() else { return };
    let Some(current) = host.current.as_ref() else { return };
    let is_soon_done = current.reports_usage() || current.elapsed() < SHORT_REQUEST;
    let wait = host.is_multiplexed() || done_follows && is_soon_done;
    host.end_response(!wait);
}

/// Ends the request: the script's resources are released and the worker is free. Ends the response if it is still open.
/// The frame from howdah_rs_next_request() is invalid afterwards.
#[unsafe(no_mangle)]
pub(super) extern "C" fn howdah_rs_done(peak_memory: u64, retire: bool) {
    let Some(host) = host() else { return };
    host.end_response(false);
    let Some(current) = host.current.as_mut() else { return };
    let memory = current.finish();
    host.lane.done(WireDone {
        php_ns: current.elapsed().as_nanos() as u64,
        cpu_ns: current.processor_time().as_nanos() as u64,
        system_ns: current.system_time().as_nanos() as u64,
        peak_memory,
        flags: host.snapshot.flags() | if retire { DONE_RETIRE } else { 0 },
        searches: host.snapshot.searches,
        restored_pages: host.snapshot.restored_pages,
        restore_ns: host.snapshot.restore_ns,
    });
    if let Some(memory) = memory {
        host.lane.recycle(memory);
    }
    if host.is_multiplexed()
        && let Some(request) = host.current.take()
        && host.spare.len() < SPARE_REQUESTS
    {
        host.spare.push(request);
    }
}

/// Returns the current request to the server, for a worker that booted later; the worker must end at once. Returns
/// false if part of its response has been sent. Not in async mode.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_give_back(boot_began_us: u64) -> bool {
    let Some(host) = host() else { return false };
    if host.is_multiplexed() || host.current.as_ref().is_none_or(|request| request.head_sent || request.ended) {
        return false;
    }
    host.lane.return_request(boot_began_us);
    true
}

/// Returns the state of the worker's pool as JSON, in a descriptor that the caller closes; -1: unavailable. For the
/// current request of a worker that runs one at a time.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_pool_status() -> c_int {
    let Some(host) = host().filter(|host| host.lane.number() != 0) else { return -1 };
    host.lane.receive_status().ok().flatten().map_or(-1, IntoRawFd::into_raw_fd)
}

/// Sets the additional fields of `howdah_rs_done()`, in snapshot mode.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_snapshot_numbers(numbers: SnapshotNumbers) {
    if let Some(host) = host() {
        host.snapshot = numbers;
    }
}

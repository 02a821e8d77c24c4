//! The functions that the C shim calls (`shim/bridge.h`). Each returns; none calls back into PHP, none unwinds.
//!
//! A panic in an `extern "C"` function aborts the process, which is right here: the server replaces the worker.

use crate::open_request::OpenRequest;
use crate::{memory, priority, stack_signal};
use howdah_transport::live_order::{LiveField, LiveKind, LiveOrderBuilder};
use howdah_transport::wire::{
    DONE_RESETS_SHIFT, DONE_RETIRE, DONE_UNFIT, DONE_WAY_SHIFT, POOL_NUMBERS, PoolNumber, WireDone, WireRequest,
};
use howdah_transport::worker_end::{LaneCopy, body_kind};
use howdah_transport::{Event, Hole, RequestMap, WorkerEnd};
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_uint};
use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

/// After a request shorter than this, PHP's cleaning up is shorter than a wake-up: response and end are published together.
const SHORT_REQUEST: Duration = Duration::from_micros(200);

/// Open requests that are kept for later ones.
const SPARE_REQUESTS: usize = 64;

/// Additional fields of `howdah_rs_done()`, in snapshot mode.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct SnapshotNumbers {
    /// Method to find written pages: snapshot_way in snapshot/engine/snapshot.h.
    way: u32,
    /// Number of times that this was needed, since the snapshot.
    searches: u32,
    /// By the last restore,
    restored_pages: u32,
    /// and the time it took.
    restore_ns: u32,
    /// Sessions of boot-time connections that this request's end has reset.
    resets: u32,
    /// The worker ends, as it cannot be put back after this request.
    unfit: bool,
}

impl SnapshotNumbers {
    fn flags(&self) -> u32 {
        let unfit = if self.unfit { DONE_UNFIT } else { 0 };
        self.way << DONE_WAY_SHIFT | self.resets.min(0xff) << DONE_RESETS_SHIFT | unfit
    }
}

/// The worker's side of its requests.
struct Host {
    lane: WorkerEnd,
    /// The request that the functions below are about. A worker that runs one at a time has one for all its requests.
    current: Option<Box<OpenRequest>>,
    /// Async mode: the open requests that are not selected.
    others: RequestMap<Box<OpenRequest>>,
    /// Async mode: to be used for requests to come.
    #[expect(clippy::vec_box, reason = "what is spared is the allocation; requests move between the maps as boxes")]
    spare: Vec<Box<OpenRequest>>,
    /// A head under construction; complete before another request is selected.
    head: Vec<u8>,
    interim: bool,
    /// An order under construction; complete before another request is selected.
    live: LiveOrderBuilder,
    /// Snapshot mode's numbers for the end of the request.
    snapshot: SnapshotNumbers,
}

/// The one host of a worker process; `None` in the zygote.
struct HostCell(UnsafeCell<Option<Host>>);

// SAFETY: the process has one thread, and no function here calls another while it holds the reference.
unsafe impl Sync for HostCell {}

static HOST: HostCell = HostCell(UnsafeCell::new(None));

/// Gives the bridge its lane. Once, in a worker, before PHP runs.
pub(crate) fn install(lane: WorkerEnd) {
    let is_multiplexed = lane.wake_fd().is_some();
    TIMED_OUT.store(lane.timeout_word().cast_mut(), Ordering::Relaxed);
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
    // SAFETY: one thread, and no reference to the cell is alive.
    unsafe { *HOST.0.get() = Some(host) };
}

/// Lets go of the lane, in a process that was forked from the worker and has not got it. Returns where it was.
pub(crate) fn leave() -> Option<Hole> {
    stack_signal::forget();
    TIMED_OUT.store(std::ptr::null_mut(), Ordering::Relaxed);
    // SAFETY: one thread, and no reference to the cell is alive.
    let host = unsafe { (*HOST.0.get()).take() }?;
    // C may still point into the memory of the requests.
    std::mem::forget((host.current, host.others));
    Some(host.lane.leave())
}

/// Memory for a script's child instead of the lane, while the process forks.
struct ForkCopy(UnsafeCell<Option<LaneCopy>>);

// SAFETY: the process has one thread that uses it, the one that forks.
unsafe impl Sync for ForkCopy {}

static FORK_COPY: ForkCopy = ForkCopy(UnsafeCell::new(None));

/// Before each fork() of a worker. `with_lane`: the child continues as this worker. Any other child has no lane, but
/// separate memory in its place with the running request, and none of the descriptors that belong to the lane.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_fork_begins(with_lane: bool) {
    let Some(host) = host() else { return };
    if with_lane {
        // Should it fail, the child dies at its first access, and the worker with it.
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
        // Without it a read of the request ends this process, which is no worker.
        let _ = copy.put(hole);
    }
}

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

/// The current request's script has run past its time limit. Called from a signal handler.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_timed_out() {
    let word = TIMED_OUT.load(Ordering::Relaxed);
    if !word.is_null() {
        // SAFETY: set by `install` to a word of the lane, which stays mapped until `leave` takes it back. One thread.
        unsafe { (*word).store(RUNNING.load(Ordering::Relaxed), Ordering::Relaxed) };
    }
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
pub(crate) unsafe fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// The worker can take requests: tells the server, once.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_ready() {
    if let Some(host) = host() {
        host.lane.ready();
    }
}

/// Waits for the next request and marks it running. Returns NULL when the worker shall end. The frame stays valid, in
/// shared memory, until howdah_rs_done(). Layout: WireRequest, n_vars x WireVar, strings_len bytes, inline body.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_next_request() -> *const WireRequest {
    let Some(host) = host() else { return std::ptr::null() };
    loop {
        let request = match host.lane.next_request() {
            Ok(Some(request)) => request,
            Ok(None) => return std::ptr::null(),
            Err(error) => {
                eprintln!("howdah-php: {error}");
                return std::ptr::null();
            }
        };
        host.interim = false;
        host.head.clear();
        // SAFETY: `request` was just returned by `next_request`.
        let flags = unsafe { (*request).flags };
        priority::obey(flags);
        let body = match body_kind(flags) {
            (false, true) => match host.lane.receive_body() {
                Ok(Some(fd)) => Some(fd),
                Ok(None) => {
                    // The server has no body for it, and has told its client.
                    host.lane.done(WireDone::default());
                    continue;
                }
                Err(error) => {
                    eprintln!("howdah-php: cannot get a request's body: {error}");
                    return std::ptr::null();
                }
            },
            _ => None,
        };
        if let Some(current) = host.current.as_mut() {
            // SAFETY: `request` was just returned by `next_request`, and `howdah_rs_done` lets go of it.
            unsafe { current.begin(request, body) };
        }
        RUNNING.store(host.lane.number(), Ordering::Relaxed);
        CPU_BEGAN.store(host.current.as_ref().map_or(0, |current| current.cpu_began()), Ordering::Relaxed);
        return request;
    }
}

/// Reads up to `size` bytes of the current request's body. Returns the number of bytes, 0 at the end. Never blocks for
/// long: the body is complete.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_read_body(buffer: *mut c_char, size: usize) -> usize {
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

/// The application has found the route that responds to the request; its head will tell the server.
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

/// Begins an order for connections and channels.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_live_begin(kind: LiveKind) {
    if let Some(host) = host() {
        host.live.begin(kind as u16);
    }
}

/// Adds a field to the order. Returns false if the order would be too large; it must not be sent then.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_live_field(name: LiveField, value: *const c_char, length: usize) -> bool {
    let Some(host) = host() else { return true };
    // SAFETY: C's promise in bridge.h.
    host.live.field(name as u16, unsafe { bytes(value, length) })
}

/// Gives the order to the server, if a request runs here. May wait for room.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_live_send() {
    let Some(host) = host() else { return };
    let payload = host.live.finish();
    if host.current.is_some() && host.lane.number() != 0 {
        host.lane.live(&payload);
    }
}

/// Adds to the response's body. May wait for room. Returns false when the client has gone: the caller then tells PHP
/// (php_handle_aborted_connection).
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_write(data: *const c_char, length: usize) -> bool {
    let Some(host) = host() else { return true };
    match host.current.as_ref() {
        // Output after the response's end is dropped, as FPM does.
        Some(current) if !current.ended => {
            // SAFETY: C's promise in bridge.h.
            !current.cancelled && host.lane.write(unsafe { bytes(data, length) }).is_ok()
        }
        _ => true,
    }
}

/// Sends everything written so far to the client now. Returns false when the client has gone.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_flush() -> bool {
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

    /// True if this worker is multiplexed.
    fn is_multiplexed(&self) -> bool {
        self.lane.wake_fd().is_some()
    }
}

/// The response is complete for the client; the worker goes on with the request. Idempotent. `done_follows`: only PHP's own
/// cleaning up is left before howdah_rs_done(); after a short request the server is then woken once for both.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_end_response(done_follows: bool) {
    let Some(host) = host() else { return };
    let Some(current) = host.current.as_ref() else { return };
    let wait = host.is_multiplexed() || done_follows && current.elapsed() < SHORT_REQUEST;
    host.end_response(!wait);
}

/// The request is over, resources of the script are released; the worker is free. Ends the response if still open. The
/// frame from howdah_rs_next_request() is invalid afterwards.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_done(peak_memory: u64, retire: bool) {
    let Some(host) = host() else { return };
    host.end_response(false);
    let Some(current) = host.current.as_mut() else { return };
    let memory = current.finish();
    host.lane.done(WireDone {
        php_ns: current.elapsed().as_nanos() as u64,
        cpu_ns: current.processor_time().as_nanos() as u64,
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

/// Gives the current request back to the server, for a worker that has booted later; the worker must end at once. False
/// when a part of its response has been sent. Not in async mode.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_give_back(boot_began_us: u64) -> bool {
    let Some(host) = host() else { return false };
    if host.is_multiplexed() || host.current.as_ref().is_none_or(|request| request.head_sent || request.ended) {
        return false;
    }
    host.lane.return_request(boot_began_us);
    true
}

/// The state of the worker's pool as JSON, in a descriptor that the caller closes; -1: there is none to be had. For the
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

/// Writes a line into the server's log with the current request's id; level as in syslog(3), 0 emergency to 7 debug. Works
/// before the first request too (boot messages).
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_log(level: c_int, message: *const c_char, length: usize) {
    // SAFETY: C's promise in bridge.h.
    let message = unsafe { bytes(message, length) };
    match host() {
        Some(host) => {
            host.lane.log(level.clamp(0, 7) as u8, message);
            if host.lane.number() == 0 {
                // No response follows that would carry it along, or not soon.
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

// --- multiplexed workers
// --------------------------------------------------------------------------------------------------

/// An event from the server.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    None,
    Request,
    Cancel,
    Stop,
}

/// The descriptor to wait on, edge-triggered: it is written to after the server has sent something while the worker had
/// announced that it waits, and it is never read. -1 in other modes. Bridge's own: do not read or close it.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_wake_fd() -> c_int {
    host().and_then(|host| host.lane.wake_fd()).map_or(-1, |fd| fd.as_raw_fd())
}

/// Publishes, then announces that the worker will wait on the descriptor. False: there is something already, take it
/// first.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_prepare_wait() -> bool {
    host().is_some_and(|host| host.lane.prepare_wait())
}

/// After the wait, for whatever reason it ended: takes the announcement back.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_woken() {
    if let Some(host) = host() {
        host.lane.woken();
    }
}

/// Shows the server everything written so far and wakes it if it sleeps.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_publish() {
    if let Some(host) = host() {
        host.lane.publish();
    }
}

/// To which open request belong body, head, output, log lines and end from now on; 0 (or one that is not open): to none.
/// Cheap. Not between howdah_rs_head_begin() and howdah_rs_head_end(). howdah_rs_done() leaves none selected.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_select_request(number: u64) {
    let Some(host) = host() else { return };
    if host.lane.number() == number || !host.is_multiplexed() {
        return;
    }
    if let Some(mut current) = host.current.take() {
        current.pause();
        host.others.insert(host.lane.number(), current);
    }
    host.current = host.others.remove(&number);
    if let Some(current) = host.current.as_mut() {
        current.run();
    }
    let number = if host.current.is_some() { number } else { 0 };
    RUNNING.store(number, Ordering::Relaxed);
    host.lane.select(number);
}

/// A connection pool of this worker, one of POOL_SLOTS: its name, and what `pool_number` lists. Only written to shared
/// memory, where the server looks when somebody asks. A script's child must not call them.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_pool_name(slot: c_uint, name: *const c_char, length: usize) {
    if let Some(host) = host() {
        // SAFETY: C's promise in bridge.h.
        host.lane.set_pool_name(slot as usize, unsafe { bytes(name, length) });
    }
}

/// Name of a number of a connection pool in PHP and in the metrics; NULL after the last.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_pool_number_name(number: c_uint) -> *const c_char {
    PoolNumber::NAMES.get(number as usize).map_or(std::ptr::null(), |name| name.as_ptr())
}

/// The numbers of a connection pool, in the order of `pool_number`. See `howdah_rs_pool_name()`.
/// cbindgen:ptrs-as-arrays=[[numbers; POOL_NUMBERS]]
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_pool_numbers(slot: c_uint, numbers: *const u64) {
    // SAFETY: C passes an array of `POOL_NUMBERS` or NULL; it is borrowed for the length of this call.
    let numbers = unsafe { numbers.cast::<[u64; POOL_NUMBERS]>().as_ref() };
    if let (Some(host), Some(numbers)) = (host(), numbers) {
        host.lane.set_pool_numbers(slot as usize, numbers);
    }
}

impl Host {
    /// The next event that is about a request which is open.
    fn take_event(&mut self, request: &mut *const WireRequest, number: &mut u64, reason: &mut c_uint) -> EventKind {
        loop {
            match self.lane.take_event() {
                Ok(None) => return EventKind::None,
                Ok(Some(Event::Stop)) => return EventKind::Stop,
                Ok(Some(Event::Request(taken))) => {
                    *number = taken.number;
                    let mut open = self.spare.pop().unwrap_or_else(|| Box::new(OpenRequest::none()));
                    open.take(taken);
                    *request = open.request().unwrap_or(std::ptr::null());
                    self.others.insert(*number, open);
                    return EventKind::Request;
                }
                Ok(Some(Event::Cancel { number: of, reason: why })) => {
                    let selected = self.current.as_mut().filter(|_| self.lane.number() == of);
                    // A request that ended meanwhile is ignored.
                    if let Some(open) = selected.or_else(|| self.others.get_mut(&of)) {
                        open.cancelled = true;
                        *number = of;
                        *reason = why;
                        return EventKind::Cancel;
                    }
                }
                Err(error) => {
                    eprintln!("howdah-php: {error}");
                    return EventKind::Stop;
                }
            }
        }
    }
}

/// The next thing the server has sent; never waits. REQUEST: `*request` and `*number` are set, the memory (laid out as for
/// howdah_rs_next_request()) is the request's until its howdah_rs_done(); it is not selected yet. CANCEL: `*number`, a
/// request that is not done, and `*reason`, one of CANCEL_CLIENT_GONE and CANCEL_DEADLINE; howdah_rs_write() and
/// howdah_rs_flush() return false for that request from now on. A request that does not end within a few seconds after
/// its deadline costs the worker its life. STOP, once: no request follows, end with the last one; CANCEL may still
/// come.
#[unsafe(no_mangle)]
extern "C" fn howdah_rs_take_event(
    request: *mut *const WireRequest,
    number: *mut u64,
    reason: *mut c_uint,
) -> EventKind {
    let Some(host) = host().filter(|host| host.is_multiplexed()) else { return EventKind::None };
    let (mut its_request, mut its_number, mut its_reason) = (std::ptr::null(), 0, 0);
    let kind = host.take_event(&mut its_request, &mut its_number, &mut its_reason);
    // SAFETY: C's promise in bridge.h: three valid places, with no other user during the call.
    unsafe {
        request.write(its_request);
        number.write(its_number);
        reason.write(its_reason);
    }
    kind
}

#[cfg(test)]
#[path = "bridge_tests.rs"]
mod tests;

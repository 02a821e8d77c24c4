//! The functions that the C shim calls (`shim/bridge.h`). Each returns; none calls back into PHP, none unwinds.
//!
//! A panic in an `extern "C"` function aborts the process, which is right here: the server replaces the worker.

use crate::open_call::OpenCall;
use crate::{stack_signal, template};
use howdah_transport::wire::{
    DONE_RESETS_SHIFT, DONE_RETIRE, DONE_UNFIT, DONE_WAY_SHIFT, POOL_NUMBERS, PoolNumber, WireCall, WireDone,
};
use howdah_transport::worker_end::{LaneCopy, body_kind};
use howdah_transport::{CallMap, Event, Hole, WorkerEnd};
use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::Duration;

/// After a call shorter than this, PHP's cleaning up is shorter than a wake-up: answer and end are published together.
const SHORT_CALL: Duration = Duration::from_micros(200);

/// Open calls that are kept for later ones.
const SPARE_CALLS: usize = 64;

/// What snapshot mode adds to the end of a call; `snapshot_report` in bridge.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct SnapshotNumbers {
    way: u32,
    searches: u32,
    restored_pages: u32,
    restore_ns: u32,
    resets: u32,
    unfit: bool,
}

impl SnapshotNumbers {
    fn flags(&self) -> u32 {
        let unfit = if self.unfit { DONE_UNFIT } else { 0 };
        self.way << DONE_WAY_SHIFT | self.resets.min(0xff) << DONE_RESETS_SHIFT | unfit
    }
}

/// The worker's side of its calls.
struct Host {
    lane: WorkerEnd,
    /// The call that the functions below are about. A worker that runs one at a time has one for all its calls.
    current: Option<Box<OpenCall>>,
    /// Async mode: the open calls that are not selected.
    others: CallMap<Box<OpenCall>>,
    /// Async mode: to be used for calls to come.
    #[expect(clippy::vec_box, reason = "what is spared is the allocation; calls move between the maps as boxes")]
    spare: Vec<Box<OpenCall>>,
    /// A head under construction; complete before another call is selected.
    head: Vec<u8>,
    interim: bool,
    /// Snapshot mode's numbers for the end of the call.
    snapshot: SnapshotNumbers,
}

/// The one host of a worker process; `None` in the zygote.
struct HostCell(UnsafeCell<Option<Host>>);

// SAFETY: the process has one thread, and no function here calls another while it holds the reference.
unsafe impl Sync for HostCell {}

static HOST: HostCell = HostCell(UnsafeCell::new(None));

/// Gives the bridge its lane. Once, in a worker, before PHP runs.
pub(crate) fn install(lane: WorkerEnd) {
    let several = lane.wake_fd().is_some();
    TIMED_OUT.store(lane.timeout_word().cast_mut(), Ordering::Relaxed);
    let host = Host {
        lane,
        current: (!several).then(|| Box::new(OpenCall::none())),
        others: CallMap::default(),
        spare: Vec::new(),
        head: Vec::with_capacity(1024),
        interim: false,
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
    // C may still point into the memory of the calls.
    std::mem::forget((host.current, host.others));
    Some(host.lane.leave())
}

/// What a script's child is to find of the lane, while the process forks.
struct ForkCopy(UnsafeCell<Option<LaneCopy>>);

// SAFETY: the process has one thread that uses it, the one that forks.
unsafe impl Sync for ForkCopy {}

static FORK_COPY: ForkCopy = ForkCopy(UnsafeCell::new(None));

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

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_became_script_child() {
    // SAFETY: see `ForkCopy`.
    let copy = unsafe { (*FORK_COPY.0.get()).take() };
    if let (Some(hole), Some(copy)) = (leave(), copy) {
        // Without it a look at the call ends this process, which is nobody's worker.
        let _ = copy.put(hole);
    }
}

/// The call that runs, and where to note that its script has run past its time limit: for a signal handler, which must not
/// touch the host.
static RUNNING: AtomicU64 = AtomicU64::new(0);
static TIMED_OUT: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

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
extern "C" fn howdah_rs_share_boot(why_not: *const c_char, boot_began_us: u64) -> bool {
    // SAFETY: C passes NULL or a text that is valid for the length of the call.
    let why_not = (!why_not.is_null()).then(|| unsafe { CStr::from_ptr(why_not) }.to_string_lossy());
    template::share_boot(why_not.as_deref(), boot_began_us)
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_next_call() -> *const WireCall {
    let Some(host) = host() else { return std::ptr::null() };
    loop {
        let call = match host.lane.next_call() {
            Ok(Some(call)) => call,
            Ok(None) => return std::ptr::null(),
            Err(error) => {
                eprintln!("howdah-php: {error}");
                return std::ptr::null();
            }
        };
        host.interim = false;
        host.head.clear();
        // SAFETY: `call` was just returned by `next_call`.
        let flags = unsafe { (*call).flags };
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
            // SAFETY: `call` was just returned by `next_call`, and `howdah_rs_done` lets go of it.
            unsafe { current.begin(call, body) };
        }
        RUNNING.store(host.lane.number(), Ordering::Relaxed);
        return call;
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_read_body(buffer: *mut c_char, size: usize) -> usize {
    let Some(current) = host().and_then(|host| host.current.as_mut()) else { return 0 };
    if buffer.is_null() || size == 0 {
        return 0;
    }
    // SAFETY: C's buffer has `size` bytes and is not otherwise used during the call.
    current.read_body(unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), size) })
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
    let Some(current) = host.current.as_mut() else { return };
    if current.head_sent || current.ended {
        return;
    }
    host.lane.head(host.interim, &host.head);
    current.head_sent = !host.interim;
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_write(data: *const c_char, length: usize) -> bool {
    let Some(host) = host() else { return true };
    match host.current.as_ref() {
        // What is printed after the answer's end is dropped, as FPM does.
        Some(current) if !current.ended => {
            // SAFETY: C's promise in bridge.h.
            !current.cancelled && host.lane.write(unsafe { bytes(data, length) }).is_ok()
        }
        _ => true,
    }
}

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

    /// True if this worker runs several calls.
    fn several(&self) -> bool {
        self.lane.wake_fd().is_some()
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_end_response(done_follows: bool) {
    let Some(host) = host() else { return };
    let Some(current) = host.current.as_ref() else { return };
    let wait = host.several() || done_follows && current.elapsed() < SHORT_CALL;
    host.end_response(!wait);
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_done(peak_memory: u64, retire: bool) {
    let Some(host) = host() else { return };
    host.end_response(false);
    let Some(current) = host.current.as_mut() else { return };
    let memory = current.finish();
    host.lane.done(WireDone {
        php_ns: current.elapsed().as_nanos() as u64,
        peak_memory,
        flags: host.snapshot.flags() | if retire { DONE_RETIRE } else { 0 },
        searches: host.snapshot.searches,
        restored_pages: host.snapshot.restored_pages,
        restore_ns: host.snapshot.restore_ns,
    });
    if let Some(memory) = memory {
        host.lane.recycle(memory);
    }
    if host.several()
        && let Some(call) = host.current.take()
        && host.spare.len() < SPARE_CALLS
    {
        host.spare.push(call);
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_give_back(boot_began_us: u64) -> bool {
    let Some(host) = host() else { return false };
    if host.several() || host.current.as_ref().is_none_or(|call| call.head_sent || call.ended) {
        return false;
    }
    host.lane.return_call(boot_began_us);
    true
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_snapshot_numbers(numbers: SnapshotNumbers) {
    if let Some(host) = host() {
        host.snapshot = numbers;
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
                // No answer follows that would carry it along, or not soon.
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

// --- several calls at once ---------------------------------------------------------------------------------------------

/// `howdah_event` of bridge.h.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    None,
    Call,
    Cancel,
    Stop,
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_wake_fd() -> c_int {
    host().and_then(|host| host.lane.wake_fd()).map_or(-1, |fd| fd.as_raw_fd())
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_prepare_wait() -> bool {
    host().is_some_and(|host| host.lane.prepare_wait())
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_woken() {
    if let Some(host) = host() {
        host.lane.woken();
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_publish() {
    if let Some(host) = host() {
        host.lane.publish();
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_select_call(number: u64) {
    let Some(host) = host() else { return };
    if host.lane.number() == number || !host.several() {
        return;
    }
    if let Some(current) = host.current.take() {
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

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_pool_name(slot: c_uint, name: *const c_char, length: usize) {
    if let Some(host) = host() {
        // SAFETY: C's promise in bridge.h.
        host.lane.set_pool_name(slot as usize, unsafe { bytes(name, length) });
    }
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_pool_number_name(number: c_uint) -> *const c_char {
    PoolNumber::NAMES.get(number as usize).map_or(std::ptr::null(), |name| name.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_pool_numbers(slot: c_uint, numbers: *const [u64; POOL_NUMBERS]) {
    // SAFETY: C passes an array of this length or NULL; it is borrowed for the length of this call.
    if let (Some(host), Some(numbers)) = (host(), unsafe { numbers.as_ref() }) {
        host.lane.set_pool_numbers(slot as usize, numbers);
    }
}

impl Host {
    /// The next event that is about a call which is open.
    fn take_event(&mut self, call: &mut *const WireCall, number: &mut u64, reason: &mut c_uint) -> EventKind {
        loop {
            match self.lane.take_event() {
                Ok(None) => return EventKind::None,
                Ok(Some(Event::Stop)) => return EventKind::Stop,
                Ok(Some(Event::Call(taken))) => {
                    *number = taken.number;
                    let mut open = self.spare.pop().unwrap_or_else(|| Box::new(OpenCall::none()));
                    open.take(taken);
                    *call = open.call().unwrap_or(std::ptr::null());
                    self.others.insert(*number, open);
                    return EventKind::Call;
                }
                Ok(Some(Event::Cancel { number: of, reason: why })) => {
                    let selected = self.current.as_mut().filter(|_| self.lane.number() == of);
                    // A call that was done meanwhile is nobody's business any more.
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

#[unsafe(no_mangle)]
extern "C" fn howdah_rs_take_event(call: *mut *const WireCall, number: *mut u64, reason: *mut c_uint) -> EventKind {
    let Some(host) = host().filter(|host| host.several()) else { return EventKind::None };
    let (mut its_call, mut its_number, mut its_reason) = (std::ptr::null(), 0, 0);
    let kind = host.take_event(&mut its_call, &mut its_number, &mut its_reason);
    // SAFETY: C's promise in bridge.h: three valid places, used by nobody else during the call.
    unsafe {
        call.write(its_call);
        number.write(its_number);
        reason.write(its_reason);
    }
    kind
}

#[cfg(test)]
#[path = "bridge_tests.rs"]
mod tests;

//! The worker's share of processor time. The server marks requests that yield to shorter ones (`wire::REQUEST_NICE`)
//! and requests whose processor time the worker measures (`wire::REQUEST_MEASURE`).

use howdah_transport::wire::{REQUEST_NICE, REQUEST_NICE_SHIFT};
use rustix::process::{Resource, getpriority_process, getrlimit, setpriority_process};
use rustix::time::{ClockId, clock_gettime};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// The nice value from which `RLIMIT_NICE` counts down (setrlimit(2)).
const NICE_ZERO: i64 = 20;

/// The nice value with which the worker was started. Relaxed everywhere: one thread.
static OWN: AtomicI32 = AtomicI32::new(0);

fn current() -> i32 {
    getpriority_process(None).unwrap_or(0)
}

/// Stores the worker's own nice value. Called before its first request.
pub(crate) fn remember() {
    OWN.store(current(), Ordering::Relaxed);
}

/// True if a process with this one's rights can lower its nice value back to the current one.
pub(crate) fn is_restorable() -> bool {
    let needed = u64::try_from(NICE_ZERO - i64::from(current())).unwrap_or(0);
    rustix::process::geteuid().is_root() || getrlimit(Resource::Nice).current.is_none_or(|limit| limit >= needed)
}

/// Sets the nice value for a request with these flags. Costs a system call, only if the server requests it.
pub(crate) fn apply_priority(flags: u32) {
    if flags & REQUEST_NICE != 0 {
        let amount = (flags >> REQUEST_NICE_SHIFT & 0x1f) as i32;
        // This fails if the right to lower the value again has gone; the worker then keeps its lower priority, and no
        // request fails for that.
        let _ = setpriority_process(None, OWN.load(Ordering::Relaxed) + amount);
    }
}

/// Processor time of the current thread.
pub(crate) fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Processor time of the current thread in the kernel.
pub(crate) fn system_time() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the call writes one structure to this place, completely if it succeeds.
    let time = unsafe {
        if libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) != 0 {
            return Duration::ZERO;
        }
        usage.assume_init().ru_stime
    };
    Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000)
}

/// Processor time of another, single-threaded process.
pub(crate) fn processor_time_of(pid: i32) -> Option<Duration> {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both calls write only to the variables passed to them.
    let told = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0 && libc::clock_gettime(clock, &raw mut time) == 0
    };
    told.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

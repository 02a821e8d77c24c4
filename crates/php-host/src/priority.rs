//! The worker's share of the processors: the server says with a request whether it gives way to shorter ones
//! (`wire::REQUEST_NICE`), and asks what a request used (`wire::REQUEST_MEASURE`).

use howdah_transport::wire::{REQUEST_NICE, REQUEST_NICE_SHIFT};
use rustix::process::{Resource, getpriority_process, getrlimit, setpriority_process};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// The nice value that `RLIMIT_NICE` counts down from (setrlimit(2)).
const NICE_ZERO: i64 = 20;

/// The nice value with which the worker was started. Relaxed everywhere: one thread.
static OWN: AtomicI32 = AtomicI32::new(0);

fn current() -> i32 {
    getpriority_process(None).unwrap_or(0)
}

/// Remembers the worker's own nice value; before its first request.
pub(crate) fn remember() {
    OWN.store(current(), Ordering::Relaxed);
}

/// True if a process with this one's rights can lower its nice value to what it is now.
pub(crate) fn is_restorable() -> bool {
    let needed = u64::try_from(NICE_ZERO - i64::from(current())).unwrap_or(0);
    rustix::process::geteuid().is_root() || getrlimit(Resource::Nice).current.is_none_or(|limit| limit >= needed)
}

/// Sets the nice value that a request with these flags is to run with. Costs a system call, and only where the server
/// wants it.
pub(crate) fn obey(flags: u32) {
    if flags & REQUEST_NICE != 0 {
        let amount = (flags >> REQUEST_NICE_SHIFT & 0x1f) as i32;
        // It fails if the right to lower it again has gone; the worker then stays behind others, and no request fails
        // for that.
        let _ = setpriority_process(None, OWN.load(Ordering::Relaxed) + amount);
    }
}

/// Processor time of this thread.
pub(crate) fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Processor time of another process, which has one thread.
pub(crate) fn processor_time_of(pid: i32) -> Option<Duration> {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both calls write to what they are given and to nothing else.
    let told = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0 && libc::clock_gettime(clock, &raw mut time) == 0
    };
    told.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

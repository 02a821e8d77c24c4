//! Time limits of a request for waiting and running, which override its pool's; and the processor time of a worker.

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use std::time::Duration;

/// Limits of a request. `None`: the pool's limit applies; zero: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeLimits {
    /// Time in PHP.
    pub deadline: Option<Duration>,
    /// Time in the queue; here zero means that the request must not wait.
    pub queue: Option<Duration>,
}

/// A request's limit: its own, or the pool's.
pub(crate) fn or_of_pool(own: Option<Duration>, of_pool: Option<Duration>) -> Option<Duration> {
    own.or(of_pool).filter(|limit| !limit.is_zero())
}

/// Processor time of a process, as PHP counts for `max_execution_time`: in its code and in the kernel, without programs
/// that it started. One system call; any process may be queried.
pub fn processor_time(pid: u32) -> Option<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    clock_gettime(clock).ok().map(Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_a_request_override_those_of_its_pool() {
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        assert_eq!(or_of_pool(None, Some(minute)), Some(minute));
        assert_eq!(or_of_pool(Some(second), Some(minute)), Some(second));
        assert_eq!(or_of_pool(Some(second), None), Some(second));
        assert_eq!(or_of_pool(Some(Duration::ZERO), Some(minute)), None, "zero is not a limit");
    }

    #[test]
    fn the_processor_time_of_a_process_grows_while_it_computes() {
        let own = std::process::id();
        let before = processor_time(own).unwrap();
        let mut sum = 0_u64;
        while processor_time(own).unwrap() < before + Duration::from_millis(5) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
    }
}

//! The kernel's report about a reaped child: exit status and processor time.

use rustix::process::Pid;
use std::io;
use std::time::Duration;

/// A child that has ended and was reaped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reaped {
    /// Exit status, if it exited.
    pub(crate) status: Option<i32>,
    /// The signal that killed it.
    pub(crate) signal: Option<i32>,
    /// User and system time, including programs that it started and waited for.
    pub(crate) processor_time: Duration,
}

/// Waits for a child to end and reaps it.
///
/// # Errors
/// The process is not a child of this one.
pub(crate) fn reap(child: Pid) -> io::Result<Reaped> {
    let mut ended = 0;
    // SAFETY: all zeros are a valid `rusage`, which is made of numbers.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to variables of this function that live until the call returns. rustix's `waitpid` does
    // not report the processor time.
    while unsafe { libc::wait4(child.as_raw_nonzero().get(), &raw mut ended, 0, &raw mut used) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |value: libc::timeval| Duration::from_micros(value.tv_sec as u64 * 1_000_000 + value.tv_usec as u64);
    Ok(Reaped {
        status: libc::WIFEXITED(ended).then(|| libc::WEXITSTATUS(ended)),
        signal: libc::WIFSIGNALED(ended).then(|| libc::WTERMSIG(ended)),
        processor_time: time(used.ru_utime) + time(used.ru_stime),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[expect(clippy::zombie_processes, reason = "the tested code reaps it")]
    fn run(script: &str) -> Reaped {
        let child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn().unwrap();
        reap(Pid::from_raw(child.id() as i32).unwrap()).unwrap()
    }

    #[test]
    fn a_childs_end_and_usage_are_reported() {
        let ended = run("exit 7");
        assert_eq!((ended.status, ended.signal), (Some(7), None));
        let killed = run("kill -9 $$");
        assert_eq!((killed.status, killed.signal), (None, Some(9)));
        // A program that the child has waited for.
        let loops = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
        let busy = run(&format!("sh -c '{loops}'; exit 0"));
        assert!(busy.processor_time >= Duration::from_millis(5), "{busy:?}");
        assert!(reap(Pid::from_raw(i32::MAX).unwrap()).is_err());
    }
}

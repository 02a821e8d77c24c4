//! The end of a pool's process, and its cause.
//!
//! A boot has failed if PHP reports that, takes too long, or if the process ended with a status or by a fault in its
//! code. A kill from outside (by the out-of-memory killer or an operator) is not evidence against the application.
//!
//! Two sources report a worker's death. Its lane's reader sees it; its zygote, which reaps it, knows the cause. The
//! reports come in either order; a death that matters waits here for its cause.

use crate::process::worker_state::KillReason;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Maximum time that a death waits for its cause. A zygote reports it at once, unless it is stuck.
const CAUSE_WAIT: Duration = Duration::from_secs(1);

/// Signals that are never raised by a fault in the program's code.
const FROM_OUTSIDE: [i32; 5] =
    [Signal::HUP.as_raw(), Signal::INT.as_raw(), Signal::QUIT.as_raw(), Signal::KILL.as_raw(), Signal::TERM.as_raw()];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Status(i32),
    Signal(i32),
    /// Unknown, for this reason.
    Unknown(String),
}

impl End {
    /// From a zygote's report.
    pub(crate) fn of(status: Option<i32>, signal: Option<i32>) -> Self {
        match (signal, status) {
            (Some(signal), _) => Self::Signal(signal),
            (None, Some(status)) => Self::Status(status),
            (None, None) => Self::Unknown("its exit status is unknown".into()),
        }
    }

    /// `true` if the process was killed by a signal that counts as sent from outside.
    pub(crate) fn is_from_outside(&self) -> bool {
        matches!(self, Self::Signal(signal) if FROM_OUTSIDE.contains(signal))
    }
}

impl From<io::Result<ExitStatus>> for End {
    fn from(waited: io::Result<ExitStatus>) -> Self {
        match waited {
            Ok(status) => Self::of(status.code(), status.signal()),
            Err(error) => Self::Unknown(error.to_string()),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "exit status: {status}"),
            Self::Signal(signal) => write!(f, "signal: {signal}"),
            Self::Unknown(why) => f.write_str(why),
        }
    }
}

/// A worker that ends within this time without a request counts as a failed start.
const SHORT_LIFE: Duration = Duration::from_millis(200);

/// A worker's death, as its lane's reader reports it: to its requests (`rescue`) and to the supervisor.
#[derive(Debug)]
pub(crate) struct Death {
    /// The worker's number within its pool.
    pub(crate) worker: u32,
    pub(crate) pid: u32,
    pub(crate) generation: u64,
    /// The I/O thread that read its lane.
    pub(crate) home: usize,
    /// The worker had begun to serve.
    pub(crate) was_ready: bool,
    /// The worker was serving but never had a request.
    pub(crate) idle: bool,
    pub(crate) lived: Duration,
    /// The reason, if the server killed the worker.
    pub(crate) reason: Option<KillReason>,
    /// The first error of its boot, which is in no log yet.
    pub(crate) boot_error: Option<String>,
}

impl Death {
    /// `true` if the death counts against the worker's boot, unless the worker was killed from outside.
    pub(crate) fn counts_against_boot(&self) -> bool {
        let is_useless = !self.was_ready || (self.idle && self.lived < SHORT_LIFE);
        is_useless && !matches!(self.reason, Some(KillReason::WarmUp))
    }

    /// Description for the operator.
    pub(crate) fn what(&self) -> String {
        let pid = self.pid;
        let what = match &self.reason {
            Some(KillReason::BootTimeout) => format!("worker {pid} exceeded boot_timeout"),
            _ if self.was_ready => format!("worker {pid} ended before its first request"),
            _ => format!("worker {pid} ended before it was ready"),
        };
        match &self.boot_error {
            Some(boot_error) => format!("{what}: {boot_error}"),
            None => what,
        }
    }
}

/// A generation's workers, and deaths that only one of the two sources has reported.
#[derive(Debug, Default)]
pub(crate) struct Deaths {
    /// Live workers, and those whose end only the zygote has reported, with that end.
    workers: HashMap<u32, Option<End>>,
    /// Deaths without a known cause, and when they were reported.
    unexplained: Vec<(Death, Instant)>,
}

impl Deaths {
    pub(crate) fn forked(&mut self, pid: u32) {
        self.workers.insert(pid, None);
    }

    /// Records a process's end from its zygote. Returns the death that waited for this cause, if any.
    pub(crate) fn ended(&mut self, pid: u32, end: &End) -> Option<Death> {
        if let Some(at) = self.unexplained.iter().position(|(death, _)| death.pid == pid) {
            return Some(self.unexplained.swap_remove(at).0);
        }
        if let Some(known) = self.workers.get_mut(&pid) {
            *known = Some(end.clone());
        }
        None
    }

    /// Records the death of a worker whose cause does not matter: it had served, or the server killed it.
    pub(crate) fn settled(&mut self, pid: u32) {
        self.workers.remove(&pid);
    }

    /// Records the death of a worker that never served usefully. Returns it with its cause if that is known.
    pub(crate) fn useless(&mut self, death: Death, now: Instant) -> Option<(Death, End)> {
        match self.workers.remove(&death.pid).flatten() {
            Some(end) => Some((death, end)),
            None => {
                self.unexplained.push((death, now));
                None
            }
        }
    }

    /// True while a death waits for its cause.
    pub(crate) fn are_unexplained(&self) -> bool {
        !self.unexplained.is_empty()
    }

    /// Removes a death that has waited too long for its cause.
    pub(crate) fn given_up(&mut self, now: Instant) -> Option<Death> {
        let at = self.unexplained.iter().position(|(_, since)| now.saturating_duration_since(*since) > CAUSE_WAIT)?;
        Some(self.unexplained.swap_remove(at).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn death(pid: u32) -> Death {
        Death {
            worker: 0,
            pid,
            generation: 1,
            home: 0,
            was_ready: false,
            idle: false,
            lived: Duration::ZERO,
            reason: None,
            boot_error: None,
        }
    }

    #[test]
    fn a_death_counts_against_the_boot_unless_the_worker_has_served_or_was_meant_to_end() {
        let lived = |millis| Duration::from_millis(millis);
        for (was_ready, idle, age, reason, expected) in [
            (false, false, 0, None, Some("worker 7 ended before it was ready: no")),
            (false, false, 9_000, Some(KillReason::BootTimeout), Some("worker 7 exceeded boot_timeout: no")),
            (false, false, 0, Some(KillReason::WarmUp), None),
            (true, true, 10, None, Some("worker 7 ended before its first request")),
            (true, true, 10_000, None, None),
            (true, false, 10, None, None),
        ] {
            // The error of a boot that succeeded has been logged.
            let boot_error = (!was_ready).then(|| "no".to_owned());
            let death = Death { was_ready, idle, lived: lived(age), reason, boot_error, ..death(7) };
            assert_eq!(death.counts_against_boot().then(|| death.what()).as_deref(), expected, "{death:?}");
        }
    }

    #[test]
    fn a_crash_is_not_a_kill_from_outside() {
        for signal in [
            Signal::KILL.as_raw(),
            Signal::TERM.as_raw(),
            Signal::INT.as_raw(),
            Signal::HUP.as_raw(),
            Signal::QUIT.as_raw(),
        ] {
            assert!(End::from(Ok(ExitStatus::from_raw(signal))).is_from_outside(), "{signal}");
        }
        for signal in [
            Signal::SEGV.as_raw(),
            Signal::BUS.as_raw(),
            Signal::ABORT.as_raw(),
            Signal::ILL.as_raw(),
            Signal::FPE.as_raw(),
            Signal::SYS.as_raw(),
            Signal::XCPU.as_raw(),
        ] {
            // With a core dump or without.
            for status in [signal, signal | 0x80] {
                assert!(!End::from(Ok(ExitStatus::from_raw(status))).is_from_outside(), "{signal}");
            }
        }
        // The status with which a shell reports a killed child is an ordinary status.
        for status in [0, 1, 124, 137, 255] {
            assert!(!End::from(Ok(ExitStatus::from_raw(status << 8))).is_from_outside(), "{status}");
        }
        assert!(!End::from(Err(io::Error::other("no child"))).is_from_outside());
    }

    #[test]
    fn a_death_and_its_cause_meet_in_either_order_and_leave_nothing() {
        let now = Instant::now();
        let (kill, mut deaths) = (End::Signal(Signal::KILL.as_raw()), Deaths::default());
        for pid in 1..=4 {
            deaths.forked(pid);
        }
        assert!(deaths.ended(1, &kill).is_none() && deaths.useless(death(1), now).is_some_and(|(_, end)| end == kill));
        assert!(deaths.useless(death(2), now).is_none() && deaths.are_unexplained());
        assert!(deaths.ended(2, &kill).is_some_and(|death| death.pid == 2) && !deaths.are_unexplained());
        // A death whose cause does not matter, in either order; and a process that is not a worker.
        deaths.settled(3);
        assert!(
            deaths.ended(3, &kill).is_none() && deaths.ended(4, &kill).is_none() && deaths.ended(9, &kill).is_none()
        );
        deaths.settled(4);
        assert!(deaths.workers.is_empty());
    }

    #[test]
    fn waiting_for_the_cause_of_a_death_has_a_limit() {
        let (now, mut deaths) = (Instant::now(), Deaths::default());
        deaths.forked(1);
        assert!(deaths.useless(death(1), now).is_none() && deaths.given_up(now).is_none());
        let later = now + CAUSE_WAIT + Duration::from_millis(1);
        assert!(deaths.given_up(later).is_some() && deaths.given_up(later).is_none() && !deaths.are_unexplained());
    }
}

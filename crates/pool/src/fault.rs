//! Reasons why a request could not be answered: one table from fault to status, retry, log level and metric label.

/// Log level of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// At level `debug`: no action is needed.
    Debug,
    /// At level `warn`.
    Warn,
    /// At level `warn`, rate-limited: in overload there are thousands.
    Often,
}

/// Kinds of faults of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The pool's waiting queue is full.
    QueueFull,
    /// The request waited for a worker longer than allowed.
    QueueTimeout,
    /// No worker can be started (PHP does not boot, or the script fails at once); the pool is backing off.
    PoolDown,
    /// The pool is stopping: the request was not begun, or did not end within the grace time.
    Stopping,
    /// The worker died with the request, which is not run again.
    WorkerDied,
    /// The worker broke the transport's protocol, its response cannot be used, or every worker gave the request back.
    WorkerBroken,
    /// The request ran past its deadline. Its worker is killed, or in async mode asked to cancel it.
    Deadline,
    /// The request exceeded its limit on processor time; its worker was killed.
    CpuDeadline,
    /// The request's head does not fit into a lane.
    HeadTooLarge,
    /// No client waits for a response, as with a request that was made only to be encoded for a warm-up.
    ClientGone,
    /// No budget has room for data that would have to wait, or the server is out of descriptors.
    OverBudget,
    /// A spool or spill file could not be written or read, or in async mode has reached its maximum size.
    Storage,
    /// Requests like this one kill their workers, and are not run for a while.
    Quarantined,
}

/// A request that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}{}", kind.label(), detail.as_deref().map(|d| format!(": {d}")).unwrap_or_default())]
pub struct Fault {
    pub kind: FaultKind,
    /// Details for the log and for the error page of `howdah dev`; not shown to other clients.
    pub detail: Option<Box<str>>,
}

impl Fault {
    /// A fault with no detail.
    pub const fn new(kind: FaultKind) -> Self {
        Self { kind, detail: None }
    }

    pub fn with(kind: FaultKind, detail: impl Into<Box<str>>) -> Self {
        Self { kind, detail: Some(detail.into()) }
    }

    /// A fault for a file that could not be created, written or read. `OverBudget` if the process or system is out of
    /// descriptors, so that the client tries again.
    pub fn storage(what: &str, error: &std::io::Error) -> Self {
        let is_out = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(rustix::io::Errno::raw_os_error);
        let is_out = error.raw_os_error().is_some_and(|code| is_out.contains(&code));
        Self::with(if is_out { FaultKind::OverBudget } else { FaultKind::Storage }, format!("{what}: {error}"))
    }
}

impl FaultKind {
    /// HTTP status, `Retry-After` in seconds (if clients should retry), level in the log, metric label.
    const fn row(self) -> (u16, Option<u32>, Level, &'static str) {
        use Level::{Debug, Often, Warn};
        match self {
            Self::QueueFull => (503, Some(1), Often, "queue_full"),
            Self::QueueTimeout => (503, Some(1), Often, "queue_timeout"),
            Self::PoolDown => (503, Some(5), Warn, "pool_down"),
            Self::Stopping => (503, Some(1), Warn, "stopping"),
            Self::WorkerDied => (502, None, Warn, "worker_died"),
            Self::WorkerBroken => (502, None, Warn, "worker_broken"),
            Self::Deadline => (504, None, Warn, "deadline"),
            Self::CpuDeadline => (504, None, Warn, "cpu_deadline"),
            Self::HeadTooLarge => (431, None, Warn, "head_too_large"),
            Self::ClientGone => (499, None, Debug, "client_gone"),
            Self::OverBudget => (503, Some(1), Warn, "over_budget"),
            Self::Storage => (500, None, Warn, "storage"),
            // Clients get the same status as those of earlier requests that killed their workers.
            Self::Quarantined => (502, None, Warn, "quarantined"),
        }
    }

    /// The HTTP status for the client, if no part of a response was sent.
    pub const fn status(self) -> u16 {
        self.row().0
    }

    /// The value of `Retry-After` in seconds, if clients should retry.
    pub const fn retry_after(self) -> Option<u32> {
        self.row().1
    }

    /// The level at which a front logs the request.
    pub const fn level(self) -> Level {
        self.row().2
    }

    /// The name used in metrics and logs.
    pub const fn label(self) -> &'static str {
        self.row().3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disconnects_and_overload_are_logged_quietly() {
        assert_eq!(FaultKind::ClientGone.level(), Level::Debug);
        for kind in [FaultKind::QueueFull, FaultKind::QueueTimeout] {
            assert_eq!((kind.level(), kind.status(), kind.retry_after()), (Level::Often, 503, Some(1)));
        }
        for kind in [FaultKind::WorkerDied, FaultKind::Deadline, FaultKind::Quarantined, FaultKind::Storage] {
            assert_eq!((kind.level(), kind.retry_after()), (Level::Warn, None), "{}", kind.label());
        }
    }
}

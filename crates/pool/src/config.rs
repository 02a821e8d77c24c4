//! What a pool needs to know; the composition root fills it from the settings.

use howdah_budget::Budgets;
use howdah_transport::privileges::Privileges;
use howdah_transport::zygote_protocol::SandboxSpec;
use std::path::PathBuf;
use std::time::Duration;

/// What a route may have of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteShare {
    /// Its calls that may run at once; 0: any number.
    pub workers: usize,
    /// While calls wait, how much of the workers' time it gets, where all other calls of a client have 1.
    pub weight: u32,
}

/// One pool of PHP workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// Its name in logs, metrics and `status`.
    pub name: String,
    /// Path of the `howdah-php` program.
    pub binary: PathBuf,
    /// `classic`, `worker`, `snapshot` or `async`.
    pub mode: String,
    /// The worker script; empty in classic mode.
    pub script: String,
    /// The boot file of snapshot mode, or empty.
    pub boot_script: String,
    /// php.ini file or directory instead of PHP's own search, or empty.
    pub ini_path: String,
    /// ini values that php.ini cannot override, in order.
    pub ini: Vec<(String, String)>,
    /// The same, and scripts and `.user.ini` files cannot change them; they come after `ini`.
    pub admin_ini: Vec<(String, String)>,
    /// Variables added to the environment of PHP.
    pub env: Vec<(String, String)>,
    /// True: PHP sees only `env`, not the server's own environment.
    pub clear_env: bool,
    /// Workers that always run, at least 1.
    pub min_workers: usize,
    /// Workers that may run under load, at least `min_workers`.
    pub max_workers: usize,
    /// Calls that a worker runs at once; 1 in all modes but `async`.
    pub concurrency: usize,
    /// Time a call may run; `None`: no limit.
    pub deadline: Option<Duration>,
    /// Calls that may wait.
    pub queue: usize,
    /// Time a call may wait.
    pub queue_timeout: Duration,
    /// Time a call may wait once the queue has stood for longer than `queue_timeout`.
    pub queue_target: Duration,
    /// Calls that usually take longer are slow ones.
    pub slow_after: Duration,
    /// Slow calls that may run at once; 0: any number.
    pub slow_workers: usize,
    /// Routes with limits of their own; `Call::route` is a position here.
    pub routes: Vec<RouteShare>,
    /// Time from a worker's start until it must be ready.
    pub boot_timeout: Duration,
    /// Time after which an idle worker beyond `min_workers` ends.
    pub shrink_after: Duration,
    /// How often a repeatable call is run again after its worker died under it.
    pub replay: u32,
    /// Calls after which a worker is replaced; 0: never.
    pub max_requests: u64,
    /// Bytes of memory with which a worker is replaced after a call; 0: never.
    pub max_memory: u64,
    /// Request targets that a new worker runs before it takes calls (snapshot mode).
    pub warmup: Vec<String>,
    /// Whether the answers of two visitors to them are compared before the pool serves.
    pub warmup_check: bool,
    /// The directory that is served.
    pub root: PathBuf,
    /// The script below the root that runs where no file matches, or empty.
    pub front_controller: String,
    /// Bytes of one answer kept in memory before the rest goes to a temporary file.
    pub reply_memory: usize,
    /// Directory for such files.
    pub temp_dir: PathBuf,
    /// What everything that waits is charged to: one for the whole server.
    pub budgets: Budgets,
    /// `SERVER_SOFTWARE`.
    pub software: String,
    /// Whom its processes run as, and within which limits.
    pub privileges: Privileges,
    /// What workers may do to the rest of the machine.
    pub sandbox: SandboxSpec,
}

impl PoolConfig {
    /// True if a worker runs several calls.
    pub(crate) fn several(&self) -> bool {
        self.mode == "async"
    }

    /// Calls that a lane holds at most. A worker that runs one at a time finds its next call without waiting for the
    /// server.
    pub(crate) fn depth(&self) -> usize {
        if self.several() { self.concurrency.max(1) } else { 2 }
    }

    /// Calls that a worker has left when the next one is started, so that it stands ready when this one goes.
    const fn notice(&self) -> u64 {
        let tenth = self.max_requests / 10;
        if tenth < 64 { tenth } else { 64 }
    }

    /// True for a worker that has done so many calls and is to be replaced soon.
    pub(crate) const fn retires_soon(&self, calls: u64) -> bool {
        self.max_requests > 0 && calls + self.notice() >= self.max_requests
    }

    /// True once in a worker's life: when that begins.
    pub(crate) const fn retires_next(&self, calls: u64) -> bool {
        self.max_requests > 0 && calls + self.notice() == self.max_requests
    }
}

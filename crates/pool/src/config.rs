//! A pool's settings; the composition root fills them in.

use howdah_budget::Budgets;
use howdah_transport::WorkerSpec;
use howdah_transport::privileges::Privileges;
use howdah_transport::zygote_protocol::BootSpec;
use std::path::PathBuf;
use std::time::Duration;

/// Limits of a route within a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteShare {
    /// Its requests that may run at once; 0: any number.
    pub workers: usize,
    /// While requests wait, how much of the workers' time it gets, where all other requests of a client have 1.
    pub weight: u32,
}

impl RouteShare {
    /// True if its requests share one turn while they wait, whichever client they are from.
    pub(crate) fn is_own_flow(&self) -> bool {
        self.workers > 0 || self.weight > 1
    }
}

/// Idle workers that a pool keeps ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpareWorkers {
    /// As long as fewer are idle, more are started, up to `max_workers`.
    pub min: usize,
    /// Idle workers beyond these end, one a second; `None`: they end after `shrink_after`.
    pub max: Option<usize>,
}

/// One pool of PHP workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// Settings of PHP's start, with the pool's name in logs, metrics and `status`.
    pub boot: BootSpec,
    /// Paths that its workers are warmed up with, in snapshot mode.
    pub warmup: Vec<String>,
    /// Its workers are also warmed up with what was frequent before.
    pub learns: bool,
    /// The state directory, where what was learnt is kept for the next start. None: it is not kept.
    pub state: Option<PathBuf>,
    /// It goes ahead of another pool (`Pool::yields_to`), which serves whenever this one does not.
    pub yields: bool,
    /// Path of the `howdah-php` program.
    pub binary: PathBuf,
    /// Variables added to the environment of PHP.
    pub env: Vec<(String, String)>,
    /// True: PHP sees only `env`, not the server's own environment.
    pub clear_env: bool,
    /// Workers that always run. 0: a pool on demand, which has none while there is no work.
    pub min_workers: usize,
    /// Workers that may run under load, at least `min_workers` and 1.
    pub max_workers: usize,
    /// Bytes of memory that all workers may have together, as far as the least number of them does with that.
    pub max_pool_memory: Option<u64>,
    /// Workers that are started with the pool, from `min_workers` to `max_workers`.
    pub start_workers: usize,
    /// Idle workers that are kept ready.
    pub spare: SpareWorkers,
    /// Time a request may run; `None`: no limit.
    pub deadline: Option<Duration>,
    /// When a request is noted in the slow log; `None`: never, where its route says nothing.
    pub slow_log_after: Option<Duration>,
    /// Processor time that a request may use; `None`: no limit. Not of a multiplexed pool, whose workers do not tell whose it is.
    pub cpu_deadline: Option<Duration>,
    /// Requests that may wait.
    pub queue: usize,
    /// Time a request may wait.
    pub queue_timeout: Duration,
    /// Routes with limits; `Request::route` is a position here.
    pub routes: Vec<RouteShare>,
    /// Time from a worker's start until it must be ready.
    pub boot_timeout: Duration,
    /// Time after which an idle worker beyond `min_workers` and `spare` ends.
    pub shrink_after: Duration,
    /// Maximum number of times that a repeatable request is run again after its worker died.
    pub replay: u32,
    /// Bytes of one response kept in memory before the rest goes to a temporary file.
    pub response_memory: usize,
    /// Directory for such files.
    pub temp_dir: PathBuf,
    /// Budgets for everything that waits, shared by the whole server.
    pub budgets: Budgets,
    /// User and limits of its processes.
    pub privileges: Privileges,
}

impl PoolConfig {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.boot.pool
    }

    /// Settings of its workers.
    pub(crate) const fn worker(&self) -> &WorkerSpec {
        &self.boot.worker
    }

    /// True if it has no worker while there is no work.
    pub(crate) const fn is_on_demand(&self) -> bool {
        self.min_workers == 0
    }

    /// Its process manager, in PHP-FPM's terms.
    pub(crate) const fn manager(&self) -> &'static str {
        match self.min_workers {
            0 => "ondemand",
            min if min == self.max_workers => "static",
            _ => "dynamic",
        }
    }

    /// True if a worker runs many requests at once.
    pub(crate) const fn is_multiplexed(&self) -> bool {
        self.worker().mode.is_multiplexed()
    }

    /// Requests that a lane holds at most, if its worker is multiplexed.
    pub(crate) fn lane_depth(&self) -> Option<usize> {
        self.is_multiplexed().then(|| self.worker().concurrency.max(1) as usize)
    }

    /// Requests that a worker has left when the next one is started, so that it stands ready when this one goes.
    const fn notice(&self) -> u64 {
        let tenth = self.worker().max_requests / 10;
        if tenth < 64 { tenth } else { 64 }
    }

    /// True for a worker that has done so many requests and is to be replaced soon.
    pub(crate) const fn retires_soon(&self, requests: u64) -> bool {
        self.worker().max_requests > 0 && requests + self.notice() >= self.worker().max_requests
    }

    /// True once in a worker's life: when that begins.
    pub(crate) const fn retires_next(&self, requests: u64) -> bool {
        self.worker().max_requests > 0 && requests + self.notice() == self.worker().max_requests
    }
}

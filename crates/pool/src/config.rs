//! A pool's settings, with values of the server that the composition root adds.

use howdah_budget::Budgets;
use howdah_config::{PoolSettings, Share};
use howdah_transport::privileges::Privileges;
use howdah_transport::zygote_protocol::BootSpec;
use howdah_transport::{Mode, WorkerSpec};
use std::path::PathBuf;
use std::time::Duration;

/// One pool of PHP workers.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolConfig {
    /// Its section of the settings.
    pub settings: PoolSettings,
    /// Settings of PHP's start, with the pool's name in logs, metrics and `status`.
    pub boot: BootSpec,
    /// The state directory, where learned paths are kept for the next start; `None`: they are not kept.
    pub state: Option<PathBuf>,
    /// Variables added to the environment of PHP.
    pub env: Vec<(String, String)>,
    /// Routes with a limit or a weight, of all sites; `Request::route` is an index into this.
    pub routes: Vec<Share>,
    /// Bytes of one response kept in memory before the rest goes to a temporary file.
    pub response_memory: usize,
    /// Directory of these temporary files.
    pub temp_dir: PathBuf,
    /// Budgets for all waiting data, shared by the whole server.
    pub budgets: Budgets,
    /// User and limits of its processes.
    pub privileges: Privileges,
}

impl PoolConfig {
    pub(crate) fn name(&self) -> &str {
        &self.settings.name
    }

    pub(crate) const fn worker(&self) -> &WorkerSpec {
        &self.boot.worker
    }

    /// Minimum number of workers. 0: an on-demand pool, whose last idle worker is stopped too.
    pub const fn min_workers(&self) -> usize {
        self.settings.workers.min as usize
    }

    pub(crate) const fn max_workers(&self) -> usize {
        self.settings.workers.max as usize
    }

    /// Number of workers started with the pool. A snapshot pool boots its application in one worker, even if it is on
    /// demand.
    pub(crate) fn start_workers(&self) -> usize {
        let least = usize::from(self.settings.mode == Mode::Snapshot);
        self.settings.start_workers.max(self.min_workers()).max(least).min(self.max_workers())
    }

    /// True if the pool has a fallback (`Pool::yields_to`), which serves whenever this one does not.
    pub const fn yields(&self) -> bool {
        self.settings.recipe.is_some()
    }

    /// Paths in the settings with which workers are warmed up.
    pub(crate) fn warmup(&self) -> &[String] {
        if self.settings.mode == Mode::Snapshot { &self.settings.warmup } else { &[] }
    }

    /// True if workers are also warmed up with frequent paths learned from the traffic.
    pub(crate) fn learns(&self) -> bool {
        self.settings.warmup_auto && self.settings.mode == Mode::Snapshot && self.settings.script.is_some()
    }

    /// Maximum processor time of a request. `None` if there is no limit, and for multiplexed workers: the time is
    /// measured per process.
    pub(crate) fn cpu_deadline(&self) -> Option<Duration> {
        self.settings.cpu_deadline.filter(|_| !self.is_multiplexed())
    }

    /// True if the pool may have no worker while there is no work.
    pub(crate) const fn is_on_demand(&self) -> bool {
        self.min_workers() == 0
    }

    /// Its process manager, in PHP-FPM's terms.
    pub(crate) const fn manager(&self) -> &'static str {
        match self.min_workers() {
            0 => "ondemand",
            min if min == self.max_workers() => "static",
            _ => "dynamic",
        }
    }

    /// True if a worker runs many requests at once.
    pub(crate) const fn is_multiplexed(&self) -> bool {
        self.settings.mode.is_multiplexed()
    }

    /// Maximum number of requests in a lane, if its worker is multiplexed.
    pub(crate) fn lane_depth(&self) -> Option<usize> {
        self.is_multiplexed().then(|| self.settings.concurrency.max(1))
    }

    /// Number of requests that a worker may still serve when its successor is started.
    const fn notice(&self) -> u64 {
        let tenth = self.settings.max_requests / 10;
        if tenth < 64 { tenth } else { 64 }
    }

    /// True if a worker that has done this many requests should be replaced soon.
    pub(crate) const fn retires_soon(&self, requests: u64) -> bool {
        self.settings.max_requests > 0 && requests + self.notice() >= self.settings.max_requests
    }

    /// True at the request from which `retires_soon` holds: once in a worker's life.
    pub(crate) const fn retires_next(&self, requests: u64) -> bool {
        self.settings.max_requests > 0 && requests + self.notice() == self.settings.max_requests
    }
}

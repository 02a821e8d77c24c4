//! A pool's status, for `howdah status` and the metrics.

use crate::generation_status::BootSource;
use crate::lane::Lane;
use crate::lane::connection_pools;
use crate::learning::demotions::{DemotedRoute, SuspectedRoute};
use crate::queue::cold_starts::ColdStartStatus;
use crate::request::last_request::{self, LastRequest, RequestReport};
use crate::request::time_limits::processor_time;
use crate::shared::Shared;
use howdah_observe::ConnectionPool;
use howdah_observe::histogram::HistogramSnapshot;
use howdah_transport::wire::SNAPSHOT_WAYS;
use howdah_transport::zygote_protocol::Need;
use howdah_transport::{Mode, SandboxProfile};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// Snapshot of a pool's state.
#[derive(Debug, Clone, Serialize)]
pub struct PoolStatus {
    pub name: String,
    pub mode: Mode,
    /// PHP's version, once it has booted.
    pub php_version: Option<String>,
    /// Maximum number of requests that a worker runs at once.
    pub concurrency: u32,
    /// Number of the generation; grows with every zygote that is started.
    pub generation: u64,
    /// In snapshot mode, the process that booted the application and from which workers are forked.
    pub snapshot_template: Option<u32>,
    /// In snapshot mode, the reason why each worker boots separately instead.
    pub snapshot_unshared: Option<String>,
    /// In snapshot mode, true if `warmup` failed or left state that all visitors would share, so that the pool serves
    /// without it.
    pub snapshot_warmup_refused: bool,
    /// In snapshot mode, problems with the requests of `warmup`.
    pub snapshot_warmup: Vec<String>,
    /// In snapshot mode, frequent requests that are not learned for the warm-up, each with the reason.
    pub snapshot_not_learnt: Vec<String>,
    /// The reason why no worker can be started; `None` while workers can.
    pub down: Option<String>,
    /// The reason why the last attempt to start PHP failed, until one succeeds.
    pub last_error: Option<String>,
    /// Number of requests that wait for a worker.
    pub queued: usize,
    /// Maximum number of requests in the queue.
    pub queue_limit: usize,
    /// Wait of the oldest waiting request, in milliseconds.
    pub oldest_wait_ms: u64,
    /// More requests arrive than can be served, so they are refused sooner.
    pub overloaded: bool,
    /// Management of the number of workers: `static`, `dynamic` or `ondemand`.
    pub manager: &'static str,
    /// Minimum number of workers.
    pub workers_min: usize,
    /// Maximum number of workers.
    pub workers_max: usize,
    /// Number of available workers. In async mode free places of busy workers count too.
    pub workers_spare: usize,
    /// In an on-demand pool, requests that found it without a worker, and their waits.
    pub cold_starts: Option<ColdStartStatus>,
    pub workers: Vec<WorkerStatus>,
    /// Number of finished requests.
    pub requests: u64,
    /// Microseconds spent in PHP.
    pub php_us: u64,
    /// Time from the end of requests' heads until a worker took them.
    pub queue_wait: Durations,
    /// Time that requests ran in PHP.
    pub php_time: Durations,
    /// Requests run again after a worker died.
    pub replays: u64,
    /// Seconds since the epoch at which the pool was started.
    pub started: u64,
    /// Number of accepted requests, including waiting ones.
    pub accepted: u64,
    /// Maximum number of requests that waited in the queue at once.
    pub most_queued: usize,
    /// Maximum number of workers that were busy at once.
    pub most_busy: usize,
    /// Number of times that more workers were wanted than allowed.
    pub limit_reached: u64,
    /// Number of slow requests, including those that the slow log's rate limit left out; `None` without a slow log.
    pub slow_requests: Option<u64>,
    /// Number of workers that ended, for any reason.
    pub restarts: u64,
    /// Reloads that succeeded.
    pub reloads: u64,
    /// In snapshot mode, sessions of connections opened at boot that were reset after a request.
    pub snapshot_sessions_reset: u64,
    /// In snapshot mode, workers replaced because a request did something that cannot be undone.
    pub snapshot_workers_replaced: u64,
    /// Failed requests by label.
    pub faults: BTreeMap<&'static str, u64>,
    /// Methods and paths whose requests kill their workers, each with the seconds for which it is still refused.
    pub refused: BTreeMap<String, f64>,
    /// The pool in classic mode with which a share of its responses is compared.
    pub compared_with: Option<String>,
    /// Number of comparisons by result.
    pub compared: BTreeMap<&'static str, u64>,
    /// Routes that run in that pool instead.
    pub demoted: Vec<DemotedRoute>,
    /// Routes that may be demoted too.
    pub suspected: Vec<SuspectedRoute>,
    /// Connection pools (`Howdah\Pool`) by name, summed over all workers.
    pub connection_pools: Vec<ConnectionPool>,
    pub sandbox: SandboxProfile,
    /// Additional needs that a learning sandbox has found.
    pub sandbox_needs: BTreeSet<Need>,
}

/// Snapshot of a worker's state.
#[derive(Debug, Clone, Serialize)]
pub struct WorkerStatus {
    /// Its number in the pool.
    pub worker: u32,
    /// Its process id.
    pub pid: u32,
    /// `starting`, `serving`, `draining` or `ending`.
    pub phase: &'static str,
    /// True while it runs a request.
    pub busy: bool,
    /// Number of requests that it has finished.
    pub requests: u64,
    /// Seconds since it was started.
    pub age_s: u64,
    /// Number of requests in its lane, running or waiting.
    pub in_flight: usize,
    /// The id of the request that has run longest.
    pub request: Option<String>,
    /// Its method and target.
    pub label: Option<String>,
    /// Running time, in milliseconds.
    pub running_ms: Option<u64>,
    /// The request that it runs, or else the one that ended last. Not part of the JSON.
    #[serde(skip)]
    pub last: Option<RequestReport>,
    /// Resident memory in bytes, including shared pages.
    pub memory: Option<u64>,
    /// Processor time used, in milliseconds.
    pub cpu_ms: Option<u64>,
    /// The generation it belongs to.
    pub generation: u64,
    /// In snapshot mode, the method that finds written pages: `pagemap_scan`, `pagemap` or `fork`.
    pub snapshot_pages: Option<&'static str>,
    /// In snapshot mode, the number of restores that had to search for written pages.
    pub snapshot_searches: Option<u32>,
    /// In snapshot mode, the number of pages that its last restore put back.
    pub snapshot_restored_pages: Option<u32>,
    /// In snapshot mode, the duration of its last restore, in microseconds.
    pub snapshot_restore_us: Option<f64>,
    /// Its connection pools (`Howdah\Pool`) by name.
    pub connection_pools: Vec<ConnectionPool>,
}

impl WorkerStatus {
    /// Placeholder for no worker.
    pub const NONE: Self = Self {
        worker: 0,
        pid: 0,
        phase: "",
        busy: false,
        requests: 0,
        age_s: 0,
        in_flight: 0,
        request: None,
        label: None,
        running_ms: None,
        last: None,
        memory: None,
        cpu_ms: None,
        generation: 0,
        snapshot_pages: None,
        snapshot_searches: None,
        snapshot_restored_pages: None,
        snapshot_restore_us: None,
        connection_pools: Vec::new(),
    };
}

/// Updates the gauges. Called when metrics are read, so that requests bear no cost.
pub(crate) fn update_gauges(shared: &Shared) {
    let scheduler = shared.lock();
    let workers = scheduler.lanes.iter().flatten();
    let (mut all, mut busy, mut requests) = (0, 0, 0);
    let mut processes = Vec::new();
    for lane in workers {
        all += 1;
        processes.push(lane.pid);
        busy += i64::from(!lane.in_flight.is_empty());
        requests += lane.in_flight.len();
    }
    shared.metrics().workers.set(all);
    shared.metrics().workers_busy.set(busy);
    shared.metrics().in_flight.set(requests as i64);
    shared.metrics().queue_length.set(scheduler.waiting() as i64);
    let demoted = shared.demotions.get().map_or(0, |demotions| demotions.count());
    shared.metrics().demoted_routes.set(demoted as i64);
    shared.metrics().set_connection_pools(scheduler.connection_pools());
    drop(scheduler);
    let used: Duration = processes.into_iter().filter_map(processor_time).sum();
    shared.metrics().processor_time.running(used.as_micros() as u64);
}

/// Collects the pool's current status.
pub(crate) fn of(shared: &Shared) -> PoolStatus {
    let about = shared.about();
    let demotions = shared.demotions.get();
    let scheduler = shared.lock();
    let workers = scheduler.lanes.iter().flatten().map(of_worker).collect();
    let counters = &shared.counters;
    let now = Instant::now();
    let mut status = PoolStatus {
        name: shared.name().to_owned(),
        mode: shared.config().settings.mode,
        concurrency: shared.config().worker().concurrency,
        php_version: about.php_version,
        generation: about.generation,
        snapshot_template: match about.boots {
            BootSource::Template { pid, .. } => Some(pid),
            _ => None,
        },
        snapshot_unshared: match about.boots {
            BootSource::Alone(why) => Some(why),
            BootSource::TemplateGone(_) => {
                Some("the template has ended; the next worker boots and forks another".to_owned())
            }
            _ => None,
        },
        snapshot_warmup_refused: about.warm_up.refused,
        snapshot_warmup: about.warm_up.findings,
        snapshot_not_learnt: shared.learned.reports(),
        down: scheduler.down.clone(),
        last_error: about.last_error,
        queued: scheduler.waiting(),
        queue_limit: scheduler.queue.limit(),
        oldest_wait_ms: scheduler.oldest_wait(now).map_or(0, |d| d.as_millis() as u64),
        overloaded: scheduler.queue.is_overloaded(now),
        manager: shared.config().manager(),
        workers_min: shared.config().min_workers(),
        workers_max: shared.config().max_workers(),
        workers_spare: scheduler.spare(),
        cold_starts: shared.config().is_on_demand().then(|| counters.cold_starts.status()),
        workers,
        requests: counters.requests.load(Ordering::Relaxed),
        php_us: shared.metrics().php_time.snapshot().sum_us,
        queue_wait: shared.metrics().queue_wait.snapshot().into(),
        php_time: shared.metrics().php_time.snapshot().into(),
        replays: shared.metrics().replays.get(),
        started: unix(shared.started),
        accepted: scheduler.tally.accepted,
        most_queued: scheduler.tally.most_waiting,
        most_busy: scheduler.tally.most_busy,
        limit_reached: counters.limit_reached.load(Ordering::Relaxed),
        slow_requests: shared.has_slow_log.then_some(scheduler.tally.slow),
        restarts: counters.restarts.load(Ordering::Relaxed),
        reloads: counters.reloads.load(Ordering::Relaxed),
        snapshot_sessions_reset: shared.metrics().sessions_reset.get(),
        snapshot_workers_replaced: shared.metrics().workers_unfit.get(),
        faults: shared.metrics().faults.all().into_iter().collect(),
        refused: scheduler
            .quarantine
            .refused(Instant::now())
            .into_iter()
            .map(|(path, left)| (path, left.as_secs_f64()))
            .collect(),
        compared_with: demotions.map(|demotions| demotions.classic().to_owned()),
        compared: shared.metrics().compared.all().into_iter().collect(),
        demoted: demotions.map(|demotions| demotions.demoted()).unwrap_or_default(),
        suspected: demotions.map(|demotions| demotions.suspected()).unwrap_or_default(),
        connection_pools: scheduler.connection_pools(),
        sandbox: shared.config().boot.sandbox.profile,
        sandbox_needs: about.sandbox_needs,
    };
    drop(scheduler);
    read_processes(&mut status.workers);
    status
}

/// Reads memory and processor time of each worker from the kernel. Called without the scheduler's lock.
fn read_processes(workers: &mut [WorkerStatus]) {
    let page = rustix::param::page_size() as u64;
    for worker in workers {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", worker.pid)).ok();
        let resident = read("statm").and_then(|statm| statm.split(' ').nth(1)?.parse::<u64>().ok());
        worker.memory = resident.map(|pages| pages * page);
        // The name, in parentheses, may hold anything; then come the state and further fields of proc_pid_stat(5).
        let ticks = read("stat").and_then(|stat| {
            let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
            Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
        });
        worker.cpu_ms = ticks.map(|ticks| ticks * 1000 / rustix::param::clock_ticks_per_second().max(1));
    }
}

/// A distribution of durations in buckets.
#[derive(Debug, Clone, Serialize)]
pub struct Durations {
    pub count: u64,
    pub sum_us: u64,
    /// Number of durations up to each bound of `howdah_observe::BOUNDS_US`.
    pub cumulative: Vec<u64>,
}

impl From<HistogramSnapshot> for Durations {
    fn from(snapshot: HistogramSnapshot) -> Self {
        Self { count: snapshot.count, sum_us: snapshot.sum_us, cumulative: snapshot.cumulative().to_vec() }
    }
}

fn unix(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn of_worker(lane: &Lane) -> WorkerStatus {
    let request = lane.in_flight.front();
    WorkerStatus {
        worker: lane.worker,
        pid: lane.pid,
        phase: lane.state.name(),
        busy: request.is_some(),
        in_flight: lane.in_flight.len(),
        requests: lane.requests,
        age_s: lane.started.elapsed().as_secs(),
        request: request.map(|c| c.pending.request.id.to_string()),
        label: request.map(|c| c.pending.request.label()),
        running_ms: request.map(|c| c.since.elapsed().as_millis() as u64),
        last: match request {
            Some(request) => {
                let running = &request.pending.request;
                let php_us = request.since.elapsed().as_micros() as u64;
                Some(RequestReport { php_us, ..last_request::report(&running.head, running.body.len()) })
            }
            None => lane.last.as_ref().map(LastRequest::report),
        },
        memory: None,
        cpu_ms: None,
        generation: lane.generation,
        snapshot_pages: lane.snapshot.map(|s| SNAPSHOT_WAYS.get(s.way as usize).copied().unwrap_or("unknown")),
        snapshot_searches: lane.snapshot.map(|s| s.searches),
        snapshot_restored_pages: lane.snapshot.map(|s| s.restored_pages),
        snapshot_restore_us: lane.snapshot.map(|s| f64::from(s.restore_ns) / 1000.0),
        connection_pools: connection_pools::of_worker(lane),
    }
}

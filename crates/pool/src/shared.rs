//! State shared by the parts of a pool: its settings, the scheduler under the pool's lock, its counters and status.

use crate::config::PoolConfig;
use crate::fault::{Fault, FaultKind};
use crate::generation_status::GenerationStatus;
use crate::io_threads::{self, IoThreads};
use crate::lane::precedence::Precedence;
use crate::learning::demotions::Demotions;
use crate::learning::learned::Learned;
use crate::process::event::Event;
use crate::queue::cold_starts::ColdStarts;
use crate::queue::quarantine;
use crate::queue::scheduler::Scheduler;
use crate::queue::shares::Shares;
use crate::queue::waiting;
use crate::request::pending::Pending;
use howdah_observe::PoolMetrics;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::mpsc;

/// Maximum wait of a request in overload, which begins once the oldest wait has exceeded this for `queue_timeout`. Half
/// of `queue_timeout` if that is less.
const QUEUE_TARGET: Duration = Duration::from_secs(2);

/// Increase of a worker's nice value while it runs a request that computes for long and short ones arrive.
const SLOW_NICE: u32 = 15;

/// State shared by `Pool`, its lane readers and its supervisor.
#[derive(Debug)]
pub(crate) struct Shared {
    config: PoolConfig,
    name: Arc<str>,
    scheduler: Mutex<Scheduler>,
    io_threads: IoThreads,
    events: mpsc::UnboundedSender<Event>,
    pub(crate) counters: Arc<Counters>,
    /// When the pool was started, or the first of its predecessors.
    pub(crate) started: SystemTime,
    metrics: Arc<PoolMetrics>,
    about: Mutex<GenerationStatus>,
    pub(crate) boot_log: BootLog,
    pub(crate) has_slow_log: bool,
    /// Paths learned from its traffic, and by its predecessors.
    pub(crate) learned: Arc<Learned>,
    /// The fallback pool, to which requests move that this one cannot run.
    fallback_pool: OnceLock<Weak<Self>>,
    is_fallback: AtomicBool,
    report: OnceLock<Report>,
    /// Demotions of its routes to another pool, if enabled.
    pub(crate) demotions: OnceLock<Arc<Demotions>>,
    /// Memory is short: idle workers are stopped early.
    memory_is_short: AtomicBool,
    /// The largest form that its PHP reads, in bytes; `u64::MAX` without a limit, or before the first boot.
    pub(crate) form_limit: AtomicU64,
}

/// Counters since the server's start that have no metric.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: AtomicU64,
    pub(crate) restarts: AtomicU64,
    pub(crate) reloads: AtomicU64,
    pub(crate) limit_reached: AtomicU64,
    pub(crate) cold_starts: ColdStarts,
}

/// Hashes of lines that booting workers logged since a worker was last ready: each attempt repeats them.
#[derive(Debug, Default)]
pub(crate) struct BootLog(Mutex<HashSet<u64>>);

/// Formats the pool's status for scripts.
struct Report(Box<dyn Fn(&Shared) -> String + Send + Sync>);

impl std::fmt::Debug for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Report")
    }
}

impl BootLog {
    /// Once this many different lines are known, further new ones are always logged.
    const MAX_LINES: usize = 256;

    pub(crate) fn is_new(&self, line: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        let mut seen = self.0.lock();
        if seen.len() < Self::MAX_LINES { seen.insert(hasher.finish()) } else { !seen.contains(&hasher.finish()) }
    }

    /// Forgets all lines, as a worker has booted: lines of the next failed boot are logged again.
    pub(crate) fn forget(&self) {
        self.0.lock().clear();
    }
}

impl Shared {
    pub(crate) fn new(
        config: PoolConfig,
        io_threads: IoThreads,
        metrics: Arc<PoolMetrics>,
        events: mpsc::UnboundedSender<Event>,
        before: Option<&Self>,
    ) -> Arc<Self> {
        let waiting = waiting::Limits {
            requests: config.settings.queue,
            patience: config.settings.queue_timeout,
            target: QUEUE_TARGET,
        };
        let has_slow_log = config.settings.slow_log_after.is_some();
        let shares = Shares::new(config.routes.clone());
        let mut precedence = Precedence::new(SLOW_NICE);
        precedence.measures_all = has_slow_log;
        let scheduler = Scheduler::new(waiting, shares, precedence, config.is_multiplexed(), io_threads.len());
        let name = Arc::from(config.name());
        let learned = before.map_or_else(|| Arc::new(Learned::of(&config)), |before| before.learned.clone());
        Arc::new(Self {
            config,
            name,
            scheduler: Mutex::new(scheduler),
            io_threads,
            events,
            counters: before.map(|before| before.counters.clone()).unwrap_or_default(),
            started: before.map_or_else(SystemTime::now, |before| before.started),
            metrics,
            about: Mutex::default(),
            boot_log: BootLog::default(),
            has_slow_log,
            learned,
            fallback_pool: OnceLock::new(),
            is_fallback: AtomicBool::new(false),
            report: OnceLock::new(),
            demotions: OnceLock::new(),
            memory_is_short: AtomicBool::default(),
            form_limit: AtomicU64::new(u64::MAX),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name, for callers that keep it.
    pub(crate) fn kept_name(&self) -> Arc<str> {
        self.name.clone()
    }

    pub(crate) const fn config(&self) -> &PoolConfig {
        &self.config
    }

    pub(crate) fn kept_metrics(&self) -> Arc<PoolMetrics> {
        self.metrics.clone()
    }

    pub(crate) fn metrics(&self) -> &PoolMetrics {
        &self.metrics
    }

    pub(crate) const fn io_threads(&self) -> &IoThreads {
        &self.io_threads
    }

    /// Never panics: each operation leaves the scheduler consistent.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock()
    }

    /// The pool's status as scripts get it.
    pub(crate) fn report(&self) -> Option<String> {
        self.report.get().map(|report| (report.0)(self))
    }

    pub(crate) fn reports_by(&self, report: impl Fn(&Self) -> String + Send + Sync + 'static) {
        // Called once, when the pool is created.
        let _ = self.report.set(Report(Box::new(report)));
    }

    pub(crate) fn yields_to(&self, other: &Arc<Self>) {
        // Called once, when both pools are created.
        let _ = self.fallback_pool.set(Arc::downgrade(other));
        other.is_fallback.store(true, Relaxed);
    }

    /// `true` if another pool hands requests to this one.
    pub(crate) fn is_fallback(&self) -> bool {
        self.is_fallback.load(Relaxed)
    }

    pub(crate) fn fallback_pool(&self) -> Option<Arc<Self>> {
        self.fallback_pool.get()?.upgrade()
    }

    /// Submits a request to the scheduler.
    pub(crate) fn submit(&self, pending: Box<Pending>, now: Instant) -> Result<(), (Fault, Box<Pending>)> {
        let mut scheduler = self.lock();
        if !scheduler.quarantine.is_empty() {
            let path = quarantine::key(&pending.request);
            if scheduler.quarantine.refuses(&path, now).is_some() {
                return Err((Fault::new(FaultKind::Quarantined), pending));
            }
        }
        let submitted = scheduler.submit(pending, io_threads::current(), now);
        if std::mem::take(&mut scheduler.supervisor_dozes) {
            self.notify_supervisor(Event::RequestsBegin);
        }
        if scheduler.wants_workers() {
            self.notify_supervisor(Event::RequestsWait);
        }
        submitted
    }

    pub(crate) fn memory_is_short(&self) -> bool {
        self.memory_is_short.load(Relaxed)
    }

    pub(crate) fn set_memory_short(&self, is_short: bool) {
        self.memory_is_short.store(is_short, Relaxed);
    }

    /// Runs a request that another pool cannot run, or fails it if this one cannot either.
    pub(crate) fn run_instead(&self, pending: Box<Pending>, now: Instant) {
        if let Err((fault, pending)) = self.submit(pending, now) {
            pending.sink.fail(fault);
        }
    }

    pub(crate) fn notify_supervisor(&self, event: Event) {
        // Without a supervisor the pool has stopped, and the event has no receiver.
        let _ = self.events.send(event);
    }

    pub(crate) fn about(&self) -> GenerationStatus {
        self.about.lock().clone()
    }

    pub(crate) fn update_about(&self, update: impl FnOnce(&mut GenerationStatus)) {
        update(&mut self.about.lock());
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Wakes the watches, which find the pool gone and end.
        let scheduler = self.lock();
        (0..self.io_threads.len()).for_each(|io_thread| scheduler.watch(io_thread).notify_one());
    }
}

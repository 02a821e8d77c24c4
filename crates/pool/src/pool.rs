//! `Pool`: the interface for fronts, and for the server that starts and stops pools.

use crate::config::PoolConfig;
use crate::fault::{Fault, FaultKind};
use crate::io_threads::IoThreads;
use crate::learning::demotions::Demotions;
use crate::learning::warm_up::EncodeWarmUp;
use crate::process::event::Event;
use crate::process::launcher::Launcher;
use crate::process::profile::{MergedSamples, Profile};
use crate::request::Request;
use crate::request::pending::Pending;
use crate::response::parts;
use crate::response::sink::Response;
use crate::response::sink::{self, ResponseBody};
use crate::response::stats::RequestStats;
use crate::shared::Shared;
use crate::status::{self, PoolStatus};
use crate::supervisor::Supervisor;
use crate::watch;
use howdah_budget::Charge;
use howdah_observe::{PoolMetrics, SlowLog};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Maximum time that a request waits to enter a full queue. It is part of its total wait.
const FULL_QUEUE_WAIT: Duration = Duration::from_secs(1);

/// A request that waits to enter a full queue; dropping this gives up its wait.
struct AdmissionWait<'a>(&'a Shared);

impl Drop for AdmissionWait<'_> {
    fn drop(&mut self) {
        self.0.lock().queue.admission.leave();
    }
}

/// A pool of PHP workers of one configuration.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    limits: Arc<parts::Limits>,
}

pub struct PoolParts {
    pub config: PoolConfig,
    pub io_threads: IoThreads,
    pub metrics: Arc<PoolMetrics>,
    pub launcher: Launcher,
    pub encode_warm_up: EncodeWarmUp,
    pub slow_log: Option<Arc<SlowLog>>,
}

impl PoolParts {
    /// The pool, which continues the counters of `before`, and its supervisor, which does not run yet.
    fn supervised(self, before: Option<&Pool>) -> (Arc<Pool>, Supervisor) {
        let (sender, events) = mpsc::unbounded_channel();
        let pool = Pool::following(self.config, self.io_threads, self.metrics, sender.clone(), before);
        let shared = pool.shared.clone();
        let supervisor = Supervisor::new(shared, events, sender, self.launcher, self.encode_warm_up, self.slow_log);
        (pool, supervisor)
    }
}

/// Starts a pool. Its supervisor runs on the calling runtime until the pool is stopped.
#[must_use]
pub fn start_pool(parts: PoolParts) -> Arc<Pool> {
    let (pool, supervisor) = parts.supervised(None);
    tokio::spawn(supervisor.run());
    pool
}

/// Creates a pool that starts no process until it is reloaded; the reload returns once it serves, or the reason why it
/// cannot. The pool continues the counters of `before`, the pool that it replaces.
///
/// Its supervisor runs on the calling runtime until the pool is stopped.
#[must_use]
pub fn prepare_pool(parts: PoolParts, before: Option<&Pool>) -> Arc<Pool> {
    let (pool, supervisor) = parts.supervised(before);
    let workers = before.map_or(0, |before| before.shared.lock().serving());
    let generation = before.map_or(0, |before| before.shared.about().generation);
    tokio::spawn(supervisor.waits_for_order(workers, generation).run());
    pool
}

impl Pool {
    /// Creates a pool without a supervisor; its events go to the receiver of `events`. It continues the counters of
    /// `before`.
    pub(crate) fn following(
        config: PoolConfig,
        io_threads: IoThreads,
        metrics: Arc<PoolMetrics>,
        events: mpsc::UnboundedSender<Event>,
        before: Option<&Self>,
    ) -> Arc<Self> {
        let limits = Arc::new(parts::Limits {
            memory: config.response_memory,
            temp_dir: config.temp_dir.clone(),
            budgets: config.budgets,
        });
        let shared = Shared::new(config, io_threads, metrics, events, before.map(|before| &*before.shared));
        watch::start(&shared);
        Arc::new(Self { shared, limits })
    }

    #[cfg(test)]
    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// Sets the function that formats the pool's status for scripts (`fpm_get_status()`).
    pub fn reports_by(&self, report: fn(&PoolStatus) -> String) {
        self.shared.reports_by(move |shared| report(&status::of(shared)));
    }

    pub fn config(&self) -> &PoolConfig {
        self.shared.config()
    }

    /// Runs a request: queues it, sends it to a worker, and returns as soon as the response's head is complete.
    /// If the future or the response's body is dropped, the worker is notified as described at `ResponseBody`.
    ///
    /// # Errors
    /// A `Fault`; then no part of a response exists.
    pub async fn run(&self, request: Box<Request>) -> Result<Response, Fault> {
        let stats = RequestStats { pool: self.shared.kept_name(), ..RequestStats::default() };
        // Held until the response begins, as a queued request uses memory too.
        let mut charge = Charge::new(self.limits.budgets.memory, request.share.clone());
        if !charge.grow(request.cost()) {
            let fault = Fault::with(FaultKind::OverBudget, "no room for the request in http.memory");
            self.shared.metrics().faults.inc(fault.kind.label());
            return Err(fault);
        }
        let target = self.learns_from(&request);
        let (sink, receiver) = sink::new(self.limits.clone(), stats, request.share.clone());
        let pending = Box::new(Pending::new(request, sink));
        if let Err(fault) = self.submit(pending).await {
            self.shared.metrics().faults.inc(fault.kind.label());
            return Err(fault);
        }
        let mut receiver: Option<ResponseBody> = Some(receiver);
        let result = std::future::poll_fn(|cx| ResponseBody::poll_response(&mut receiver, cx)).await;
        match &result {
            Err(fault) => self.shared.metrics().faults.inc(fault.kind.label()),
            Ok(response) => self.learn(target, response),
        }
        result
    }

    /// Returns the request's target if its response should be passed to `learn`, for the warm-up or the names of
    /// routes.
    pub fn learns_from(&self, request: &Request) -> Option<Vec<u8>> {
        let learns = self.config().learns() || self.demotions().is_some();
        (learns && request.is_get && self.shared.learned.wants_next()).then(|| request.target().to_vec())
    }

    /// Learns from the response to a request for `target`, from this pool or the one in classic mode.
    pub fn learn(&self, target: Option<Vec<u8>>, response: &Response) {
        let Some(target) = target else { return };
        if let (Some(demotions), Some(route)) = (self.demotions(), &response.route) {
            demotions.note_route(&target, route);
        }
        if self.config().learns() && response.status == 200 {
            self.shared.learned.note(&target, response.route.as_deref());
        }
    }

    /// Submits a request to the scheduler. If the queue is full, it waits for its turn: an immediate refusal would only
    /// make the client retry at once.
    async fn submit(&self, pending: Box<Pending>) -> Result<(), Fault> {
        let mut now = pending.request.complete;
        let (mut fault, mut pending) = match self.shared.submit(pending, now) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        while fault.kind == FaultKind::QueueFull
            && !pending.sink.is_gone()
            && self.wait_for_turn(pending.entered, pending.limits.queue).await
        {
            pending.has_turn = true;
            now = Instant::now();
            (fault, pending) = match self.shared.submit(pending, now) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
        }
        // The pool cannot start workers, or requests like this one kill them.
        if matches!(fault.kind, FaultKind::PoolDown | FaultKind::Quarantined)
            && let Some(other) = self.shared.fallback_pool()
        {
            return other.submit(pending, now).map_err(|(fault, _)| fault);
        }
        Err(fault)
    }

    /// Waits for a turn to enter the full queue. Returns `false` once the request, which arrived at `came`, has waited
    /// for `FULL_QUEUE_WAIT` or as long as the queue allows for this `patience`.
    async fn wait_for_turn(&self, came: Instant, patience: Option<Duration>) -> bool {
        let now = Instant::now();
        let (turns, left) = {
            let mut scheduler = self.shared.lock();
            let limit = FULL_QUEUE_WAIT.min(scheduler.queue.allowed_waits(now).of(patience));
            let left = limit.saturating_sub(now.saturating_duration_since(came));
            if left.is_zero() {
                return false;
            }
            if !scheduler.queue.is_full() {
                return true;
            }
            (scheduler.queue.admission.enter(), left)
        };
        let waiting = AdmissionWait(&self.shared);
        match tokio::time::timeout(left, turns.acquire()).await {
            Ok(Ok(turn)) => {
                turn.forget();
                std::mem::forget(waiting);
                true
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Waits until the queue has a place, for `FULL_QUEUE_WAIT` at most, and returns the time waited. Called before a
    /// request's body is read: the body of a request that cannot run soon stays with the client.
    pub async fn room(&self) -> Duration {
        if !self.shared.lock().queue.is_full() {
            return Duration::ZERO;
        }
        let came = Instant::now();
        self.wait_for_turn(came, None).await;
        came.elapsed()
    }

    /// The largest form that its PHP reads, in bytes: `post_max_size` at the last boot. `None` if PHP has no limit, or
    /// before the first boot.
    pub fn form_limit(&self) -> Option<u64> {
        Some(self.shared.form_limit.load(Ordering::Relaxed)).filter(|limit| *limit < u64::MAX)
    }

    /// True while at least one worker takes requests, or, in an on-demand pool whose PHP has booted, could be started.
    pub fn can_serve(&self) -> bool {
        let about = self.shared.about();
        let could = self.shared.config().is_on_demand() && about.php_version.is_some() && about.last_error.is_none();
        could || self.serves()
    }

    /// Sets the fallback pool, which serves whenever this one does not: requests that wait here for a worker move
    /// there.
    pub fn yields_to(&self, other: &Self) {
        self.shared.yields_to(&other.shared);
    }

    /// Lets routes of this pool be demoted to `classic`. Called once, before the first request.
    pub fn demotes_to(&self, classic: &Self) -> Arc<Demotions> {
        let (name, classic) = (self.shared.kept_name(), classic.shared.kept_name());
        let demotions = || Arc::new(Demotions::new(name, classic, self.shared.kept_metrics()));
        self.shared.demotions.get_or_init(demotions).clone()
    }

    /// The demotions, if routes of this pool may be demoted.
    pub fn demotions(&self) -> Option<&Arc<Demotions>> {
        self.shared.demotions.get()
    }

    /// `true` if a new request would not wait for a busy worker or delay another request. An on-demand pool may start a
    /// worker for it.
    pub fn is_idle(&self) -> bool {
        let scheduler = self.shared.lock();
        let may_start = self.config().is_on_demand() && scheduler.lanes.iter().flatten().next().is_none();
        let is_free = scheduler.spare() > 0 || (may_start && !self.shared.memory_is_short());
        scheduler.waiting() == 0 && is_free
    }

    /// True while a worker serves.
    pub fn serves(&self) -> bool {
        self.shared.lock().serves()
    }

    /// Starts new workers from a fresh boot of PHP and drains the old ones. Returns when the new workers serve.
    ///
    /// # Errors
    /// The reason why the new workers did not start. The old ones then stay, unless the pool has a fallback, which then
    /// serves instead.
    pub async fn reload(&self) -> Result<(), String> {
        let (waiter, reloaded) = oneshot::channel();
        self.shared.notify_supervisor(Event::Reload(waiter));
        reloaded.await.unwrap_or_else(|_| Err("the pool has stopped".into()))
    }

    /// Takes over from `before`, which gets no further requests: continues its counters that have no metric.
    pub fn take_over(&self, before: &Self) {
        let (tally, connections) = {
            let scheduler = before.shared.lock();
            (scheduler.tally, scheduler.connection_pools())
        };
        let mut scheduler = self.shared.lock();
        scheduler.tally.add(&tally);
        connections.into_iter().for_each(|pool| pool.add_to_ended(&mut scheduler.ended_connection_pools));
        drop(scheduler);
        let needs = before.shared.about().sandbox_needs;
        self.shared.update_about(|about| about.sandbox_needs.extend(needs));
    }

    /// Drains a worker and replaces it. Returns false if no worker with this number serves.
    #[must_use]
    pub fn drain_worker(&self, worker: u32) -> bool {
        let mut scheduler = self.shared.lock();
        let index = worker as usize;
        let is_there = scheduler.lanes.get(index).and_then(Option::as_ref).is_some_and(|lane| lane.state.is_serving());
        if is_there {
            scheduler.drain_lane(index, Instant::now());
            drop(scheduler);
            self.shared.notify_supervisor(Event::WorkerRetires);
        }
        is_there
    }

    /// Samples the PHP stacks of all workers, `rate` times a second for `length`. The workers are not interrupted.
    ///
    /// # Errors
    /// The reason why the profile was not started, for the operator.
    pub async fn profile(&self, rate: u32, length: Duration) -> Result<Profile, String> {
        let (taker, mut samples) = mpsc::unbounded_channel();
        let (begun, started) = oneshot::channel();
        self.shared.notify_supervisor(Event::Profile { rate, length, taker, begun });
        started.await.unwrap_or_else(|_| Err("the pool has stopped".into()))?;
        let mut sum = MergedSamples::default();
        while let Some(seen) = samples.recv().await {
            sum.add(seen);
        }
        Ok(sum.into_profile(self.name(), rate, length))
    }

    /// Stops the pool: it takes no new requests, and running ones may finish within `grace`. Returns when its workers
    /// and its current zygote have ended.
    pub async fn stop(&self, grace: Duration) {
        let (done, stopped) = oneshot::channel();
        self.shared.notify_supervisor(Event::Stop { grace, done });
        let _ = stopped.await;
    }

    /// Sets the flag that memory is short on this machine. While it is, idle workers are stopped one by one down to the
    /// pool's minimum, and `spare_workers` are not kept ready.
    pub fn set_memory_short(&self, is_short: bool) {
        self.shared.set_memory_short(is_short);
    }

    /// Updates the gauges. Called when metrics are read, so that requests bear no cost.
    pub fn update_gauges(&self) {
        status::update_gauges(&self.shared);
    }

    pub fn status(&self) -> PoolStatus {
        status::of(&self.shared)
    }
}

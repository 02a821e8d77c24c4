//! `Pool`: the door for fronts, and what lane readers and the supervisor change under its lock.

use crate::call::{Call, CallStats, Reply, RequestId, TakesInterim};
use crate::config::PoolConfig;
use crate::fault::{Fault, FaultKind};
use crate::lane::{Job, KillReason, Lane, Part, Phase, SnapshotWork};
use crate::lane_reader::Current;
use crate::queue;
use crate::reply_sink::{self, Budget, Receiver};
use crate::scheduler::Scheduler;
use crate::shard::{self, Shards};
use crate::shares::Shares;
use crate::status::Counters;
use crate::supervisor::Event;
use crate::watch;
use howdah_observe::PoolMetrics;
use howdah_transport::zygote_protocol::Need;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long a call asks a full queue for a place before it is refused, and how often.
const FULL_QUEUE_WAIT: Duration = Duration::from_secs(1);
const FULL_QUEUE_LOOK: Duration = Duration::from_millis(200);
/// How often a call is run again after a worker died under it.
const MAX_REPLAYS: u32 = 2;
/// How often a call may be given back, beside twice by each worker. Workers that booted after its arrival keep it.
const MAX_GIVEN_BACK: usize = 10;
/// How often, if it was the code of other calls that killed the worker.
const MAX_REPLAYS_OF_BYSTANDERS: u32 = 8;

/// A pool of PHP workers of one configuration.
#[derive(Debug)]
pub struct Pool {
    config: PoolConfig,
    name: Arc<str>,
    scheduler: Mutex<Scheduler>,
    budget: Arc<Budget>,
    shards: Shards,
    events: mpsc::UnboundedSender<Event>,
    pub(crate) counters: Counters,
    metrics: Arc<PoolMetrics>,
    about: Mutex<About>,
}

/// What the supervisor knows of the running generation.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) php_version: Option<String>,
    pub(crate) generation: u64,
    /// Why the last start failed, while none has succeeded since.
    pub(crate) last_error: Option<String>,
    pub(crate) boots: Boots,
    /// What a sandbox that learns has found, since the server's start.
    pub(crate) sandbox_needs: BTreeSet<Need>,
}

/// Where a snapshot pool's workers get the booted application from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Boots {
    /// Not known (yet): no worker has booted, or the pool takes no snapshots.
    #[default]
    Unknown,
    /// Workers are forked from this process.
    Template {
        pid: u32,
        /// When its boot began, microseconds since the epoch.
        began_us: u64,
    },
    /// The template has ended; the next worker boots and makes another.
    TemplateGone(u32),
    /// Each worker boots on its own, for this reason.
    Alone(String),
}

impl Boots {
    /// The template's process, which may have ended.
    pub(crate) const fn template(&self) -> Option<u32> {
        match self {
            Self::Template { pid, .. } | Self::TemplateGone(pid) => Some(*pid),
            Self::Unknown | Self::Alone(_) => None,
        }
    }
}

impl Pool {
    pub(crate) fn new(
        config: PoolConfig,
        shards: Shards,
        metrics: Arc<PoolMetrics>,
        events: mpsc::UnboundedSender<Event>,
    ) -> Arc<Self> {
        let limits = queue::Limits { calls: config.queue, patience: config.queue_timeout, target: config.queue_target };
        let shares = Shares::new(config.routes.clone(), config.slow_after, config.slow_workers);
        let scheduler = Scheduler::new(limits, shares, config.several(), shards.len());
        let watches: Vec<_> = (0..shards.len()).map(|io_thread| scheduler.watch(io_thread)).collect();
        let budget = Arc::new(Budget { memory: config.reply_memory, temp_dir: config.temp_dir.clone() });
        let name = Arc::from(config.name.as_str());
        let pool = Arc::new(Self {
            config,
            name,
            scheduler: Mutex::new(scheduler),
            budget,
            shards,
            events,
            counters: Counters::default(),
            metrics,
            about: Mutex::default(),
        });
        for (io_thread, notify) in watches.into_iter().enumerate() {
            pool.shards.runtime(io_thread).spawn(watch::run(Arc::downgrade(&pool), io_thread, notify));
        }
        pool
    }

    /// The pool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the pool was started with.
    #[must_use]
    pub fn config(&self) -> &PoolConfig {
        &self.config
    }

    pub(crate) fn metrics(&self) -> &PoolMetrics {
        &self.metrics
    }

    pub(crate) fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Runs a call: queues it, gives it to a worker and returns as soon as the head of the answer is there. Dropping the
    /// future or the reply's body tells the worker that the client has gone.
    ///
    /// # Errors
    /// A `Fault`; nothing of an answer exists then.
    pub async fn call(&self, call: Call) -> Result<Reply, Fault> {
        let stats = CallStats { pool: self.name.clone(), ..CallStats::default() };
        let (sink, receiver) = reply_sink::new(self.budget.clone(), stats);
        let job = Box::new(Job::new(call, sink));
        if let Err(fault) = self.submit(job).await {
            self.metrics.faults.inc(fault.kind.label());
            return Err(fault);
        }
        let mut receiver: Option<Receiver> = Some(receiver);
        let result = std::future::poll_fn(|cx| Receiver::poll_reply(&mut receiver, cx)).await;
        if let Err(fault) = &result {
            self.metrics.faults.inc(fault.kind.label());
        }
        result
    }

    /// Hands a call to the scheduler. A full queue is asked again for a while: the client's connection is not read
    /// meanwhile, and a refusal that comes at once would only bring the client back at once.
    async fn submit(&self, mut job: Box<Job>) -> Result<(), Fault> {
        let until = Instant::now() + FULL_QUEUE_WAIT.min(self.config.queue_timeout);
        loop {
            job = match self.submit_now(job) {
                Ok(()) => return Ok(()),
                Err((fault, job)) => {
                    if fault.kind != FaultKind::QueueFull || Instant::now() >= until || job.sink.is_gone() {
                        return Err(fault);
                    }
                    job
                }
            };
            tokio::time::sleep(FULL_QUEUE_LOOK).await;
            // What it waited here does not count against those that wait in the queue.
            job.entered = Instant::now();
        }
    }

    fn submit_now(&self, job: Box<Job>) -> Result<(), (Fault, Box<Job>)> {
        let mut scheduler = self.lock();
        let submitted = scheduler.submit(job, shard::current());
        if scheduler.wants_workers() {
            self.tell_supervisor(Event::CallsWait);
        }
        submitted
    }

    /// Returns when the queue has a place, or has had none for a while. Asked before a request's body is read: what
    /// cannot be run soon stays with the client.
    pub async fn room(&self) {
        let until = Instant::now() + FULL_QUEUE_WAIT.min(self.config.queue_timeout);
        while self.lock().queue.is_full() && Instant::now() < until {
            tokio::time::sleep(FULL_QUEUE_LOOK).await;
        }
    }

    /// True while at least one worker takes calls.
    #[must_use]
    pub fn can_serve(&self) -> bool {
        self.lock().lanes.iter().flatten().any(|lane| lane.phase == Phase::Serving)
    }

    /// Never panics: each operation leaves the scheduler consistent.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell_supervisor(&self, event: Event) {
        // Without a supervisor the pool has stopped, and nobody needs to know.
        let _ = self.events.send(event);
    }

    pub(crate) fn about(&self) -> About {
        self.about.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn update_about(&self, update: impl FnOnce(&mut About)) {
        update(&mut self.about.lock().unwrap_or_else(PoisonError::into_inner));
    }

    // --- what a lane's reader does --------------------------------------------------------------------------------

    pub(crate) fn worker_ready(&self, index: usize) {
        let mut scheduler = self.lock();
        let Some(lane) = scheduler.lanes.get_mut(index).and_then(Option::as_mut) else { return };
        if lane.phase != Phase::Starting {
            return;
        }
        lane.phase = Phase::Serving;
        lane.was_ready = true;
        let (generation, worker) = (lane.generation, lane.worker);
        scheduler.down = None;
        scheduler.refill(index, Instant::now());
        drop(scheduler);
        self.update_about(|about| about.last_error = None);
        self.tell_supervisor(Event::WorkerReady { worker, generation });
    }

    /// The call that an answer with this number is for.
    pub(crate) fn begin_call(&self, index: usize, number: u64) -> Option<Current> {
        let mut scheduler = self.lock();
        let lane = scheduler.lanes.get_mut(index)?.as_mut()?;
        if lane.phase == Phase::Ending {
            return None;
        }
        let (worker, pid) = (lane.worker, lane.pid);
        let call = lane.answered(number)?;
        call.answering = true;
        let job = &call.job;
        job.sink.update_stats(|stats| {
            stats.worker = worker;
            stats.pid = pid;
        });
        Some(Current::new(number, job.sink.clone(), job.call.received))
    }

    /// A call is done, at the time `now`.
    pub(crate) fn call_done(
        &self,
        index: usize,
        number: u64,
        now: Instant,
        php_us: u64,
        retire: bool,
        snapshot: Option<SnapshotWork>,
    ) {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        self.metrics.php_time_us.add(php_us);
        let mut scheduler = self.lock();
        scheduler.call_done(index, number, now, php_us, snapshot, retire);
        let soon = scheduler
            .lanes
            .get(index)
            .and_then(Option::as_ref)
            .is_some_and(|lane| self.config.retires_next(lane.calls));
        drop(scheduler);
        if retire || soon {
            self.tell_supervisor(Event::WorkerRetires);
        }
    }

    /// The worker's boot has become outdated: the call goes to another one, this one ends. An error means that it broke
    /// the rules.
    pub(crate) fn call_given_back(&self, index: usize, number: u64, boot_began_us: u64) -> Result<(), String> {
        let mut scheduler = self.lock();
        let Some(lane) = scheduler.lanes.get_mut(index).and_then(Option::as_mut) else { return Ok(()) };
        if lane.phase == Phase::Ending {
            return Ok(());
        }
        let (home, generation) = (lane.home, lane.generation);
        let is_unanswered = !lane.several && lane.answered(number).is_some_and(|call| !call.answering);
        let call = if is_unanswered { lane.in_flight.remove(number) } else { None };
        let Some(mut call) = call else { return Err("a call given back that is not to be run".into()) };
        // Those behind it come before it in the queue's head, so they go there first.
        scheduler.drain_lane(index, Instant::now());
        call.job.given_back += 1;
        if call.job.given_back > self.config.max_workers * 2 + MAX_GIVEN_BACK {
            call.job.sink.fail(Fault::with(FaultKind::WorkerBroken, "every worker gives the call back"));
        } else if !call.job.sink.is_gone() {
            scheduler.resubmit(call.job, home, Instant::now());
        }
        drop(scheduler);
        self.tell_supervisor(Event::BootOutdated { generation, boot_began_us });
        Ok(())
    }

    pub(crate) fn abort_call(&self, index: usize, number: u64) {
        if let Some(Some(lane)) = self.lock().lanes.get_mut(index) {
            lane.abort(number);
        }
    }

    /// Id and label of a call for the log.
    pub(crate) fn call_name(&self, index: usize, number: u64) -> Option<(String, String)> {
        let scheduler = self.lock();
        let lane = scheduler.lanes.get(index)?.as_ref()?;
        let call = lane.in_flight.get(number)?;
        Some((call.job.call.id.to_string(), call.job.call.label()))
    }

    /// Who sends the interim answers of a running call.
    pub(crate) fn interim_front(&self, index: usize, number: u64) -> Option<Arc<dyn TakesInterim>> {
        let scheduler = self.lock();
        let lane = scheduler.lanes.get(index)?.as_ref()?;
        lane.in_flight.get(number)?.job.call.interim.clone()
    }

    /// Room may have been made in the lane's request ring.
    pub(crate) fn room_made(&self, index: usize) {
        self.lock().room_made(index);
    }

    pub(crate) fn kill_lane(&self, index: usize, reason: KillReason) {
        if let Some(Some(lane)) = self.lock().lanes.get_mut(index) {
            lane.kill(reason);
        }
    }

    pub(crate) fn remove_lane(&self, index: usize) -> Option<Lane> {
        self.lock().remove_lane(index)
    }

    /// Decides about a call whose worker has died: run it again, or fail it.
    pub(crate) fn rescue(&self, mut job: Box<Job>, part: Part, pid: u32, reason: Option<&KillReason>, home: usize) {
        if job.sink.is_gone() {
            return;
        }
        if part == Part::NotBegun {
            self.lock().resubmit(job, home, Instant::now());
            return;
        }
        let RequestId(id) = job.call.id;
        let label = job.call.label();
        let fault = match reason {
            Some(KillReason::Deadline) => {
                job.sink.fail(Fault::new(FaultKind::Deadline));
                return;
            }
            Some(KillReason::Broken(what)) => Fault::with(FaultKind::WorkerBroken, format!("worker {pid}: {what}")),
            Some(KillReason::Stopping) => Fault::new(FaultKind::Stopping),
            Some(KillReason::Stuck) => {
                Fault::with(FaultKind::WorkerDied, format!("worker {pid} was killed: another call did not end"))
            }
            Some(KillReason::BootTimeout) | None => {
                Fault::with(FaultKind::WorkerDied, format!("worker {pid} died during the call"))
            }
        };
        let allowed = job.killed < MAX_REPLAYS && job.sink.stats().replays < MAX_REPLAYS_OF_BYSTANDERS;
        let again = job.call.repeatable && !job.sink.is_delivered() && allowed;
        if again {
            tracing::warn!(pool = self.name(), pid, request = %format!("{id:016x}"), label, "worker died; the call is run again");
            self.metrics.replays.inc();
            job.sink.reset();
            job.killed += u32::from(part == Part::Suspect);
            // It waits anew: the time it has run does not count as waiting.
            job.entered = Instant::now();
            self.lock().resubmit(job, home, Instant::now());
            return;
        }
        tracing::error!(pool = self.name(), pid, request = %format!("{id:016x}"), label, "{fault}");
        job.sink.fail(fault);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The watches find the pool gone, and end.
        let scheduler = self.lock();
        (0..self.shards.len()).for_each(|io_thread| scheduler.watch(io_thread).notify_one());
    }
}

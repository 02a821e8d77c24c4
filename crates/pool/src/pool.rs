//! `Pool`: the door for fronts, and what lane readers and the supervisor change under its lock.

use crate::call::{Call, CallStats, Reply, TakesInterim};
use crate::config::PoolConfig;
use crate::estimate::Took;
use crate::fault::{Fault, FaultKind};
use crate::lane::{BodyToSend, Job, KillReason, Lane, Phase, SnapshotWork};
use crate::lane_reader::Current;
use crate::panics;
use crate::precedence::Precedence;
use crate::quarantine;
use crate::queue;
use crate::reply_parts;
use crate::reply_sink::{self, Receiver, Sink};
use crate::scheduler::Scheduler;
use crate::shard::{self, Shards};
use crate::shares::Shares;
use crate::status::Counters;
use crate::supervisor::Event;
use crate::warm_up::WarmUp;
use crate::watch;
use howdah_budget::Charge;
use howdah_observe::PoolMetrics;
use howdah_transport::Mode;
use howdah_transport::control_socket::ControlSocket;
use howdah_transport::zygote_protocol::Need;
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// How long a call asks a full queue for a place before it is refused, and how often.
const FULL_QUEUE_WAIT: Duration = Duration::from_secs(1);
const FULL_QUEUE_LOOK: Duration = Duration::from_millis(200);
/// How often a call may be given back, beside once by each worker. Workers that booted after its arrival keep it.
const MAX_GIVEN_BACK: usize = 2;

/// A pool of PHP workers of one configuration.
#[derive(Debug)]
pub struct Pool {
    config: PoolConfig,
    name: Arc<str>,
    scheduler: Mutex<Scheduler>,
    limits: Arc<reply_parts::Limits>,
    shards: Shards,
    events: mpsc::UnboundedSender<Event>,
    pub(crate) counters: Counters,
    metrics: Arc<PoolMetrics>,
    about: Mutex<About>,
    boot_log: BootLog,
}

/// What workers have logged while they booted, since one was last ready: each attempt says the same again.
#[derive(Debug, Default)]
struct BootLog(Mutex<HashSet<u64>>);

impl BootLog {
    /// More different lines than these are all logged.
    const MOST: usize = 256;

    fn is_new(&self, line: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() < Self::MOST { seen.insert(hasher.finish()) } else { !seen.contains(&hasher.finish()) }
    }
}

/// A body that a worker has asked for.
pub(crate) struct WantedBody {
    pub(crate) body: std::io::Result<BodyToSend>,
    pub(crate) control: Arc<ControlSocket>,
    /// Of its call.
    pub(crate) sink: Sink,
}

/// What the supervisor knows of the running generation.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) php_version: Option<String>,
    pub(crate) generation: u64,
    /// Why the last start failed, while none has succeeded since.
    pub(crate) last_error: Option<String>,
    pub(crate) boots: Boots,
    pub(crate) warm_up: WarmUp,
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
        let waiting =
            queue::Limits { calls: config.queue, patience: config.queue_timeout, target: config.queue_target };
        let shares = Shares::new(config.routes.clone(), config.slow_after, config.slow_workers);
        let precedence = Precedence::new(config.slow_nice);
        let scheduler = Scheduler::new(waiting, shares, precedence, config.several(), shards.len());
        let watches: Vec<_> = (0..shards.len()).map(|io_thread| scheduler.watch(io_thread)).collect();
        let limits = Arc::new(reply_parts::Limits {
            memory: config.reply_memory,
            temp_dir: config.temp_dir.clone(),
            budgets: config.budgets,
        });
        let name = Arc::from(config.name());
        let pool = Arc::new(Self {
            config,
            name,
            scheduler: Mutex::new(scheduler),
            limits,
            shards,
            events,
            counters: Counters::default(),
            metrics,
            about: Mutex::default(),
            boot_log: BootLog::default(),
        });
        for (io_thread, notify) in watches.into_iter().enumerate() {
            let looked_after = Arc::downgrade(&pool);
            pool.shards.runtime(io_thread).spawn(async move {
                let watch = || watch::run(looked_after.clone(), io_thread, notify.clone());
                panics::kept_running("the watch over waiting calls", watch).await;
            });
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
        // Held until the answer begins: what waits in the queue costs memory too.
        let mut charge = Charge::new(self.limits.budgets.memory, call.share.clone());
        if !charge.grow(call.cost()) {
            let fault = Fault::with(FaultKind::OverBudget, "there is no room for the call");
            self.metrics.faults.inc(fault.kind.label());
            return Err(fault);
        }
        let (sink, receiver) = reply_sink::new(self.limits.clone(), stats, call.share.clone());
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
        if !scheduler.quarantine.is_empty() {
            let path = quarantine::key(job.call.head.method(), job.call.head.uri());
            if scheduler.quarantine.refuses(&path, job.entered).is_some() {
                return Err((Fault::new(FaultKind::Quarantined), job));
            }
        }
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
        took: Took,
        retire: bool,
        snapshot: Option<SnapshotWork>,
    ) {
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        self.metrics.php_time_us.add(took.php);
        let mut scheduler = self.lock();
        scheduler.call_done(index, number, now, took, snapshot, retire);
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
        let may = self.config.worker().mode == Mode::Snapshot && !lane.several;
        let is_unanswered = may && lane.answered(number).is_some_and(|call| !call.answering);
        let call = if is_unanswered { lane.in_flight.remove(number) } else { None };
        let Some(mut call) = call else { return Err("a call given back that is not to be run".into()) };
        // Those behind it come before it in the queue's head, so they go there first.
        scheduler.drain_lane(index, Instant::now());
        call.job.given_back += 1;
        if call.job.given_back > self.config.max_workers + MAX_GIVEN_BACK {
            call.job.sink.fail(Fault::with(FaultKind::WorkerBroken, "every worker gives the call back"));
        } else if !call.job.sink.is_gone() {
            self.metrics.resubmitted.inc("given_back");
            scheduler.resubmit(call.job, home, Instant::now());
        }
        drop(scheduler);
        self.tell_supervisor(Event::BootOutdated { generation, boot_began_us });
        Ok(())
    }

    /// The body of a call, for which its worker asks, and the socket that it goes to. `None`: the worker is being killed. An
    /// error means that it broke the rules.
    pub(crate) fn body_wanted(&self, index: usize, number: u64) -> Result<Option<WantedBody>, &'static str> {
        let mut scheduler = self.lock();
        let Some(lane) = scheduler.lanes.get_mut(index).and_then(Option::as_mut) else { return Ok(None) };
        if lane.phase == Phase::Ending {
            return Ok(None);
        }
        let body = lane.give_body(number)?;
        let sink = lane.answered(number).map(|call| call.job.sink.clone());
        Ok(sink.map(|sink| WantedBody { body, control: lane.control.clone(), sink }))
    }

    /// A body was sent over a lane's control socket.
    pub(crate) fn body_sent(&self, index: usize) {
        if let Some(Some(lane)) = self.lock().lanes.get(index) {
            lane.body_sent();
        }
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

    /// Whether a worker's line, which belongs to no call, is worth logging: each failed boot would repeat its own.
    pub(crate) fn is_news(&self, index: usize, line: &str) -> bool {
        let ready = self.lock().lanes.get(index).and_then(Option::as_ref).is_none_or(|lane| lane.was_ready);
        ready || self.boot_log.is_new(line)
    }

    /// A worker has booted: what the next one that does not says is news.
    pub(crate) fn forget_boot_log(&self) {
        self.boot_log.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Who sends the interim answers of a running call.
    pub(crate) fn interim_front(&self, index: usize, number: u64) -> Option<Arc<dyn TakesInterim>> {
        let scheduler = self.lock();
        let lane = scheduler.lanes.get(index)?.as_ref()?;
        lane.in_flight.get(number)?.job.call.interim.clone()
    }

    /// True if a lane holds calls.
    pub(crate) fn has_calls(&self, index: usize) -> bool {
        self.lock().lanes.get(index).and_then(Option::as_ref).is_some_and(|lane| !lane.in_flight.is_empty())
    }

    /// A worker has died that was not to end.
    pub(crate) fn note_death(&self) {
        self.lock().quarantine.note_death(Instant::now());
    }

    /// Room may have been made in the lane's request ring.
    pub(crate) fn room_made(&self, index: usize) {
        self.lock().room_made(index);
    }

    /// Kills the worker with this process id, if it still has its place.
    pub(crate) fn kill_lane(&self, index: usize, pid: u32, reason: KillReason) {
        if let Some(Some(lane)) = self.lock().lanes.get_mut(index)
            && lane.pid == pid
        {
            lane.kill(reason);
        }
    }

    pub(crate) fn remove_lane(&self, index: usize) -> Option<Lane> {
        self.lock().remove_lane(index)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The watches find the pool gone, and end.
        let scheduler = self.lock();
        (0..self.shards.len()).for_each(|io_thread| scheduler.watch(io_thread).notify_one());
    }
}

//! `Pool`: the door for fronts and for the server that starts and stops pools. What is behind it is in other modules.

use crate::config::PoolConfig;
use crate::event::Event;
use crate::fault::{Fault, FaultKind};
use crate::io_threads::{self, IoThreads};
use crate::launcher::Launcher;
use crate::pending::Pending;
use crate::quarantine;
use crate::request::{Request, RequestStats};
use crate::response_parts;
use crate::response_sink::Response;
use crate::response_sink::{self, ResponseBody};
use crate::shared::Shared;
use crate::status::{self, PoolStatus};
use crate::supervisor::Supervisor;
use crate::warm_up::EncodeWarmUp;
use crate::watch;
use howdah_budget::Charge;
use howdah_observe::PoolMetrics;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// How long a request asks a full queue for a place before it is refused, and how often.
const FULL_QUEUE_WAIT: Duration = Duration::from_secs(1);
const FULL_QUEUE_LOOK: Duration = Duration::from_millis(200);

/// A pool of PHP workers of one configuration.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    limits: Arc<response_parts::Limits>,
}

/// Starts a pool. Its supervisor runs on the calling runtime until the pool is stopped.
#[must_use]
pub fn start_pool(
    config: PoolConfig,
    io_threads: IoThreads,
    metrics: Arc<PoolMetrics>,
    launcher: Launcher,
    encode_warm_up: EncodeWarmUp,
) -> Arc<Pool> {
    let (sender, events) = mpsc::unbounded_channel();
    let pool = Pool::unsupervised(config, io_threads, metrics, sender.clone());
    tokio::spawn(Supervisor::new(pool.shared.clone(), events, sender, launcher, encode_warm_up).run());
    pool
}

impl Pool {
    /// A pool whose events go to whoever has the other end.
    pub(crate) fn unsupervised(
        config: PoolConfig,
        io_threads: IoThreads,
        metrics: Arc<PoolMetrics>,
        events: mpsc::UnboundedSender<Event>,
    ) -> Arc<Self> {
        let limits = Arc::new(response_parts::Limits {
            memory: config.response_memory,
            temp_dir: config.temp_dir.clone(),
            budgets: config.budgets,
        });
        let shared = Shared::new(config, io_threads, metrics, events);
        watch::start(&shared);
        Arc::new(Self { shared, limits })
    }

    /// What is behind the door.
    #[cfg(test)]
    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    #[must_use]
    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// What the pool was started with.
    #[must_use]
    pub fn config(&self) -> &PoolConfig {
        self.shared.config()
    }

    /// Runs a request: queues it, gives it to a worker and returns as soon as the head of the response is there.
    /// Dropping the future or the response's body tells the worker that the client has gone.
    ///
    /// # Errors
    /// A `Fault`; nothing of a response exists then.
    pub async fn run(&self, request: Request) -> Result<Response, Fault> {
        let stats = RequestStats { pool: self.shared.kept_name(), ..RequestStats::default() };
        // Held until the response begins: what waits in the queue costs memory too.
        let mut charge = Charge::new(self.limits.budgets.memory, request.share.clone());
        if !charge.grow(request.cost()) {
            let fault = Fault::with(FaultKind::OverBudget, "there is no room for the request");
            self.shared.metrics().faults.inc(fault.kind.label());
            return Err(fault);
        }
        let (sink, receiver) = response_sink::new(self.limits.clone(), stats, request.share.clone());
        let mut pending = Box::new(Pending::new(request, sink));
        if let Some(route) = pending.request.route.and_then(|at| self.config().routes.get(usize::from(at))) {
            pending.limits = pending.limits.over(route.limits);
        }
        if let Err(fault) = self.submit(pending).await {
            self.shared.metrics().faults.inc(fault.kind.label());
            return Err(fault);
        }
        let mut receiver: Option<ResponseBody> = Some(receiver);
        let result = std::future::poll_fn(|cx| ResponseBody::poll_response(&mut receiver, cx)).await;
        if let Err(fault) = &result {
            self.shared.metrics().faults.inc(fault.kind.label());
        }
        result
    }

    /// Hands a request to the scheduler. A full queue is asked again for a while: the client's connection is not read
    /// meanwhile, and a refusal that comes at once would only bring the client back at once.
    async fn submit(&self, mut pending: Box<Pending>) -> Result<(), Fault> {
        let patience = pending.limits.queue.unwrap_or(self.shared.config().queue_timeout);
        let until = Instant::now() + FULL_QUEUE_WAIT.min(patience);
        loop {
            pending = match self.submit_now(pending) {
                Ok(()) => return Ok(()),
                Err((fault, pending)) => {
                    if fault.kind != FaultKind::QueueFull || Instant::now() >= until || pending.sink.is_gone() {
                        return Err(fault);
                    }
                    pending
                }
            };
            tokio::time::sleep(FULL_QUEUE_LOOK).await;
            // What it waited here does not count against those that wait in the queue.
            pending.entered = Instant::now();
        }
    }

    fn submit_now(&self, pending: Box<Pending>) -> Result<(), (Fault, Box<Pending>)> {
        let mut scheduler = self.shared.lock();
        if !scheduler.quarantine.is_empty() {
            let path = quarantine::key(pending.request.head.method(), pending.request.head.uri());
            if scheduler.quarantine.refuses(&path, pending.entered).is_some() {
                return Err((Fault::new(FaultKind::Quarantined), pending));
            }
        }
        let submitted = scheduler.submit(pending, io_threads::current());
        if scheduler.wants_workers() {
            self.shared.tell_supervisor(Event::RequestsWait);
        }
        submitted
    }

    /// Returns when the queue has a place, or has had none for a while. Asked before a request's body is read: what
    /// cannot be run soon stays with the client.
    pub async fn room(&self) {
        let until = Instant::now() + FULL_QUEUE_WAIT.min(self.shared.config().queue_timeout);
        while self.shared.lock().queue.is_full() && Instant::now() < until {
            tokio::time::sleep(FULL_QUEUE_LOOK).await;
        }
    }

    /// True while at least one worker takes requests, or could be started for one: a pool on demand whose PHP has booted.
    #[must_use]
    pub fn can_serve(&self) -> bool {
        let about = self.shared.about();
        let could = self.shared.config().is_on_demand() && about.php_version.is_some() && about.last_error.is_none();
        could || self.shared.lock().lanes.iter().flatten().any(|lane| lane.state.is_serving())
    }

    /// Starts new workers from a fresh boot of PHP and lets the old ones finish. Returns when the new ones serve.
    ///
    /// # Errors
    /// Why the new ones did not start; the old ones stay then.
    pub async fn reload(&self) -> Result<(), String> {
        let (waiter, reloaded) = oneshot::channel();
        self.shared.tell_supervisor(Event::Reload(waiter));
        reloaded.await.unwrap_or_else(|_| Err("the pool has stopped".into()))
    }

    /// Lets a worker finish its requests and puts another in its place. False: there is none with this number.
    #[must_use]
    pub fn drain_worker(&self, worker: u32) -> bool {
        let mut scheduler = self.shared.lock();
        let index = worker as usize;
        let is_there = scheduler.lanes.get(index).and_then(Option::as_ref).is_some_and(|lane| lane.state.is_serving());
        if is_there {
            scheduler.drain_lane(index, Instant::now());
            drop(scheduler);
            self.shared.tell_supervisor(Event::WorkerRetires);
        }
        is_there
    }

    /// Ends the pool: no new requests, running ones may finish within `grace`. Returns when no process is left.
    pub async fn stop(&self, grace: Duration) {
        let (done, stopped) = oneshot::channel();
        self.shared.tell_supervisor(Event::Stop { grace, done });
        let _ = stopped.await;
    }

    /// Brings the gauges up to date; called before metrics are read, so that no request pays for it.
    pub fn update_gauges(&self) {
        status::update_gauges(&self.shared);
    }

    /// The pool at this moment.
    #[must_use]
    pub fn status(&self) -> PoolStatus {
        status::of(&self.shared)
    }
}

//! Keeps a pool alive: starts zygotes and workers, replaces dead ones, backs off when PHP does not boot, enforces
//! deadlines, and stops the pool. `scaling` controls the number of workers, `reloading` does reloads, and `lost`
//! handles processes that end unexpectedly.
//!
//! One task per pool, on the main thread's runtime. It owns the generations; the scheduler owns the lanes.

use crate::fault::{Fault, FaultKind};
use crate::generation_status::BootSource;
use crate::lane::{Lane, NewWorker};
use crate::lane_reader::LaneReader;
use crate::lane_reader::handle::LaneHandle;
use crate::learning::warm_up::{self, EncodeWarmUp, WarmUp};
use crate::process::end::{Deaths, End};
use crate::process::event::{Event, ReloadWaiter};
use crate::process::launcher::Launcher;
use crate::process::profile::ActiveProfile;
use crate::process::worker_state::KillReason;
use crate::process::zygote::Zygote;
use crate::queue::scheduler;
use crate::shared::Shared;
use crate::supervisor::generation::Generation;
use crate::supervisor::slow_log::SlowRequests;
use howdah_observe::SlowLog;
use howdah_transport::worker_spec::HOWDAH_BOOT_FAILED;
use howdah_transport::zygote_protocol::{Finding, FromZygote};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

pub(crate) mod deadline;
mod dozing;
mod failed_boot;
mod fallback;
mod generation;
mod lost;
mod memory;
mod query_text;
mod reloading;
mod resting;
mod scaling;
mod slow_boot;
mod slow_log;
mod stacks;
mod stuck;

/// Interval at which deadlines, the queue and the number of workers are checked; longer for an idle pool (`dozing`).
const TICK: Duration = Duration::from_millis(100);
/// Pause before processes are started again after a panic of the supervisor.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// Work for the supervisor.
enum WakeUp {
    Event(Event),
    /// Time for the periodic checks.
    Tick,
    /// `grow_at` is reached: check whether requests still wait.
    Growth,
}

pub(crate) struct Supervisor {
    pool: Arc<Shared>,
    events: mpsc::UnboundedReceiver<Event>,
    sender: mpsc::UnboundedSender<Event>,
    current: Option<Generation>,
    /// The generation a reload is preparing.
    next: Option<(Generation, Vec<ReloadWaiter>)>,
    /// Generations whose workers finish their requests.
    old: Vec<Generation>,
    last_generation: u64,
    /// Workers wanted now, between the pool's limits.
    target: usize,
    failures: u32,
    /// Consecutive boots that were killed from outside.
    killed: u32,
    not_before: Option<Instant>,
    /// Time and cause of the last failed boot that was logged as an error; repetitions are logged at level debug.
    failure_logged: Option<(Instant, String)>,
    next_home: usize,
    /// When to check whether requests still wait.
    grow_at: Option<Instant>,
    /// When a worker was last stopped because too many were idle or memory was short.
    shrunk_at: Option<Instant>,
    stop: Option<(Instant, oneshot::Sender<()>)>,
    /// No process is started before the first reload.
    waits_for_order: bool,
    /// The number of accepted requests when none was under way, and when that was.
    idle_since: Option<(u64, Instant)>,
    /// Since when this fallback pool has had nothing to do.
    unneeded_since: Option<Instant>,
    /// There is no zygote until a request needs it.
    rests: bool,
    /// The worker that was killed because of its warm-up.
    refused: Option<u32>,
    /// The advice to set a warm-up was logged.
    advised: bool,
    /// `next` was started only to apply a learned warm-up.
    next_is_learnt: bool,
    launcher: Launcher,
    encode_warm_up: EncodeWarmUp,
    slow: SlowRequests,
    /// The last generation with a boot that was reported as slow.
    slow_boot_reported: u64,
    profile: Option<ActiveProfile>,
    last_profile: u64,
    room: memory::MemoryCheck,
}

impl Supervisor {
    /// Creates the supervisor of a pool without processes; `sender` is the sending end of `events`.
    pub(crate) fn new(
        pool: Arc<Shared>,
        events: mpsc::UnboundedReceiver<Event>,
        sender: mpsc::UnboundedSender<Event>,
        launcher: Launcher,
        encode_warm_up: EncodeWarmUp,
        slow_log: Option<Arc<SlowLog>>,
    ) -> Self {
        Self {
            target: pool.config().start_workers(),
            pool,
            events,
            sender,
            current: None,
            next: None,
            old: Vec::new(),
            last_generation: 0,
            failures: 0,
            killed: 0,
            not_before: None,
            failure_logged: None,
            next_home: 0,
            grow_at: None,
            shrunk_at: None,
            stop: None,
            waits_for_order: false,
            idle_since: None,
            unneeded_since: None,
            rests: false,
            refused: None,
            advised: false,
            next_is_learnt: false,
            launcher,
            encode_warm_up,
            slow: SlowRequests::new(slow_log),
            slow_boot_reported: 0,
            profile: None,
            last_profile: 0,
            room: memory::MemoryCheck::default(),
        }
    }

    /// Delays the first start until a reload. Then at least `workers` are started, the number that the previous pool
    /// had. `generation` is the previous pool's last generation.
    pub(crate) fn waits_for_order(mut self, workers: usize, generation: u64) -> Self {
        self.waits_for_order = true;
        self.target = self.target.max(workers.min(self.pool.config().max_workers()));
        self.last_generation = generation;
        self
    }

    /// Runs until the pool is stopped.
    pub(crate) async fn run(mut self) {
        let mut next_tick = Instant::now();
        loop {
            let due = tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => WakeUp::Event(event),
                    None => return,
                },
                () = sleep_until(Some(next_tick)) => WakeUp::Tick,
                () = sleep_until(self.grow_at) => WakeUp::Growth,
            };
            let is_tick = matches!(due, WakeUp::Tick);
            match catch_unwind(AssertUnwindSafe(|| self.step(due))) {
                Ok(true) => return,
                Ok(false) => {}
                Err(_) => self.start_over(),
            }
            let now = Instant::now();
            next_tick = if is_tick { now + self.pause() } else { next_tick.min(now + TICK) };
        }
    }

    /// Handles one wake-up. Returns true once the pool has stopped.
    fn step(&mut self, due: WakeUp) -> bool {
        match due {
            WakeUp::Event(event) => self.handle(event),
            WakeUp::Tick => self.tick(),
            WakeUp::Growth => self.grow(),
        }
        if self.stop.is_some() && self.all_gone() {
            if let Some((_, done)) = self.stop.take() {
                let _ = done.send(());
            }
            return true;
        }
        self.keep_workers();
        false
    }

    /// Replaces all processes: after a panic it is unknown which step was not completed. Zygotes end with their
    /// workers, whose requests are run again where that is safe, and a new generation begins.
    fn start_over(&mut self) {
        tracing::error!(pool = self.pool.name(), "pool supervisor panicked: replacing the pool's processes");
        let next = self.next.take().map(|(generation, _)| generation);
        for generation in self.current.take().into_iter().chain(next) {
            generation.zygote.kill();
            // Kept until `ZygoteGone`.
            self.old.push(generation);
        }
        self.not_before = Some(Instant::now() + AFTER_PANIC);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::WorkerReady { worker, generation } => {
                tracing::debug!(pool = self.pool.name(), worker, generation, "worker ready");
                self.pool.boot_log.forget();
                if let Some(generation) = self.generation_mut(generation) {
                    generation.proven = true;
                }
                if self.current.as_ref().is_some_and(|g| g.number == generation) {
                    self.failures = 0;
                    self.killed = 0;
                    self.not_before = None;
                    self.failure_logged = None;
                }
                self.retire_used_up();
                self.finish_reload_if_ready();
            }
            Event::WorkerRetires | Event::RequestsBegin => {}
            Event::RequestsWait => {
                self.grow_at.get_or_insert(Instant::now() + scaling::GROW_AFTER);
                if self.target == 0 {
                    self.grow();
                }
            }
            Event::BootOutdated { generation, boot_began_us } => {
                tracing::debug!(generation, boot_began_us, "a worker's boot is outdated");
                self.drop_outdated(generation, boot_began_us);
            }
            Event::WorkerGone(death) => {
                self.worker_gone(death);
                self.drop_finished_generations();
            }
            Event::Zygote { generation, message, fds } => self.zygote_message(generation, message, fds),
            Event::ZygoteGone { generation, end } => self.zygote_gone(generation, &end),
            Event::Profile { rate, length, taker, begun } => self.begin_profile(rate, length, taker, begun),
            #[cfg(test)]
            Event::Panic => panic!("the panic that a test is about"),
            Event::Reload(waiter) => self.reload(waiter),
            Event::Stop { grace, done } => self.begin_stop(grace, done),
        }
    }

    fn generation_mut(&mut self, number: u64) -> Option<&mut Generation> {
        self.current
            .iter_mut()
            .chain(self.next.iter_mut().map(|(g, _)| g))
            .chain(self.old.iter_mut())
            .find(|g| g.number == number)
    }

    fn zygote_message(&mut self, number: u64, message: FromZygote, fds: Vec<OwnedFd>) {
        match message {
            FromZygote::Booted { php_version, restores_nice, form_limit } => {
                self.pool.form_limit.store(form_limit.unwrap_or(u64::MAX), Relaxed);
                self.pool.lock().precedence.restores = restores_nice;
                tracing::debug!(pool = self.pool.name(), generation = number, php_version, "PHP has started");
                self.pool.update_about(|about| about.php_version = Some(php_version));
                if let Some(generation) = self.generation_mut(number) {
                    generation.booted = true;
                }
            }
            FromZygote::BootFailed { error } => {
                let said = self.generation_mut(number).map(|g| g.zygote.last_output()).unwrap_or_default();
                let text = [error, said].iter().filter(|t| !t.is_empty()).cloned().collect::<Vec<_>>().join(": ");
                self.failed(number, text);
            }
            FromZygote::Template { pid, boot_began_us } => {
                self.note_boots(number, BootSource::Template { pid, began_us: boot_began_us });
            }
            FromZygote::Unshared { why } => {
                tracing::info!(pool = self.pool.name(), "each worker boots the application separately: {why}");
                self.note_boots(number, BootSource::Alone(why));
            }
            FromZygote::WarmUp { pid, refused, findings } => self.note_warm_up(number, pid, refused, findings),
            FromZygote::Forked { worker, pid } => self.forked(number, worker, pid, fds),
            FromZygote::Stacks { order, found } => self.stacks(order, found),
            FromZygote::Samples { order, seen, last } => self.profiled(number, order, seen, last),
            FromZygote::Sizes { sizes } => self.measured(number, &sizes),
            FromZygote::Learnt { needs } => self.pool.update_about(|about| about.sandbox_needs.extend(needs)),
            FromZygote::ForkFailed { worker, error } => {
                if let Some(generation) = self.generation_mut(number) {
                    generation.ordered.remove(&worker);
                    generation.waits_since = None;
                }
                self.failed(number, format!("cannot fork a worker: {error}"));
            }
            FromZygote::Exited { pid, status, signal, processor_us } => {
                self.pool.metrics().processor_time.ended(processor_us);
                let boots = self.generation_mut(number).map(|g| g.boots.clone());
                if boots.is_some_and(|boots| boots.template() == Some(pid)) {
                    tracing::debug!(pool = self.pool.name(), pid, "the template has ended");
                    self.note_boots(number, BootSource::TemplateGone(pid));
                    return;
                }
                let end = End::of(status, signal);
                if let Some(death) = self.generation_mut(number).and_then(|g| g.deaths.ended(pid, &end)) {
                    self.judge(number, &death, &end);
                }
                let pool = self.pool.name();
                match (status, signal) {
                    (_, Some(_)) if self.refused == Some(pid) => self.refused = None,
                    (_, Some(signal)) if self.stop.is_none() => {
                        tracing::warn!(pool, pid, signal, "worker killed by a signal")
                    }
                    // The failed boot is logged with its reason.
                    (Some(HOWDAH_BOOT_FAILED), _) => tracing::debug!(pool, pid, "worker ended while it booted"),
                    (Some(status), _) if status != 0 => tracing::warn!(pool, pid, status, "worker ended with an error"),
                    _ => tracing::debug!(pool, pid, "worker ended"),
                }
            }
        }
    }

    /// Drops the template of an outdated boot: workers forked from it would be outdated too.
    fn drop_outdated(&mut self, number: u64, boot_began_us: u64) {
        let Some(generation) = self.generation_mut(number) else { return };
        if let BootSource::Template { pid, began_us } = generation.boots
            && began_us <= boot_began_us
        {
            // If the zygote is gone, its template is too.
            let _ = generation.zygote.drop_template();
            self.note_boots(number, BootSource::TemplateGone(pid));
        }
    }

    fn note_warm_up(&mut self, number: u64, pid: u32, refused: bool, findings: Vec<Finding>) {
        if self.yields_to_findings(number, refused, &findings) {
            return;
        }
        self.refused = refused.then_some(pid).or(self.refused);
        let pool = self.pool.clone();
        let Some(generation) = self.generation_mut(number) else { return };
        generation.warm_up.note(pool.name(), refused, findings);
        if refused {
            // The worker waits to be killed. The zygote already knows that its next worker skips the warm-up.
            for lane in pool.lock().lanes.iter_mut().flatten().filter(|lane| lane.pid == pid) {
                lane.kill(KillReason::WarmUp);
            }
        }
        let warm_up = generation.warm_up.clone();
        if self.current.as_ref().is_some_and(|g| g.number == number) {
            pool.update_about(|about| about.warm_up = warm_up);
        }
    }

    fn note_boots(&mut self, number: u64, boots: BootSource) {
        if let Some(generation) = self.generation_mut(number) {
            generation.boots = boots.clone();
        }
        if self.current.as_ref().is_some_and(|g| g.number == number) {
            self.pool.update_about(|about| about.boots = boots);
        }
    }

    /// Adds the lane of a forked worker to the scheduler and starts its reader on the home I/O thread.
    fn forked(&mut self, number: u64, worker: u32, pid: u32, mut fds: Vec<OwnedFd>) {
        let home = self.next_home;
        self.next_home += 1;
        let stopping = self.stop.is_some();
        let Some(generation) = self.generation_mut(number) else { return };
        let Some(ordered) = generation.ordered.remove(&worker) else { return };
        generation.waits_since = None;
        generation.deaths.forked(pid);
        let zygote = generation.zygote.life();
        let Some(pidfd) = fds.pop() else {
            self.failed(number, format!("the zygote forked worker {pid} without a pidfd (Linux 5.3 is needed)"));
            return;
        };
        let pidfd = Arc::new(pidfd);
        let io_threads = self.pool.io_threads();
        let config = self.pool.config();
        let new = NewWorker {
            worker,
            generation: number,
            pid,
            pidfd,
            home: home % io_threads.len().max(1),
            concurrency: config.lane_depth(),
            launcher: self.launcher.clone(),
        };
        let handle = LaneHandle::new(self.pool.clone(), worker as usize, pid);
        let reader = LaneReader::new(handle, &new, ordered.frames, ordered.eventfd);
        let mut lane = Lane::new(new, ordered.sender, Arc::new(ordered.control));
        lane.zygote = Some(zygote);
        if stopping {
            lane.kill(KillReason::Stopping);
        }
        self.pool.lock().add_lane(lane);
        io_threads.runtime(home).spawn(reader.run());
    }

    fn zygote_gone(&mut self, number: u64, end: &End) {
        if self.current.as_ref().is_some_and(|g| g.number == number) {
            let Some(generation) = self.current.take() else { return };
            if self.stop.is_none() {
                self.zygote_lost(generation, end);
            }
        } else if self.next.as_ref().is_some_and(|(g, _)| g.number == number) {
            let said = self.next.as_ref().map(|(g, _)| g.zygote.last_output()).unwrap_or_default();
            self.fail_reload(lost::boot_failure(end, &said));
        }
        self.old.retain(|g| g.number != number);
    }

    /// Handles a failed start in a generation.
    fn failed(&mut self, number: u64, why: String) {
        if self.next.as_ref().is_some_and(|(g, _)| g.number == number) {
            self.fail_reload(why);
        } else if self.current.as_ref().is_some_and(|g| g.number == number) {
            self.note_failure(why);
        }
    }

    fn start_generation(&mut self) -> io::Result<Generation> {
        self.last_generation += 1;
        let number = self.last_generation;
        let mut warm_up = WarmUp::default();
        let requests = warm_up.requests(self.pool.config(), &self.pool.learned.plan(), &self.encode_warm_up);
        let zygote = Zygote::start(self.pool.config(), &self.launcher, requests, number, &self.sender)?;
        Ok(Generation {
            number,
            zygote,
            started: Instant::now(),
            booted: false,
            boots: BootSource::Unknown,
            warm_up,
            ordered: HashMap::new(),
            proven: false,
            too_slow: false,
            closed_since: None,
            waits_since: None,
            deaths: Deaths::default(),
        })
    }

    /// Starts missing processes: the zygote, workers up to the target, and workers of the generation that a reload
    /// prepares.
    fn keep_workers(&mut self) {
        if self.stop.is_some() || self.not_before.is_some_and(|t| t > Instant::now()) {
            return;
        }
        if self.current.is_none() && !self.waits_for_order && !self.rests {
            self.not_before = None;
            match self.start_generation() {
                Ok(generation) => {
                    self.pool.update_about(|about| {
                        about.generation = generation.number;
                        about.boots = BootSource::Unknown;
                        about.warm_up = generation.warm_up.clone();
                    });
                    self.current = Some(generation);
                }
                Err(error) => self.note_failure(error.to_string()),
            }
            return;
        }
        let (target, next_target) = (self.target, self.reload_target());
        let pool = self.pool.clone();
        let mut taken: Vec<u32> = Vec::new();
        for generation in self.current.iter().chain(self.next.iter().map(|(g, _)| g)).chain(self.old.iter()) {
            taken.extend(generation.ordered.keys());
        }
        let mut error = None;
        let generations = self.current.iter_mut().map(|generation| (generation, target));
        for (generation, target) in generations.chain(self.next.iter_mut().map(|(g, _)| (g, next_target))) {
            if let Err(e) = generation.order_workers(&pool, target, &mut taken) {
                error = Some((generation.number, format!("cannot order a worker: {e}")));
            }
        }
        if let Some((number, why)) = error {
            self.failed(number, why);
        }
    }

    fn tick(&mut self) {
        {
            let mut scheduler = self.pool.lock();
            scheduler.expire(Instant::now());
            scheduler.quarantine.forget(Instant::now());
            scheduler.sweep(scheduler::TAKE_BACK_AFTER);
        }
        self.look_for_slow_requests();
        self.end_profile();
        deadline::enforce(&self.pool, self.pool.config().settings.deadline, deadline::CANCEL_GRACE);
        self.report_slow_boots();
        self.kill_slow_starters();
        self.replace_stuck();
        self.kill_lingering();
        self.give_up_causes();
        self.measure();
        self.grow();
        self.keep_spare();
        self.shrink();
        self.rest();
        self.tick_fallback();
        self.advised = self.advised || warm_up::advise(self.pool.config(), self.pool.lock().lanes.iter().flatten());
        if let Some((deadline, _)) = &self.stop
            && Instant::now() > *deadline
        {
            for lane in self.pool.lock().lanes.iter_mut().flatten() {
                lane.kill(KillReason::Stopping);
            }
            for generation in self.current.iter().chain(&self.old) {
                generation.zygote.kill();
            }
        }
    }

    fn begin_stop(&mut self, grace: Duration, done: oneshot::Sender<()>) {
        if let Some((generation, waiters)) = self.next.take() {
            self.old.push(generation);
            for waiter in waiters {
                let _ = waiter.send(Err("the server is stopping".into()));
            }
        }
        self.end_boots();
        let mut scheduler = self.pool.lock();
        scheduler.stopping = true;
        scheduler.fail_queue(&Fault::new(FaultKind::Stopping));
        for index in 0..scheduler.lanes.len() {
            scheduler.drain_lane(index, Instant::now());
        }
        self.stop = Some((Instant::now() + grace, done));
    }

    /// While stopping: closes zygotes once no worker is left. Returns true when the current one has ended.
    fn all_gone(&mut self) -> bool {
        if self.pool.lock().lanes.iter().flatten().next().is_some() {
            return false;
        }
        self.old.clear();
        if let Some(generation) = self.current.as_mut() {
            // Waits for `ZygoteGone`, so that this zygote has ended when the pool has stopped.
            generation.zygote.close();
            return false;
        }
        true
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

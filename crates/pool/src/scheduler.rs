//! Which worker gets which call: the waiting queue, idle lanes, second calls and taking back.
//!
//! Order of choice for a new call: while calls are short, behind others on a lane at home on the caller's thread (`pace`
//! says how many); an idle lane at home, any idle lane, the second place of the lane whose call has run longest, the queue.
//! When a lane becomes free: the queue's first call, else a call that waits behind another lane's running one (taken back),
//! else it is idle. So no call waits while a worker is idle, unless it was expected to wait for a moment only; `spread`
//! puts that right where it was wrong.
//!
//! Where workers run several calls at once, a new one goes behind others at home as well while calls are short, else to
//! the lane that has fewest; calls that a busy worker does not even take are taken back after `UNTAKEN` and go elsewhere,
//! or wait in the queue.
//!
//! All of it is guarded by the pool's one lock; every operation under it is short (the longest copies a request's head).

use crate::connection_pools;
use crate::fault::{Fault, FaultKind};
use crate::lane::{Job, KillReason, Lane, Phase};
use crate::pace::Pace;
use howdah_observe::ConnectionPool;
use howdah_transport::SendError;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Time after which a call goes to another worker if the one that was sent it has not taken it, as that runs several.
pub(crate) const UNTAKEN: Duration = Duration::from_millis(50);

/// A full queue in which all clients are there is not searched again for so long: refusing must cost little.
const DOUBT_AGAIN: Duration = Duration::from_millis(10);

/// The pool's calls and lanes.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    pub(crate) queue: VecDeque<Box<Job>>,
    pub(crate) queue_limit: usize,
    /// Indexed by worker number.
    pub(crate) lanes: Vec<Option<Lane>>,
    /// Free lanes, the most recently used last: its memory is in the caches.
    idle: Vec<usize>,
    /// When the full queue was last searched for clients that may have left, and had none.
    nobody_doubtful: Option<Instant>,
    pub(crate) pace: Pace,
    /// A call waits behind others although a worker is, or was, idle: `spread` is called until none does.
    crowded: bool,
    /// Who is told that `spread` is to be called.
    pub(crate) watch: Arc<Notify>,
    pub(crate) stopping: bool,
    /// Workers run several calls at once.
    several: bool,
    /// Set while no worker can be started: what callers are told.
    pub(crate) down: Option<String>,
    /// What the connection pools of workers that have ended had counted.
    pub(crate) ended_connection_pools: Vec<ConnectionPool>,
}

impl Scheduler {
    pub(crate) fn new(queue_limit: usize, several: bool) -> Self {
        Self { queue_limit, several, ..Self::default() }
    }

    /// Finds a place for a new call. A fault means that it was not taken.
    pub(crate) fn submit(&mut self, job: Box<Job>, shard: usize) -> Result<(), Fault> {
        if self.stopping {
            return Err(Fault::new(FaultKind::Stopping));
        }
        // It has just entered; a look at the clock for each step would cost more than the steps.
        let now = job.entered;
        let Some(job) = self.place_behind(job, shard, now) else { return Ok(()) };
        if let Some(job) = self.place(job, shard, now) {
            if let Some(reason) = &self.down {
                return Err(Fault::with(FaultKind::PoolDown, reason.as_str()));
            }
            if self.queue.len() >= self.queue_limit && !self.drop_doubtful() {
                return Err(Fault::new(FaultKind::QueueFull));
            }
            self.queue.push_back(job);
        }
        Ok(())
    }

    /// Gives up the oldest waiting call whose client may have left; false if there is none. Clients that give up and come
    /// again must not find the queue full of their own old calls.
    fn drop_doubtful(&mut self) -> bool {
        if self.nobody_doubtful.is_some_and(|since| since.elapsed() < DOUBT_AGAIN) {
            return false;
        }
        let may_have_left = |job: &Job| job.call.interim.as_ref().is_some_and(|client| client.may_have_left());
        let doubtful = self.queue.iter().position(|job| may_have_left(job));
        let Some(job) = doubtful.and_then(|at| self.queue.remove(at)) else {
            self.nobody_doubtful = Some(Instant::now());
            return false;
        };
        job.sink.fail(Fault::new(FaultKind::QueueFull));
        true
    }

    /// Puts a call back at the head of the queue: it was accepted before everything that waits there.
    pub(crate) fn resubmit(&mut self, job: Box<Job>, shard: usize) {
        if let Some(job) = self.place(job, shard, Instant::now()) {
            self.queue.push_front(job);
        }
    }

    /// Gives the call to a lane; returns it if none has a place.
    fn place(&mut self, mut job: Box<Job>, shard: usize, now: Instant) -> Option<Box<Job>> {
        while self.several {
            let Some(index) = self.pick_least_loaded(shard) else { return Some(job) };
            self.idle.retain(|&i| i != index);
            job = self.send(index, job, now)?;
        }
        while let Some(index) = self.pick_idle(shard) {
            job = self.send(index, job, now)?;
        }
        if let Some(index) = self.pick_second(shard, now) {
            job = self.send(index, job, now)?;
        }
        Some(job)
    }

    /// How many calls a lane may hold while other workers are idle.
    fn crowd(&self) -> usize {
        self.pace.crowd()
    }

    /// Gives a call that will not wait for long to a worker that is running already; returns it if there is none.
    fn place_behind(&mut self, job: Box<Job>, shard: usize, now: Instant) -> Option<Box<Job>> {
        let crowd = self.crowd();
        let has_place =
            |lane: &Lane| lane.home == shard && lane.may_be_crowded(now) && (1..crowd).contains(&lane.in_flight.len());
        let index = if crowd > 1 && !self.idle.is_empty() {
            self.lanes.iter().position(|lane| lane.as_ref().is_some_and(has_place))
        } else {
            None
        };
        let Some(index) = index else { return Some(job) };
        self.set_crowded();
        self.send(index, job, now)
    }

    fn set_crowded(&mut self) {
        if !std::mem::replace(&mut self.crowded, true) {
            self.watch.notify_one();
        }
    }

    /// Gives calls that wait behind a long one to others. True while calls wait that may have to be moved later.
    pub(crate) fn spread(&mut self) -> bool {
        let (mut moved, now) = (Vec::new(), Instant::now());
        for lane in self.lanes.iter_mut().flatten() {
            let may_wait = if self.idle.is_empty() { lane.depth } else { 1 };
            if lane.in_flight.len() > may_wait && lane.runs_long(now) {
                while lane.in_flight.len() > 1
                    && let Some(job) = lane.take_back_last()
                {
                    moved.push((job, lane.home));
                }
            }
        }
        moved.sort_by_key(|(job, _)| job.entered);
        let left: Vec<_> = moved.into_iter().filter_map(|(job, home)| self.place(job, home, Instant::now())).collect();
        for job in left.into_iter().rev() {
            self.queue.push_front(job);
        }
        self.crowded = self.lanes.iter().flatten().any(Lane::holds_waiting_call);
        self.crowded
    }

    fn pick_idle(&mut self, shard: usize) -> Option<usize> {
        let lanes = &self.lanes;
        let at_home = |&index: &usize| lanes[index].as_ref().is_some_and(|l| l.home == shard);
        let position = self.idle.iter().rposition(at_home).or_else(|| self.idle.len().checked_sub(1))?;
        Some(self.idle.remove(position))
    }

    fn pick_least_loaded(&self, shard: usize) -> Option<usize> {
        let candidates = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let lane = lane.as_ref().filter(|lane| lane.takes_calls())?;
            // A worker that has not taken its last call is busy with another one.
            Some((lane.holds_waiting_call(), lane.in_flight.len(), lane.home != shard, index))
        });
        candidates.min().map(|(_, _, _, index)| index)
    }

    fn pick_second(&self, shard: usize, now: Instant) -> Option<usize> {
        let crowds = self.crowd() > 1;
        let candidates = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let lane = lane.as_ref()?;
            let has_place = lane.phase == Phase::Serving && lane.in_flight.len() < self.depth(lane, now);
            // Among short calls a long one says that its lane will be free late, not soon.
            let long = crowds && lane.runs_long(now);
            let since = lane.in_flight.front().map(|f| f.since);
            has_place.then_some((lane.home != shard, long, lane.in_flight.len(), since, index))
        });
        candidates.min().map(|(.., index)| index)
    }

    /// Calls that a lane may hold when no worker is idle.
    fn depth(&self, lane: &Lane, now: Instant) -> usize {
        match self.crowd() {
            crowd if crowd > lane.depth && !lane.runs_long(now) => crowd,
            _ => lane.depth,
        }
    }

    /// Sends a call to a lane; returns it if the lane could not take it.
    fn send(&mut self, index: usize, job: Box<Job>, now: Instant) -> Option<Box<Job>> {
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return Some(job) };
        if lane.phase != Phase::Serving {
            return Some(job);
        }
        match lane.send(job, now) {
            Ok(()) => None,
            Err((job, SendError::Full)) => Some(job),
            Err((job, SendError::TooLarge)) => {
                job.sink.fail(Fault::new(FaultKind::HeadTooLarge));
                if lane.in_flight.is_empty() {
                    self.idle.push(index);
                }
                None
            }
            Err((job, SendError::Broken(error))) => {
                lane.kill(KillReason::Broken(error.to_string()));
                Some(job)
            }
        }
    }

    /// The lane has become able to take calls, or one of its calls is done: gives it the next one.
    pub(crate) fn refill(&mut self, index: usize, now: Instant) {
        loop {
            let Some(lane) = self.lanes.get(index).and_then(Option::as_ref) else { return };
            if lane.phase != Phase::Serving || lane.in_flight.len() >= self.depth(lane, now) {
                return;
            }
            if self.several && !lane.takes_calls() {
                return;
            }
            let free = lane.in_flight.is_empty();
            let next = self.next_queued().or_else(|| if free { self.steal(now) } else { None });
            let Some(job) = next else {
                if free && !self.idle.contains(&index) {
                    if let Some(lane) = self.lanes[index].as_mut() {
                        lane.idle_since = now;
                    }
                    self.idle.push(index);
                }
                return;
            };
            self.idle.retain(|&i| i != index);
            if let Some(job) = self.send(index, job, now) {
                self.queue.push_front(job);
                return;
            }
        }
    }

    /// The next call of the queue whose client is still there.
    fn next_queued(&mut self) -> Option<Box<Job>> {
        loop {
            let job = self.queue.pop_front()?;
            if !job.sink.is_gone() {
                return Some(job);
            }
        }
    }

    /// Takes the call that has waited longest behind a running one. Behind a short one it may stay.
    fn steal(&mut self, now: Instant) -> Option<Box<Job>> {
        let crowds = self.crowd() > 1;
        let mut stays = false;
        let waiting = self.lanes.iter_mut().flatten().filter(|lane| {
            let waits = lane.holds_waiting_call();
            let may_stay = waits && crowds && !lane.runs_long(now);
            stays |= may_stay;
            waits && !may_stay
        });
        let oldest = waiting.min_by_key(|lane| lane.in_flight.back().map(|f| f.since));
        let job = oldest.and_then(Lane::take_back_last);
        if stays {
            self.set_crowded();
        }
        job
    }

    /// Adds a lane whose worker is starting.
    pub(crate) fn add_lane(&mut self, lane: Lane) {
        let index = lane.worker as usize;
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, || None);
        }
        self.lanes[index] = Some(lane);
    }

    /// Removes a lane whose worker is dead and returns it with its calls.
    pub(crate) fn remove_lane(&mut self, index: usize) -> Option<Lane> {
        self.idle.retain(|&i| i != index);
        let lane = self.lanes.get_mut(index)?.take()?;
        connection_pools::keep(&lane, &mut self.ended_connection_pools);
        Some(lane)
    }

    /// Stops sending calls to a lane and lets its worker end; calls it has not begun go to others.
    pub(crate) fn drain_lane(&mut self, index: usize) {
        self.idle.retain(|&i| i != index);
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return };
        // Nobody else would run them when all stop.
        let jobs: Vec<_> = std::iter::from_fn(|| if self.stopping { None } else { lane.take_back_last() }).collect();
        lane.stop();
        let home = lane.home;
        for job in jobs {
            self.resubmit(job, home);
        }
    }

    // --- workers that run several calls at once --------------------------------------------------------------------

    /// There may be room again in a lane that had none.
    pub(crate) fn room_made(&mut self, index: usize) {
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return };
        if lane.wants_room() {
            lane.send_kept();
            self.refill(index, Instant::now());
        }
    }

    /// Once per tick: tells workers of clients that have gone, takes calls back that a busy worker does not take, and
    /// gives waiting calls to lanes that have places. `patience` is `UNTAKEN`.
    pub(crate) fn sweep(&mut self, patience: Duration) {
        let mut untaken = Vec::new();
        for lane in self.lanes.iter_mut().flatten().filter(|lane| lane.several) {
            while lane.holds_waiting_call() && lane.in_flight.back().is_some_and(|c| c.since.elapsed() > patience) {
                let Some(job) = lane.take_back_last() else { break };
                lane.stuck = true;
                untaken.push((job, lane.home));
            }
            let gone: Vec<u64> =
                lane.in_flight.iter().filter(|c| !c.told_gone && c.job.sink.is_gone()).map(|c| c.number).collect();
            for number in gone {
                lane.let_go(number);
            }
        }
        for (job, home) in untaken {
            self.resubmit(job, home);
        }
        for index in 0..self.lanes.len() {
            if let Some(lane) = self.lanes[index].as_mut().filter(|lane| lane.several) {
                lane.look_whether_stuck();
                lane.send_kept();
                self.refill(index, Instant::now());
            }
        }
    }

    /// Lanes in a phase, of one generation.
    pub(crate) fn count(&self, generation: u64, phase: Phase) -> usize {
        self.lanes.iter().flatten().filter(|l| l.generation == generation && l.phase == phase).count()
    }

    /// Ends the wait of calls that no worker has begun within `limit`, and of those whose client has gone.
    pub(crate) fn expire(&mut self, limit: Duration) {
        let is_over = |job: &Job| {
            let late = job.entered.elapsed() > limit;
            if late {
                job.sink.fail(Fault::new(FaultKind::QueueTimeout));
            }
            late || job.sink.is_gone()
        };
        self.queue.retain(|job| !is_over(job));
        for lane in self.lanes.iter_mut().flatten().filter(|lane| lane.holds_waiting_call()) {
            let last_is_over = |lane: &Lane| {
                lane.in_flight.back().is_some_and(|c| c.job.entered.elapsed() > limit || c.job.sink.is_gone())
            };
            while last_is_over(lane)
                && lane.holds_waiting_call()
                && let Some(job) = lane.take_back_last()
            {
                is_over(&job);
            }
        }
    }

    /// Calls that wait: in the queue, and behind a running one in a lane.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.lanes.iter().flatten().map(Lane::waiting_calls).sum::<usize>()
    }

    /// Fails every waiting call.
    pub(crate) fn fail_queue(&mut self, fault: &Fault) {
        for job in self.queue.drain(..) {
            job.sink.fail(fault.clone());
        }
    }

    /// How long the oldest waiting call has waited.
    pub(crate) fn oldest_wait(&self) -> Option<Duration> {
        let in_lanes = self.lanes.iter().flatten().filter(|lane| lane.holds_waiting_call());
        let jobs = self.queue.front().into_iter().chain(in_lanes.filter_map(|l| l.in_flight.back().map(|c| &c.job)));
        jobs.map(|job| job.entered.elapsed()).max()
    }

    /// Idle workers, the longest idle first.
    pub(crate) fn idle_longest(&self) -> Option<(usize, Duration)> {
        self.idle
            .iter()
            .map(|&i| (i, self.lanes[i].as_ref().map_or(Duration::ZERO, |l| l.idle_since.elapsed())))
            .max_by_key(|&(_, d)| d)
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;

//! Assigns requests to workers. Work-conserving: a request waits only while no worker is free, or for less than waking
//! one takes.
//!
//! **A new request** goes to an idle worker, but for one case: if requests of its route are short (`estimate`), and
//! those that lie in a lane at home on the caller's thread will be done within `LAY_BEHIND_LIMIT`, it is put behind them. A
//! worker that runs one short request after the other has warm caches and is not woken for each of them, which is worth
//! more than a second worker. All others wait in the queue (`queue`), which is fair and bounded by time. (Putting longer
//! ones behind busy workers as well pays nowhere: the worker then keeps the processor that its server needs to send the
//! response, and the timer that watches over them costs more than waking it.)
//!
//! The duration of requests is known by script and route (`estimate`), and what a worker runs now, and since when, by
//! the time stamp that it writes into its lane. So nothing is put behind a request that is not expected to end soon, or
//! has run longer than expected.
//!
//! **Expectations fail.** While a request lies behind another, `spread` looks at the lane again when it should have
//! been begun (`watch` has a fine timer for that), and takes it back if it was not.
//!
//! That is a pool of serial workers, and `serial` picks their lanes. Where workers are multiplexed (`multiplexed`), a
//! new request goes behind others at home as well if all are short, else to the lane that has fewest; requests that
//! compute keep to half of the workers while others come; requests that a busy worker does not even take are taken back
//! after `TAKE_BACK_AFTER` and go elsewhere, or wait in the queue.
//!
//! All of it is guarded by the pool's one lock; every operation under it is short (the longest copies a request's
//! head). Time is what callers say it is: `simulation` runs this code with a simulated clock.

use crate::fault::{Fault, FaultKind};
use crate::lane::connection_pools;
use crate::lane::precedence::Precedence;
use crate::lane::{Lane, LaneKind, SnapshotWork};
use crate::process::worker_state::{KillReason, WorkerState};
use crate::queue::quarantine::{self, Quarantine};
use crate::queue::shares::Shares;
use crate::queue::waiting::{self, WaitingQueue};
use crate::request::estimate::{Estimates, Took};
use crate::request::last_request::LastRequest;
use crate::request::pending::Pending;
use howdah_observe::ConnectionPool;
use howdah_transport::SendError;
use howdah_transport::wire::REQUEST_MEASURE;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

mod multiplexed;
mod serial;

/// Maximum expected wait behind other requests while a worker is idle, in microseconds: about the time to wake a worker
/// when all processors are busy. Less spreads short requests over workers that then compete for the processors: with
/// 100, hello at 8 connections on two cores is 5 % slower.
const LAY_BEHIND_LIMIT: u64 = 300;
/// Short requests that a lane holds at most.
const MAX_PACKED: usize = 8;
/// Time after which a request goes to another worker if the multiplexed one that was sent it has not taken it.
pub(crate) const TAKE_BACK_AFTER: Duration = Duration::from_millis(5);
/// When lanes of serial workers are looked at after a request was laid behind others.
const FIRST_CHECK: Duration = Duration::from_micros(LAY_BEHIND_LIMIT);

/// A full queue in which all clients are there is not searched again for so long: refusing must cost little.
const SEARCH_INTERVAL: Duration = Duration::from_millis(10);

/// The pool's requests and lanes.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    pub(crate) queue: WaitingQueue,
    /// Indexed by worker number.
    pub(crate) lanes: Vec<Option<Lane>>,
    /// Free lanes, the most recently used last: its memory is in the caches.
    idle: Vec<usize>,
    /// When the full queue was last searched for clients that may have left, and had none.
    nobody_doubtful: Option<Instant>,
    pub(crate) estimates: Estimates,
    /// Workers that some kinds of requests may not take.
    pub(crate) shares: Shares,
    /// Requests that give way to others where processors are short.
    pub(crate) precedence: Precedence,
    /// Requests that kill workers.
    pub(crate) quarantine: Quarantine,
    /// By I/O thread: requests wait behind others in its lanes, and its watch is notified when to check them.
    watches: Vec<Watch>,
    pub(crate) stopping: bool,
    /// The supervisor wants to be notified when a request has to wait.
    asks_for_workers: bool,
    /// Workers run many requests at once.
    multiplexed: bool,
    /// Number of requests that can compute at the same time.
    pub(crate) processors: usize,
    /// `TAKE_BACK_AFTER`, but in tests whose workers are slower than any real one.
    pub(crate) untaken: Duration,
    /// Set while no worker can be started: the reason, for callers.
    pub(crate) down: Option<String>,
    /// Counts of the connection pools of ended workers.
    pub(crate) ended_connection_pools: Vec<ConnectionPool>,
    pub(crate) tally: Tally,
}

/// Counts of the scheduler's own, under its lock.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    /// Requests that were taken, waiting ones included.
    pub(crate) accepted: u64,
    /// The most that waited at once.
    pub(crate) most_waiting: usize,
    /// The most workers that were busy at once.
    pub(crate) most_busy: usize,
    /// Requests that were slow.
    pub(crate) slow: u64,
}

impl Tally {
    /// Adds what another pool has counted that this one follows.
    pub(crate) fn add(&mut self, before: &Self) {
        self.accepted += before.accepted;
        self.most_waiting = self.most_waiting.max(before.most_waiting);
        self.most_busy = self.most_busy.max(before.most_busy);
    }
}

/// One I/O thread's look at requests that wait behind others.
#[derive(Debug, Default)]
struct Watch {
    /// `spread` is called until nothing waits.
    running: bool,
    notify: Arc<Notify>,
}

impl Scheduler {
    pub(crate) fn new(
        queue: waiting::Limits,
        shares: Shares,
        precedence: Precedence,
        multiplexed: bool,
        io_threads: usize,
    ) -> Self {
        let watches = std::iter::repeat_with(Watch::default).take(io_threads.max(1)).collect();
        Self {
            queue: WaitingQueue::new(queue),
            shares,
            precedence,
            multiplexed,
            watches,
            asks_for_workers: true,
            processors: howdah_budget::machine::processors(),
            untaken: TAKE_BACK_AFTER,
            ..Self::default()
        }
    }

    /// Finds a place for a new request, at the time `now`. A fault means that it was not taken, and comes with the request.
    pub(crate) fn submit(
        &mut self,
        mut pending: Box<Pending>,
        io_thread: usize,
        now: Instant,
    ) -> Result<(), (Fault, Box<Pending>)> {
        if self.stopping {
            return Err((Fault::new(FaultKind::Stopping), pending));
        }
        pending.expected = self.estimates.expected(pending.key);
        if pending.expected.is_short() || self.multiplexed && !pending.expected.computes() {
            self.precedence.other_came(now);
        }
        pending.flow = self.shares.flow(pending.request.route);
        pending.cost = pending.expected.mean / self.shares.weight(pending.request.route);
        let pending = match self.pick_behind_short(&pending, io_thread, now) {
            Some(index) => self.send_behind(index, pending, now),
            None => Some(pending),
        };
        let Some(mut pending) = pending.and_then(|pending| self.place(pending, io_thread, now)) else {
            self.tally.accepted += 1;
            return Ok(());
        };
        if let Some(reason) = &self.down {
            return Err((Fault::with(FaultKind::PoolDown, reason.as_str()), pending));
        }
        if !self.queue.has_place(pending.has_turn) && !self.drop_doubtful() {
            return Err((Fault::new(FaultKind::QueueFull), pending));
        }
        pending.cold = !self.serves();
        self.queue.push(pending);
        self.tally.accepted += 1;
        self.tally.most_waiting = self.tally.most_waiting.max(self.queue.len());
        Ok(())
    }

    /// Gives up the oldest waiting request whose client may have left; `false` if there is none. Otherwise clients that
    /// give up and return would find the queue full of their earlier requests.
    fn drop_doubtful(&mut self) -> bool {
        if self.nobody_doubtful.is_some_and(|since| since.elapsed() < SEARCH_INTERVAL) {
            return false;
        }
        let may_have_left =
            |pending: &Pending| pending.request.interim.as_ref().is_some_and(|client| client.may_have_left());
        let Some(pending) = self.queue.remove_one(may_have_left) else {
            self.nobody_doubtful = Some(Instant::now());
            return false;
        };
        pending.sink.fail(Fault::new(FaultKind::QueueFull));
        true
    }

    /// Finds a new place for a request that a worker had; before all that waits, as it was accepted before that. It is
    /// not laid behind others a second time while a worker is idle: where one expectation failed, the next may.
    pub(crate) fn resubmit(&mut self, pending: Box<Pending>, io_thread: usize, now: Instant) {
        if let Some(pending) = self.place(pending, io_thread, now) {
            self.queue.put_back(pending);
        }
    }

    /// Gives the request to an idle lane; returns it if there is none.
    fn place(&mut self, mut pending: Box<Pending>, io_thread: usize, now: Instant) -> Option<Box<Pending>> {
        if !self.shares.may_run(&pending, &self.lanes) {
            return Some(pending);
        }
        if self.multiplexed {
            return self.place_among_others(pending, io_thread, now);
        }
        let gives_way = self.precedence.gives_way(pending.expected, now);
        while let Some(index) = self.pick_idle(io_thread, gives_way) {
            pending = self.send(index, pending, now)?;
        }
        Some(pending)
    }

    /// A worker behind whose requests this one will not wait for long, whether or not others are idle.
    fn pick_behind_short(&self, pending: &Pending, io_thread: usize, now: Instant) -> Option<usize> {
        // Queued requests came first; with an idle multiplexed worker, the lane with the fewest requests is better.
        let passed = !self.queue.is_empty() || self.multiplexed && self.idle.is_empty();
        if !pending.expected.is_short() || passed || !self.shares.may_run(pending, &self.lanes) {
            return None;
        }
        let has_place = |lane: &Lane| {
            lane.home == io_thread
                && match lane.kind {
                    LaneKind::Serial(_) => serial::has_place_behind(lane, now),
                    LaneKind::Multiplexed(_) => multiplexed::has_place_behind(lane, now),
                }
        };
        self.lanes.iter().position(|lane| lane.as_ref().is_some_and(has_place))
    }

    /// As `send`, where the request may have to wait for the worker: it is looked after.
    fn send_behind(&mut self, index: usize, pending: Box<Pending>, now: Instant) -> Option<Box<Pending>> {
        let rest = self.send(index, pending, now);
        if rest.is_none()
            && let Some(lane) = self.lanes.get(index).and_then(Option::as_ref)
            && lane.in_flight.len() > 1
        {
            self.watch_over(lane.home);
        }
        rest
    }

    fn watch_over(&mut self, io_thread: usize) {
        let watches = self.watches.len();
        let watch = &mut self.watches[io_thread % watches];
        if !std::mem::replace(&mut watch.running, true) {
            watch.notify.notify_one();
        }
    }

    /// Time after which `spread` is to be called once a request was put behind others.
    pub(crate) const fn first_look(&self) -> Duration {
        if self.multiplexed { multiplexed::POLL_INTERVAL } else { FIRST_CHECK }
    }

    /// The notifier for calls of `spread` for an I/O thread.
    pub(crate) fn watch(&self, io_thread: usize) -> Arc<Notify> {
        self.watches[io_thread % self.watches.len()].notify.clone()
    }

    /// True if `spread` is to be called.
    #[cfg(test)]
    pub(crate) fn is_watched(&self, io_thread: usize) -> bool {
        self.watches[io_thread].running
    }

    /// Takes requests back that lie behind one that turned out to be long, and gives them to others. When to look again;
    /// `None`: nothing waits behind anything any more.
    pub(crate) fn spread(&mut self, io_thread: usize, now: Instant) -> Option<Duration> {
        let (mut moved, mut looks, watches) = (Vec::new(), Vec::new(), self.watches.len());
        let untaken = self.untaken;
        for lane in self.lanes.iter_mut().flatten().filter(|lane| lane.home % watches == io_thread) {
            let look = match lane.kind {
                LaneKind::Serial(_) => serial::spread(lane, now, &mut moved),
                LaneKind::Multiplexed(_) => multiplexed::spread(lane, now, untaken, &mut moved),
            };
            looks.extend(look);
        }
        let moves = !moved.is_empty();
        // The last was taken back first.
        moved.reverse();
        moved.sort_by_key(|(pending, _)| pending.entered);
        for (pending, home) in moved {
            self.resubmit(pending, home, now);
        }
        // A multiplexed worker that was stuck may be so no longer.
        let some_wait = self.multiplexed && !self.queue.is_empty();
        if some_wait {
            (0..self.lanes.len()).for_each(|index| self.refill(index, now));
        }
        // A moved request may be behind others again, and then counts as new.
        let lies_behind = |lane: &Lane| lane.home % watches == io_thread && lane.holds_waiting_request();
        if (moves || some_wait) && self.lanes.iter().flatten().any(lies_behind) {
            looks.push(self.first_look());
        }
        let again = looks.into_iter().min();
        self.watches[io_thread].running = again.is_some();
        again
    }

    /// Sends a request to a lane; returns it if the lane could not take it.
    fn send(&mut self, index: usize, pending: Box<Pending>, now: Instant) -> Option<Box<Pending>> {
        let gives_way = !self.multiplexed && self.precedence.gives_way(pending.expected, now);
        let others = if gives_way { self.giving_way() } else { (0, 0) };
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return Some(pending) };
        if !lane.state.is_serving() {
            return Some(pending);
        }
        let flags = match lane.kind {
            LaneKind::Serial(_) => self.precedence.flags(lane.gives_way(), gives_way, pending.expected, others),
            LaneKind::Multiplexed(_) if pending.expected.may_compute() => REQUEST_MEASURE,
            LaneKind::Multiplexed(_) => 0,
        };
        match lane.send(pending, flags, now) {
            Ok(()) => {
                self.note_busy();
                None
            }
            Err((pending, SendError::Full)) => Some(pending),
            Err((pending, SendError::TooLarge)) => {
                pending.sink.fail(Fault::new(FaultKind::HeadTooLarge));
                if lane.in_flight.is_empty() {
                    self.idle.push(index);
                }
                None
            }
            Err((pending, SendError::Broken(error))) => {
                lane.kill(KillReason::Broken(error.to_string()));
                Some(pending)
            }
        }
    }

    /// Counts the workers that are busy, if they may be more than ever.
    fn note_busy(&mut self) {
        if self.lanes.len().saturating_sub(self.idle.len()) > self.tally.most_busy {
            let busy = self.lanes.iter().flatten().filter(|lane| !lane.in_flight.is_empty()).count();
            self.tally.most_busy = self.tally.most_busy.max(busy);
        }
    }

    /// A request is done, after what it `took`: the lane gets the next one, or none any more if its worker is to retire.
    pub(crate) fn request_done(
        &mut self,
        index: usize,
        number: u64,
        now: Instant,
        took: Took,
        snapshot: Option<SnapshotWork>,
        retire: bool,
    ) {
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return };
        if let Some(request) = lane.end_request(number, now) {
            lane.snapshot = snapshot;
            let mut pending = request.pending;
            let restore = snapshot.map_or(Duration::ZERO, |work| Duration::from_nanos(work.restore_ns.into()));
            let whole = took.whole(restore, now.saturating_duration_since(pending.entered));
            if let Some(asked) = pending.request.busy.take() {
                let _ = asked.send(Duration::from_micros(whole.php));
            }
            self.estimates.note(pending.key, whole);
            if !self.quarantine.is_empty() {
                self.quarantine.note_survivor(&quarantine::key(&pending.request), now);
            }
            lane.last = Some(LastRequest::of(pending.request, took));
        }
        if retire {
            self.drain_lane(index, now);
        } else {
            self.refill(index, now);
        }
    }

    /// The lane has become able to take requests, or one of its requests is done: gives it the next one.
    pub(crate) fn refill(&mut self, index: usize, now: Instant) {
        loop {
            let Some(lane) = self.lanes.get(index).and_then(Option::as_ref) else { return };
            let free = lane.in_flight.is_empty();
            let has_place = match lane.kind {
                LaneKind::Serial(_) if free => lane.state.is_serving(),
                LaneKind::Serial(_) => !self.queue.is_empty() && serial::has_place_behind(lane, now),
                LaneKind::Multiplexed(_) => lane.has_place(),
            };
            if !has_place {
                return;
            }
            // A multiplexed worker that computes nothing may be kept for requests that do not.
            let kept = lane.in_flight.computing() == 0 && self.are_kept_together(now);
            let behind = !free && !self.multiplexed;
            let may_go =
                |pending: &Pending| !(kept && pending.expected.computes() || behind && !pending.expected.is_short());
            let (shares, lanes) = (&self.shares, &self.lanes);
            let next = self.queue.pop(now, |pending| may_go(pending) && shares.may_run(pending, lanes));
            self.queue.refuse_late();
            let Some(pending) = next.or_else(|| if free { self.steal(may_go, now) } else { None }) else {
                if free && !self.idle.contains(&index) {
                    if let Some(lane) = self.lanes[index].as_mut() {
                        lane.idle_since = now;
                    }
                    self.idle.push(index);
                    self.queue.door.let_in(1);
                }
                return;
            };
            self.idle.retain(|&i| i != index);
            let left = if free && !self.multiplexed {
                self.send(index, pending, now)
            } else {
                self.send_behind(index, pending, now)
            };
            if let Some(pending) = left {
                self.queue.put_back(pending);
                return;
            }
        }
    }

    /// Takes a request that waits behind a running one and may go, the one that has been sent first. Behind short ones it
    /// may stay.
    fn steal(&mut self, may_go: impl Fn(&Pending) -> bool, now: Instant) -> Option<Box<Pending>> {
        let waiting = self.lanes.iter_mut().flatten().filter(|lane| {
            lane.in_flight.back().is_some_and(|last| may_go(&last.pending))
                && lane.holds_waiting_request()
                && lane.expected_wait(now).is_none_or(|wait| wait > LAY_BEHIND_LIMIT)
        });
        let oldest = waiting.min_by_key(|lane| lane.in_flight.back().map(|f| f.since));
        oldest.and_then(Lane::take_back_waiting)
    }

    /// Adds a lane whose worker is starting.
    pub(crate) fn add_lane(&mut self, lane: Lane) {
        let index = lane.worker as usize;
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, || None);
        }
        self.lanes[index] = Some(lane);
    }

    /// Removes a lane whose worker is dead and returns it with its requests.
    pub(crate) fn remove_lane(&mut self, index: usize) -> Option<Lane> {
        self.idle.retain(|&i| i != index);
        let lane = self.lanes.get_mut(index)?.take()?;
        connection_pools::keep(&lane, &mut self.ended_connection_pools);
        Some(lane)
    }

    /// Stops sending requests to a lane and lets its worker end; requests it has not begun go to others.
    pub(crate) fn drain_lane(&mut self, index: usize, now: Instant) {
        self.end_lane(index, now, Lane::stop);
    }

    /// Condemns the lane of a worker that will be killed for this reason.
    pub(crate) fn condemn_lane(&mut self, index: usize, reason: KillReason, now: Instant) {
        self.end_lane(index, now, |lane| lane.condemn(reason));
    }

    fn end_lane(&mut self, index: usize, now: Instant, end: impl FnOnce(&mut Lane)) {
        self.idle.retain(|&i| i != index);
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return };
        // No worker would run them when all stop.
        let pending: Vec<_> = std::iter::from_fn(|| if self.stopping { None } else { lane.take_back_last() }).collect();
        end(lane);
        let home = lane.home;
        for pending in pending.into_iter().rev() {
            self.resubmit(pending, home, now);
        }
    }

    /// Kills the worker of a lane, if it still has its place.
    pub(crate) fn kill_lane(&mut self, index: usize, pid: u32, reason: KillReason) {
        if let Some(Some(lane)) = self.lanes.get_mut(index)
            && lane.pid == pid
        {
            lane.kill(reason);
        }
    }

    /// Lanes of one generation whose workers are in such a state.
    pub(crate) fn count(&self, generation: u64, is_in: fn(&WorkerState) -> bool) -> usize {
        self.lanes.iter().flatten().filter(|lane| lane.generation == generation && is_in(&lane.state)).count()
    }

    /// `true` if a request that arrives now finds a worker.
    pub(crate) fn serves(&self) -> bool {
        self.lanes.iter().flatten().any(|lane| lane.state.is_serving())
    }

    /// Workers that take requests.
    pub(crate) fn serving(&self) -> usize {
        self.lanes.iter().flatten().filter(|lane| lane.state.is_serving()).count()
    }

    /// The connection pools of all workers, and what those of workers that have ended had counted.
    pub(crate) fn connection_pools(&self) -> Vec<ConnectionPool> {
        connection_pools::of_all(self.lanes.iter().flatten(), &self.ended_connection_pools)
    }

    /// Ends the wait of requests that have waited for too long (`queue` says what that is), and of those whose client
    /// has gone.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.queue.expire(now);
        let allowed = self.queue.allowed_waits(now);
        self.queue.refuse_late();
        for lane in self.lanes.iter_mut().flatten() {
            let last_is_over = |lane: &Lane| {
                lane.in_flight
                    .back()
                    .is_some_and(|request| allowed.is_over(&request.pending) || request.pending.sink.is_gone())
            };
            while last_is_over(lane)
                && let Some(pending) = lane.take_back_waiting()
            {
                pending.sink.fail(Fault::new(FaultKind::QueueTimeout));
            }
        }
    }

    /// Requests in the queue that have waited for longer than this and may run.
    pub(crate) fn waiting_longer_than(&self, limit: Duration, now: Instant) -> usize {
        let late = |pending: &&Pending| now.saturating_duration_since(pending.entered) > limit;
        self.queue.all().filter(late).filter(|pending| self.shares.may_run(pending, &self.lanes)).count()
    }

    /// Sets whether the supervisor is notified when a request has to wait. Returns `true` if one already does.
    pub(crate) fn ask_for_workers(&mut self, ask: bool) -> bool {
        let waits = ask && !self.queue.is_empty();
        self.asks_for_workers = ask && !waits;
        waits
    }

    /// True, once, if a request waits and the supervisor wants to know.
    pub(crate) fn wants_workers(&mut self) -> bool {
        !self.queue.is_empty() && std::mem::take(&mut self.asks_for_workers)
    }

    /// Requests that wait: in the queue, and behind a running one in a lane.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.lanes.iter().flatten().map(Lane::waiting_requests).sum::<usize>()
    }

    /// Fails every waiting request.
    pub(crate) fn fail_queue(&mut self, fault: &Fault) {
        self.queue.drain().iter().for_each(|pending| pending.sink.fail(fault.clone()));
    }

    /// Wait of the oldest waiting request.
    pub(crate) fn oldest_wait(&self, now: Instant) -> Option<Duration> {
        let in_lanes = self.lanes.iter().flatten().filter(|lane| lane.holds_waiting_request());
        let in_lanes = in_lanes.filter_map(|lane| lane.in_flight.back().map(|request| request.pending.entered));
        in_lanes.chain(self.queue.oldest()).min().map(|entered| now.saturating_duration_since(entered))
    }

    /// Number of available workers: idle ones, and the free part of multiplexed ones.
    pub(crate) fn spare(&self) -> usize {
        if !self.multiplexed {
            return self.idle.len();
        }
        let serving = self.lanes.iter().flatten().filter(|lane| lane.state.is_serving());
        let (free, depth) =
            serving.fold((0, 1), |(free, depth), lane| (free + lane.free_places(), depth.max(lane.depth())));
        free / depth
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
mod stage;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod simulation;

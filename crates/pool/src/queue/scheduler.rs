//! Assigns requests to workers. Work-conserving, apart from routes at their limit (`shares`): a request waits only
//! while no worker is free, or for less time than waking a worker takes.
//!
//! **A new request** goes to an idle worker, with one exception. If requests of its route are short (`estimate`), and a
//! lane at home on the caller's thread is expected to finish its requests within `LAY_BEHIND_LIMIT`, the new request is
//! put behind them. A worker that runs short requests back to back has warm caches and is not woken for each of them,
//! which is worth more than a second worker. Without an idle worker, requests wait in the queue (`queue`), which is
//! fair and bounded by time. (Putting longer requests behind busy workers as well never pays: the worker then keeps the
//! processor that its server needs to send the response, and the timer that watches over such requests costs more than
//! waking a worker.)
//!
//! Durations are estimated by script and route (`estimate`). The time stamp that a worker writes into its lane shows
//! which request it runs, and since when. So no request is put behind one that is not expected to end soon, or that has
//! run longer than expected.
//!
//! **Expectations fail.** If a request behind another has not begun when it should have, `spread` takes it back
//! (`watch` has a fine timer for that check).
//!
//! This describes a pool of serial workers, whose lanes `serial` picks. With multiplexed workers (`multiplexed`), a new
//! request also goes behind others at home if all are short and a worker is idle, else to the lane with the fewest
//! requests. While other requests arrive, requests that compute are kept to half of the workers. Requests that a busy
//! worker does not take are taken back after `TAKE_BACK_AFTER` and go to another worker, or wait in the queue.
//!
//! The pool's one lock guards all of it, and every operation under that lock is short (sending a request copies its
//! head and at most 32 KiB of body). Callers pass the current time, so that `simulation` can run this code with a
//! simulated clock.

use crate::fault::{Fault, FaultKind};
use crate::lane::connection_pools;
use crate::lane::precedence::Precedence;
use crate::lane::{Lane, LaneKind, SnapshotWork};
use crate::process::worker_state::{KillReason, WorkerState};
use crate::queue::quarantine::{self, Quarantine};
use crate::queue::shares::Shares;
use crate::queue::waiting::{self, WaitingQueue};
use crate::request::estimate::{Estimates, MeasuredDuration};
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
/// 100, the hello benchmark with 8 connections on two cores is 5 % slower.
const LAY_BEHIND_LIMIT: u64 = 300;
/// A short request is put behind others only in a lane with fewer requests than this.
const MAX_PACKED: usize = 8;
/// Time after which requests that a multiplexed worker does not take, behind another one, are taken back.
pub(crate) const TAKE_BACK_AFTER: Duration = Duration::from_millis(5);
/// Delay between putting a request behind others in a serial worker's lane and the first check on it.
const FIRST_CHECK: Duration = Duration::from_micros(LAY_BEHIND_LIMIT);

/// Minimum time between two searches of a full queue that found no client gone: refusing a request must stay cheap.
const SEARCH_INTERVAL: Duration = Duration::from_millis(10);

/// The pool's requests and lanes.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    pub(crate) queue: WaitingQueue,
    /// Indexed by worker number.
    pub(crate) lanes: Vec<Option<Lane>>,
    /// Free lanes, the most recently used last: its memory is in the caches.
    idle: Vec<usize>,
    /// When a search of the full queue last found no client that may have left.
    last_futile_search: Option<Instant>,
    pub(crate) estimates: Estimates,
    /// Limits on the number of workers per route.
    pub(crate) shares: Shares,
    /// Decides which requests run at a lower priority.
    pub(crate) precedence: Precedence,
    /// Paths whose requests kill workers.
    pub(crate) quarantine: Quarantine,
    /// Indexed by I/O thread: its check on requests that wait behind others in its lanes.
    watches: Vec<Watch>,
    pub(crate) stopping: bool,
    /// The supervisor wants to be notified when a request has to wait.
    asks_for_workers: bool,
    /// The supervisor wants to be notified of the next request.
    pub(crate) supervisor_dozes: bool,
    /// Workers run many requests at once.
    multiplexed: bool,
    /// Number of requests that can compute at the same time.
    pub(crate) processors: usize,
    /// `TAKE_BACK_AFTER`, except in tests, whose workers are slower than real ones.
    pub(crate) untaken: Duration,
    /// The reason why no worker can be started, for callers; `None` while workers can.
    pub(crate) down: Option<String>,
    /// Totals of ended workers' connection pools.
    pub(crate) ended_connection_pools: Vec<ConnectionPool>,
    pub(crate) tally: Tally,
}

/// The scheduler's counters, guarded by the pool's lock.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    /// Accepted requests, including those still waiting.
    pub(crate) accepted: u64,
    /// Maximum number of requests in the queue at once.
    pub(crate) most_waiting: usize,
    /// Maximum number of workers that were busy at once.
    pub(crate) most_busy: usize,
    /// Requests that exceeded the slow log's threshold.
    pub(crate) slow: u64,
}

impl Tally {
    /// Adds the counters of the pool that this one replaces.
    pub(crate) fn add(&mut self, before: &Self) {
        self.accepted += before.accepted;
        self.most_waiting = self.most_waiting.max(before.most_waiting);
        self.most_busy = self.most_busy.max(before.most_busy);
        self.slow += before.slow;
    }
}

/// One I/O thread's check on requests that wait behind others.
#[derive(Debug, Default)]
struct Watch {
    /// The I/O thread is calling `spread` until no request waits.
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

    /// Assigns a new request to a worker or queues it, at the time `now`. On a fault, the request was not accepted and
    /// is returned.
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

    /// Fails a waiting request whose client may have left; returns `false` if there is none, or none was found just
    /// now. Otherwise clients that give up and retry would find the queue full of their earlier requests.
    fn drop_doubtful(&mut self) -> bool {
        if self.last_futile_search.is_some_and(|since| since.elapsed() < SEARCH_INTERVAL) {
            return false;
        }
        let may_have_left =
            |pending: &Pending| pending.request.interim.as_ref().is_some_and(|client| client.may_have_left());
        let Some(pending) = self.queue.remove_one(may_have_left) else {
            self.last_futile_search = Some(Instant::now());
            return false;
        };
        pending.sink.fail(Fault::new(FaultKind::QueueFull));
        true
    }

    /// Reassigns a request that a worker had. It goes before all waiting requests, as it was accepted before them.
    /// While a worker is idle, it is not put behind others a second time: its estimate has failed once already.
    pub(crate) fn resubmit(&mut self, pending: Box<Pending>, io_thread: usize, now: Instant) {
        if let Some(pending) = self.place(pending, io_thread, now) {
            self.queue.put_back(pending);
        }
    }

    /// Sends the request to a free lane; returns it if there is none, or if its route is at its limit.
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

    /// Picks a lane in which this request will not wait long behind others, even if other workers are idle.
    fn pick_behind_short(&self, pending: &Pending, io_thread: usize, now: Instant) -> Option<usize> {
        // Queued requests came first; without an idle multiplexed worker, the lane with the fewest requests is better.
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

    /// Like `send`, but starts the I/O thread's watch if the request has to wait behind others.
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

    /// Time from putting a request behind others to the first call of `spread`.
    pub(crate) const fn first_check(&self) -> Duration {
        if self.multiplexed { multiplexed::POLL_INTERVAL } else { FIRST_CHECK }
    }

    /// The notification for an I/O thread to call `spread`.
    pub(crate) fn watch(&self, io_thread: usize) -> Arc<Notify> {
        self.watches[io_thread % self.watches.len()].notify.clone()
    }

    /// True if the I/O thread has to call `spread`.
    #[cfg(test)]
    pub(crate) fn is_watched(&self, io_thread: usize) -> bool {
        self.watches[io_thread].running
    }

    /// Takes back requests behind one that turned out to be long and reassigns them. Returns the time until the next
    /// check; `None` if no request waits behind another.
    pub(crate) fn spread(&mut self, io_thread: usize, now: Instant) -> Option<Duration> {
        let (mut moved, mut checks, watches) = (Vec::new(), Vec::new(), self.watches.len());
        let untaken = self.untaken;
        for lane in self.lanes.iter_mut().flatten().filter(|lane| lane.home % watches == io_thread) {
            let check = match lane.kind {
                LaneKind::Serial(_) => serial::spread(lane, now, &mut moved),
                LaneKind::Multiplexed(_) => multiplexed::spread(lane, now, untaken, &mut moved),
            };
            checks.extend(check);
        }
        let moves = !moved.is_empty();
        // Each lane returned its last request first.
        moved.reverse();
        moved.sort_by_key(|(pending, _)| pending.entered);
        for (pending, home) in moved {
            self.resubmit(pending, home, now);
        }
        // A multiplexed worker that was stuck may have recovered.
        let some_wait = self.multiplexed && !self.queue.is_empty();
        if some_wait {
            (0..self.lanes.len()).for_each(|index| self.refill(index, now));
        }
        // A moved request may be behind others again; its check then restarts.
        let lies_behind = |lane: &Lane| lane.home % watches == io_thread && lane.holds_waiting_request();
        if (moves || some_wait) && self.lanes.iter().flatten().any(lies_behind) {
            checks.push(self.first_check());
        }
        let again = checks.into_iter().min();
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

    /// Updates the maximum of busy workers. Counts them only if the maximum may have grown.
    fn note_busy(&mut self) {
        if self.lanes.len().saturating_sub(self.idle.len()) > self.tally.most_busy {
            let busy = self.lanes.iter().flatten().filter(|lane| !lane.in_flight.is_empty()).count();
            self.tally.most_busy = self.tally.most_busy.max(busy);
        }
    }

    /// Handles the end of a request, which used `took`. Sends the lane its next request, or drains the lane if its
    /// worker is to retire.
    pub(crate) fn request_done(
        &mut self,
        index: usize,
        number: u64,
        now: Instant,
        took: MeasuredDuration,
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

    /// Sends the lane waiting requests, after it became able to take some or one of its requests ended.
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
            // A multiplexed worker without computing requests may be reserved for requests that do not compute.
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
                    self.queue.admission.let_in(1);
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

    /// Of the lanes' last requests that wait behind a running one and may move, takes the one that was sent first. A
    /// request behind short ones stays.
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

    /// Stops sending requests to a lane and lets its worker end; requests it has not begun go to others, unless the
    /// pool is stopping.
    pub(crate) fn drain_lane(&mut self, index: usize, now: Instant) {
        self.end_lane(index, now, Lane::stop);
    }

    /// Condemns the lane of a worker that will be killed for `reason`.
    pub(crate) fn condemn_lane(&mut self, index: usize, reason: KillReason, now: Instant) {
        self.end_lane(index, now, |lane| lane.condemn(reason));
    }

    fn end_lane(&mut self, index: usize, now: Instant, end: impl FnOnce(&mut Lane)) {
        self.idle.retain(|&i| i != index);
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return };
        // When the pool stops, no other worker would run them.
        let pending: Vec<_> = std::iter::from_fn(|| if self.stopping { None } else { lane.take_back_last() }).collect();
        end(lane);
        let home = lane.home;
        for pending in pending.into_iter().rev() {
            self.resubmit(pending, home, now);
        }
    }

    /// Kills a lane's worker if the lane still belongs to `pid`.
    pub(crate) fn kill_lane(&mut self, index: usize, pid: u32, reason: KillReason) {
        if let Some(Some(lane)) = self.lanes.get_mut(index)
            && lane.pid == pid
        {
            lane.kill(reason);
        }
    }

    /// Number of a generation's workers whose state satisfies `is_in`.
    pub(crate) fn count(&self, generation: u64, is_in: fn(&WorkerState) -> bool) -> usize {
        self.lanes.iter().flatten().filter(|lane| lane.generation == generation && is_in(&lane.state)).count()
    }

    /// `true` if at least one worker takes requests.
    pub(crate) fn serves(&self) -> bool {
        self.lanes.iter().flatten().any(|lane| lane.state.is_serving())
    }

    /// Number of workers that take requests.
    pub(crate) fn serving(&self) -> usize {
        self.lanes.iter().flatten().filter(|lane| lane.state.is_serving()).count()
    }

    /// The connection pools of all workers, with the totals of ended workers.
    pub(crate) fn connection_pools(&self) -> Vec<ConnectionPool> {
        connection_pools::of_all(self.lanes.iter().flatten(), &self.ended_connection_pools)
    }

    /// Fails requests that have waited too long (`queue` defines the limit) or whose client has gone.
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

    /// Number of queued requests that have waited longer than `limit` and may run.
    pub(crate) fn waiting_longer_than(&self, limit: Duration, now: Instant) -> usize {
        let late = |pending: &&Pending| now.saturating_duration_since(pending.entered) > limit;
        self.queue.all().filter(late).filter(|pending| self.shares.may_run(pending, &self.lanes)).count()
    }

    /// Turns the supervisor's notification about waiting requests on or off. Returns `true` if a request already waits.
    pub(crate) fn ask_for_workers(&mut self, ask: bool) -> bool {
        let waits = ask && !self.queue.is_empty();
        self.asks_for_workers = ask && !waits;
        waits
    }

    /// True if a request waits and the supervisor asked for a notification; only once for each `ask_for_workers`.
    pub(crate) fn wants_workers(&mut self) -> bool {
        !self.queue.is_empty() && std::mem::take(&mut self.asks_for_workers)
    }

    /// Number of waiting requests, in the queue and behind running requests in lanes.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.lanes.iter().flatten().map(Lane::waiting_requests).sum::<usize>()
    }

    /// Fails every request in the queue.
    pub(crate) fn fail_queue(&mut self, fault: &Fault) {
        self.queue.drain().iter().for_each(|pending| pending.sink.fail(fault.clone()));
    }

    /// Time that the oldest waiting request has waited.
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

    /// The worker that has been idle longest, and for how long.
    pub(crate) fn idle_longest(&self) -> Option<(usize, Duration)> {
        self.idle
            .iter()
            .map(|&i| (i, self.lanes[i].as_ref().map_or(Duration::ZERO, |l| l.idle_since.elapsed())))
            .max_by_key(|&(_, d)| d)
    }
}

#[cfg(test)]
mod test_scheduler;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod simulation;

//! Which worker gets which call. Work-conserving: a call waits only while no worker is free, or for less than waking one takes.
//!
//! **A new call** goes to an idle worker, but for one case: if calls of its route are short (`SHORT`), and those that lie in
//! a lane at home on the caller's thread will be done within `PATIENCE`, it is put behind them. A worker that runs one short call
//! after the other has warm caches and is not woken for each of them, which is worth more than a second worker. Where all
//! workers are busy, a call is put behind one that will be done within `AHEAD`, so that its worker need not wait for the server
//! between two calls; all others wait in the queue (`queue`), which is fair and bounded by time.
//!
//! What calls take is known by script and route (`estimate`), and what a worker runs now, and since when, by the time stamp that it
//! writes into its lane. So nothing is put behind a call that is not expected to end soon, or has run longer than expected.
//!
//! **Expectations fail.** While a call lies behind another, `spread` looks at the lane again when it should have been begun
//! (`watch` has a timer of tens of microseconds for that), and takes it back if it was not.
//!
//! Where workers run several calls at once, a new one goes behind others at home as well if all are short, else to the lane
//! that has fewest; calls that a busy worker does not even take are taken back after `UNTAKEN` and go elsewhere, or wait in
//! the queue.
//!
//! All of it is guarded by the pool's one lock; every operation under it is short (the longest copies a request's head).
//! Time is what callers say it is: `simulation` plays this code with a clock of its own.

use crate::connection_pools;
use crate::estimate::{Estimates, Expected, Took};
use crate::fault::{Fault, FaultKind};
use crate::lane::{Job, KillReason, Lane, Phase, SnapshotWork};
use crate::precedence::{self, Precedence};
use crate::quarantine::{self, Quarantine};
use crate::queue::{self, WaitingQueue};
use crate::shares::Shares;
use howdah_observe::ConnectionPool;
use howdah_transport::SendError;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A call is short if it takes no longer than this, rare cases included. Microseconds.
const SHORT: u32 = 200;
/// How long a call may be expected to wait behind others while a worker is idle. Microseconds; about what waking takes.
const PATIENCE: u64 = 100;
/// Behind a call that ends within this time another one may lie while no worker is idle. Microseconds.
const AHEAD: u64 = 2_000;
/// Short calls that a lane holds at most.
const MOST: usize = 8;
/// Calls of any length that a lane holds at most: one that runs, one that is next.
const NEXT: usize = 2;
/// Time after which a call goes to another worker if the one that was sent it has not taken it, as that runs several.
pub(crate) const UNTAKEN: Duration = Duration::from_millis(5);
/// When lanes are looked at after a call was laid behind others.
pub(crate) const FIRST_LOOK: Duration = Duration::from_micros(PATIENCE);
/// The soonest that a lane is looked at again.
const LOOK_AGAIN: Duration = Duration::from_micros(50);

/// A full queue in which all clients are there is not searched again for so long: refusing must cost little.
const DOUBT_AGAIN: Duration = Duration::from_millis(10);

/// True for calls that may share a lane although workers are idle.
pub(crate) const fn is_short(expected: Expected) -> bool {
    expected.high <= SHORT
}

/// The pool's calls and lanes.
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
    /// Workers that some kinds of calls may not take.
    pub(crate) shares: Shares,
    /// Calls that give way to others where processors are short.
    pub(crate) precedence: Precedence,
    /// What kills workers.
    pub(crate) quarantine: Quarantine,
    /// By I/O thread: calls wait behind others in its lanes, and it is told when to look at them.
    watches: Vec<Watch>,
    pub(crate) stopping: bool,
    /// The supervisor is to be told when a call has to wait.
    asks_for_workers: bool,
    /// Workers run several calls at once.
    several: bool,
    /// `UNTAKEN`, but in tests whose workers are slower than any real one.
    pub(crate) untaken: Duration,
    /// Set while no worker can be started: what callers are told.
    pub(crate) down: Option<String>,
    /// What the connection pools of workers that have ended had counted.
    pub(crate) ended_connection_pools: Vec<ConnectionPool>,
}

/// One I/O thread's look at calls that wait behind others.
#[derive(Debug, Default)]
struct Watch {
    /// `spread` is called until nothing waits.
    running: bool,
    notify: Arc<Notify>,
}

impl Scheduler {
    pub(crate) fn new(
        queue: queue::Limits,
        shares: Shares,
        precedence: Precedence,
        several: bool,
        io_threads: usize,
    ) -> Self {
        let watches = std::iter::repeat_with(Watch::default).take(io_threads.max(1)).collect();
        Self {
            queue: WaitingQueue::new(queue),
            shares,
            precedence,
            several,
            watches,
            asks_for_workers: true,
            untaken: UNTAKEN,
            ..Self::default()
        }
    }

    /// Finds a place for a new call. A fault means that it was not taken, and comes with the call.
    pub(crate) fn submit(&mut self, mut job: Box<Job>, shard: usize) -> Result<(), (Fault, Box<Job>)> {
        if self.stopping {
            return Err((Fault::new(FaultKind::Stopping), job));
        }
        // It has just entered; a look at the clock for each step would cost more than the steps.
        let now = job.entered;
        job.expected = self.estimates.expected(job.key);
        if is_short(job.expected) {
            self.precedence.short_came(now);
        }
        job.cost = job.expected.mean / self.shares.weight(job.call.route);
        let job = match self.pick_behind_short(&job, shard, now) {
            Some(index) => self.send_behind(index, job, now),
            None => Some(job),
        };
        let Some(job) = job.and_then(|job| self.place(job, shard, now)) else { return Ok(()) };
        if let Some(reason) = &self.down {
            return Err((Fault::with(FaultKind::PoolDown, reason.as_str()), job));
        }
        if self.queue.is_full() && !self.drop_doubtful() {
            return Err((Fault::new(FaultKind::QueueFull), job));
        }
        self.queue.push(job);
        Ok(())
    }

    /// Gives up the oldest waiting call whose client may have left; false if there is none. Clients that give up and come
    /// again must not find the queue full of their own old calls.
    fn drop_doubtful(&mut self) -> bool {
        if self.nobody_doubtful.is_some_and(|since| since.elapsed() < DOUBT_AGAIN) {
            return false;
        }
        let may_have_left = |job: &Job| job.call.interim.as_ref().is_some_and(|client| client.may_have_left());
        let Some(job) = self.queue.remove_one(may_have_left) else {
            self.nobody_doubtful = Some(Instant::now());
            return false;
        };
        job.sink.fail(Fault::new(FaultKind::QueueFull));
        true
    }

    /// Finds a new place for a call that a worker had; before all that waits, as it was accepted before that. It is not laid
    /// behind others a second time while a worker is idle: where one expectation failed, the next may.
    pub(crate) fn resubmit(&mut self, job: Box<Job>, shard: usize, now: Instant) {
        if let Some(job) = self.place(job, shard, now) {
            self.queue.put_back(job);
        }
    }

    /// Gives the call to a lane of its own, or to one that is free soon if no worker is idle; returns it if there is none.
    fn place(&mut self, mut job: Box<Job>, shard: usize, now: Instant) -> Option<Box<Job>> {
        if !self.shares.may_run(&job, &self.lanes) {
            return Some(job);
        }
        while self.several {
            let Some(index) = self.pick_least_loaded(shard) else { return Some(job) };
            self.idle.retain(|&i| i != index);
            job = self.send_behind(index, job, now)?;
        }
        let gives_way = self.precedence.gives_way(job.expected, now);
        while let Some(index) = self.pick_idle(shard, gives_way) {
            job = self.send(index, job, now)?;
        }
        // What waits in the queue was here before.
        if self.queue.is_empty()
            && let Some(index) = self.pick_soon_free(&job, shard, now)
        {
            job = self.send_behind(index, job, now)?;
        }
        Some(job)
    }

    /// A worker behind whose calls this one will not wait for long, although others are idle.
    fn pick_behind_short(&self, job: &Job, shard: usize, now: Instant) -> Option<usize> {
        if !is_short(job.expected) || self.idle.is_empty() || !self.shares.may_run(job, &self.lanes) {
            return None;
        }
        let has_place = |lane: &Lane| {
            lane.home == shard
                && lane.phase == Phase::Serving
                && (1..MOST).contains(&lane.in_flight.len())
                && lane.in_flight.are_short()
                && if lane.several {
                    lane.takes_calls() && lane.front_age(now).as_micros() < u128::from(AHEAD)
                } else {
                    lane.expected_wait(now).is_some_and(|wait| wait <= PATIENCE)
                }
        };
        self.lanes.iter().position(|lane| lane.as_ref().is_some_and(has_place))
    }

    /// An idle worker, the one used last: best one that gives way already if the call is to, else one that does not, and
    /// best at home.
    fn pick_idle(&mut self, shard: usize, gives_way: bool) -> Option<usize> {
        let fits = |&index: &usize| {
            self.lanes[index]
                .as_ref()
                .map_or(0, |lane| 2 * usize::from(lane.gives_way == gives_way) + usize::from(lane.home == shard))
        };
        // Of equals `max_by_key` takes the last.
        let (position, _) = self.idle.iter().enumerate().max_by_key(|(_, index)| fits(index))?;
        Some(self.idle.remove(position))
    }

    /// Lanes whose workers give way, and all.
    fn giving_way(&self) -> (usize, usize) {
        let lanes = self.lanes.iter().flatten();
        (lanes.clone().filter(|lane| lane.gives_way).count(), lanes.count())
    }

    fn pick_least_loaded(&self, shard: usize) -> Option<usize> {
        let candidates = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let lane = lane.as_ref().filter(|lane| lane.takes_calls())?;
            // A worker that has not taken its last call is busy with another one.
            Some((lane.holds_waiting_call(), lane.in_flight.len(), lane.home != shard, index))
        });
        candidates.min().map(|(_, _, _, index)| index)
    }

    /// The busy worker that will be free first, if that is soon.
    fn pick_soon_free(&self, job: &Job, shard: usize, now: Instant) -> Option<usize> {
        let candidates = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let lane = lane.as_ref().filter(|lane| lane.phase == Phase::Serving)?;
            let wait = lane.expected_wait(now).filter(|&wait| wait <= AHEAD)?;
            let has_place = lane.in_flight.len() < depth(lane, is_short(job.expected));
            has_place.then_some((lane.home != shard, wait, index))
        });
        candidates.min().map(|(_, _, index)| index)
    }

    /// As `send`, where the call may have to wait for the worker: it is looked after.
    fn send_behind(&mut self, index: usize, job: Box<Job>, now: Instant) -> Option<Box<Job>> {
        let rest = self.send(index, job, now);
        if rest.is_none()
            && let Some(lane) = self.lanes.get(index).and_then(Option::as_ref)
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

    /// Who is told that `spread` is to be called for an I/O thread.
    pub(crate) fn watch(&self, io_thread: usize) -> Arc<Notify> {
        self.watches[io_thread % self.watches.len()].notify.clone()
    }

    /// True if `spread` is to be called.
    #[cfg(test)]
    pub(crate) fn is_watched(&self, io_thread: usize) -> bool {
        self.watches[io_thread].running
    }

    /// Takes calls back that lie behind one that turned out to be long, and gives them to others. When to look again;
    /// `None`: nothing waits behind anything any more.
    pub(crate) fn spread(&mut self, io_thread: usize, now: Instant) -> Option<Duration> {
        let (mut moved, mut looks, watches) = (Vec::new(), Vec::new(), self.watches.len());
        let (idle, untaken) = (!self.idle.is_empty(), self.untaken);
        for lane in self.lanes.iter_mut().flatten().filter(|lane| lane.home % watches == io_thread) {
            let look = match lane.several {
                true => spread_untaken(lane, now, untaken, &mut moved),
                false => spread_waiting(lane, now, idle, &mut moved),
            };
            looks.extend(look);
        }
        let moves = !moved.is_empty();
        // The last was taken back first.
        moved.reverse();
        moved.sort_by_key(|(job, _)| job.entered);
        for (job, home) in moved {
            self.resubmit(job, home, now);
        }
        let moves = moves || self.several && !self.queue.is_empty();
        if self.several && !self.queue.is_empty() {
            // A worker that was stuck may be so no longer.
            (0..self.lanes.len()).for_each(|index| self.refill(index, now));
        }
        // What was moved may lie behind others again, and then it is as new.
        let lies_behind = |lane: &Lane| lane.home % watches == io_thread && lane.holds_waiting_call();
        if moves && self.lanes.iter().flatten().any(lies_behind) {
            looks.push(FIRST_LOOK);
        }
        let again = looks.into_iter().min();
        self.watches[io_thread].running = again.is_some();
        again
    }

    /// Sends a call to a lane; returns it if the lane could not take it.
    fn send(&mut self, index: usize, job: Box<Job>, now: Instant) -> Option<Box<Job>> {
        let gives_way = !self.several && self.precedence.gives_way(job.expected, now);
        let others = if gives_way { self.giving_way() } else { (0, 0) };
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return Some(job) };
        if lane.phase != Phase::Serving {
            return Some(job);
        }
        let flags = if self.several { 0 } else { self.precedence.flags(lane, gives_way, job.expected, others) };
        match lane.send(job, flags, now) {
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

    /// A call is done, after what it `took`: the lane gets the next one, or none any more if its worker is to retire.
    pub(crate) fn call_done(
        &mut self,
        index: usize,
        number: u64,
        now: Instant,
        took: Took,
        snapshot: Option<SnapshotWork>,
        retire: bool,
    ) {
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return };
        if let Some(call) = lane.in_flight.remove(number) {
            lane.calls += 1;
            lane.snapshot = snapshot;
            lane.stuck = false;
            lane.gives_way = precedence::ordered(call.flags).unwrap_or(lane.gives_way);
            if !lane.several
                && let Some(next) = lane.in_flight.front_mut()
            {
                next.since = now;
            }
            // Putting a snapshot back keeps the worker from its next call as well.
            let restore_us = snapshot.map_or(0, |work| u64::from(work.restore_ns) / 1000);
            // It cannot have taken longer than it was away.
            let away = now.saturating_duration_since(call.job.entered).as_micros() as u64;
            let php = took.php.saturating_add(restore_us).min(away);
            self.estimates.note(call.job.key, Took { php, cpu: took.cpu.map(|cpu| cpu.min(php)) });
            if !self.quarantine.is_empty() {
                let head = &call.job.call.head;
                self.quarantine.note_survivor(&quarantine::key(head.method(), head.uri()), now);
            }
        }
        if retire {
            self.drain_lane(index, now);
        } else {
            self.refill(index, now);
        }
    }

    /// The lane has become able to take calls, or one of its calls is done: gives it the next one.
    pub(crate) fn refill(&mut self, index: usize, now: Instant) {
        loop {
            let Some(lane) = self.lanes.get(index).and_then(Option::as_ref) else { return };
            let free = lane.in_flight.is_empty();
            let has_place = if self.several {
                lane.takes_calls()
            } else {
                let is_soon_free = || lane.expected_wait(now).is_some_and(|wait| wait <= AHEAD);
                let room = lane.in_flight.len() < depth(lane, true);
                lane.phase == Phase::Serving && (free || room && !self.queue.is_empty() && is_soon_free())
            };
            if !has_place {
                return;
            }
            let (shares, lanes) = (&self.shares, &self.lanes);
            let next = self.queue.pop(|job| shares.may_run(job, lanes));
            let Some(job) = next.or_else(|| if free { self.steal(now) } else { None }) else {
                if free && !self.idle.contains(&index) {
                    if let Some(lane) = self.lanes[index].as_mut() {
                        lane.idle_since = now;
                    }
                    self.idle.push(index);
                }
                return;
            };
            self.idle.retain(|&i| i != index);
            let left =
                if free && !self.several { self.send(index, job, now) } else { self.send_behind(index, job, now) };
            if let Some(job) = left {
                self.queue.put_back(job);
                return;
            }
        }
    }

    /// Takes a call that waits behind a running one, the one that has been sent first. Behind short ones it may stay.
    fn steal(&mut self, now: Instant) -> Option<Box<Job>> {
        let waiting = self.lanes.iter_mut().flatten().filter(|lane| {
            lane.in_flight.len() > 1
                && lane.holds_waiting_call()
                && (lane.several || lane.expected_wait(now).is_none_or(|wait| wait > PATIENCE))
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

    /// Removes a lane whose worker is dead and returns it with its calls.
    pub(crate) fn remove_lane(&mut self, index: usize) -> Option<Lane> {
        self.idle.retain(|&i| i != index);
        let lane = self.lanes.get_mut(index)?.take()?;
        connection_pools::keep(&lane, &mut self.ended_connection_pools);
        Some(lane)
    }

    /// Stops sending calls to a lane and lets its worker end; calls it has not begun go to others.
    pub(crate) fn drain_lane(&mut self, index: usize, now: Instant) {
        self.idle.retain(|&i| i != index);
        let Some(lane) = self.lanes.get_mut(index).and_then(Option::as_mut) else { return };
        // Nobody else would run them when all stop.
        let jobs: Vec<_> = std::iter::from_fn(|| if self.stopping { None } else { lane.take_back_last() }).collect();
        lane.stop();
        let home = lane.home;
        for job in jobs.into_iter().rev() {
            self.resubmit(job, home, now);
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
        let now = Instant::now();
        let mut untaken = Vec::new();
        for lane in self.lanes.iter_mut().flatten().filter(|lane| lane.several) {
            take_back_untaken(lane, now, patience, &mut untaken);
            let gone: Vec<u64> =
                lane.in_flight.iter().filter(|c| !c.told_gone && c.job.sink.is_gone()).map(|c| c.number).collect();
            for number in gone {
                lane.let_go(number);
            }
        }
        for (job, home) in untaken {
            self.resubmit(job, home, now);
        }
        for index in 0..self.lanes.len() {
            if let Some(lane) = self.lanes[index].as_mut().filter(|lane| lane.several) {
                lane.look_whether_stuck();
                lane.send_kept();
                self.refill(index, now);
            }
        }
    }

    /// Lanes in a phase, of one generation.
    pub(crate) fn count(&self, generation: u64, phase: Phase) -> usize {
        self.lanes.iter().flatten().filter(|l| l.generation == generation && l.phase == phase).count()
    }

    /// Ends the wait of calls that have waited for too long (`queue` says what that is), and of those whose client has gone.
    pub(crate) fn expire(&mut self, now: Instant) {
        let mut over = self.queue.expire(now);
        let limit = self.queue.allowed_wait(now);
        for lane in self.lanes.iter_mut().flatten() {
            let last_is_over = |lane: &Lane| {
                lane.in_flight.back().is_some_and(|call| {
                    now.saturating_duration_since(call.job.entered) > limit || call.job.sink.is_gone()
                })
            };
            while last_is_over(lane)
                && let Some(job) = lane.take_back_waiting()
            {
                over.push(job);
            }
        }
        over.iter().for_each(|job| job.sink.fail(Fault::new(FaultKind::QueueTimeout)));
    }

    /// Calls in the queue that have waited for longer than this and may run.
    pub(crate) fn waiting_longer_than(&self, limit: Duration, now: Instant) -> usize {
        let late = |job: &&Job| now.saturating_duration_since(job.entered) > limit;
        self.queue.all().filter(late).filter(|job| self.shares.may_run(job, &self.lanes)).count()
    }

    /// Whether the supervisor wants to be told when a call has to wait. True if one does already.
    pub(crate) fn ask_for_workers(&mut self, ask: bool) -> bool {
        let waits = ask && !self.queue.is_empty();
        self.asks_for_workers = ask && !waits;
        waits
    }

    /// True, once, if a call waits and the supervisor wants to know.
    pub(crate) fn wants_workers(&mut self) -> bool {
        !self.queue.is_empty() && std::mem::take(&mut self.asks_for_workers)
    }

    /// Calls that wait: in the queue, and behind a running one in a lane.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.lanes.iter().flatten().map(Lane::waiting_calls).sum::<usize>()
    }

    /// Fails every waiting call.
    pub(crate) fn fail_queue(&mut self, fault: &Fault) {
        self.queue.drain().iter().for_each(|job| job.sink.fail(fault.clone()));
    }

    /// How long the oldest waiting call has waited.
    pub(crate) fn oldest_wait(&self, now: Instant) -> Option<Duration> {
        let in_lanes = self.lanes.iter().flatten().filter(|lane| lane.holds_waiting_call());
        let in_lanes = in_lanes.filter_map(|lane| lane.in_flight.back().map(|call| call.job.entered));
        in_lanes.chain(self.queue.oldest()).min().map(|entered| now.saturating_duration_since(entered))
    }

    /// Idle workers, the longest idle first.
    pub(crate) fn idle_longest(&self) -> Option<(usize, Duration)> {
        self.idle
            .iter()
            .map(|&i| (i, self.lanes[i].as_ref().map_or(Duration::ZERO, |l| l.idle_since.elapsed())))
            .max_by_key(|&(_, d)| d)
    }
}

/// Calls that a lane may hold, with one more that is short or not.
fn depth(lane: &Lane, short: bool) -> usize {
    match lane.several {
        true => lane.depth,
        false if short && lane.in_flight.are_short() => MOST,
        false => NEXT,
    }
}

/// Takes calls back that would wait for longer than they were expected to when they were laid there. When to look again.
fn spread_waiting(lane: &mut Lane, now: Instant, idle: bool, moved: &mut Vec<(Box<Job>, usize)>) -> Option<Duration> {
    if lane.in_flight.len() < 2 {
        return None;
    }
    // Twice the time for which calls are laid there: moving a call costs something too.
    let look = match lane.expected_wait(now) {
        Some(wait) if idle && wait <= 2 * PATIENCE => Duration::from_micros(PATIENCE),
        Some(wait) if !idle && wait <= 2 * AHEAD => Duration::from_micros(wait.min(1_000)),
        _ => {
            let home = lane.home;
            moved.extend(std::iter::from_fn(|| lane.take_back_waiting()).map(|job| (job, home)));
            return None;
        }
    };
    lane.holds_waiting_call().then_some(look.max(LOOK_AGAIN))
}

/// The same for a worker that runs several calls.
fn spread_untaken(
    lane: &mut Lane,
    now: Instant,
    patience: Duration,
    moved: &mut Vec<(Box<Job>, usize)>,
) -> Option<Duration> {
    take_back_untaken(lane, now, patience, moved);
    lane.look_whether_stuck();
    (lane.stuck || lane.holds_waiting_call()).then_some(UNTAKEN / 2)
}

/// Takes back what lies in the lane of a worker that runs several calls and has taken none for so long: one of them computes.
fn take_back_untaken(lane: &mut Lane, now: Instant, patience: Duration, to: &mut Vec<(Box<Job>, usize)>) {
    if lane.in_flight.len() > 1 && lane.untaken_for(now).is_some_and(|time| time > patience) {
        while let Some(job) = lane.take_back_waiting() {
            lane.stuck = true;
            to.push((job, lane.home));
        }
    }
}

#[cfg(test)]
#[path = "scheduler_stage.rs"]
mod stage;

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "simulation.rs"]
mod simulation;

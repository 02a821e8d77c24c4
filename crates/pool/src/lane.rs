//! One lane as the scheduler sees it: the sending half, the worker behind it and the calls it holds.
//!
//! A body that travels as a descriptor stays with its job until the worker has begun the call and asks for it: a call that
//! is taken back leaves nothing behind in the socket of a worker that does not run it.

use crate::call::{Call, RequestBody};
use crate::calls::Calls;
use crate::clock::Clock;
use crate::estimate::{Expected, RouteKey};
use crate::launcher::Launcher;
use crate::precedence;
use crate::reply_sink::Sink;
use crate::zygote::ZygoteLife;
use bytes::Bytes;
use howdah_transport::control_socket::ControlSocket;
use howdah_transport::wire::{CANCEL_CLIENT_GONE, CANCEL_DEADLINE, WireDone};
use howdah_transport::{BodyInLane, CallSender, CallSlot, PoolReport, SendError};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest body that is copied into the ring; longer ones travel as a descriptor.
const MAX_INLINE_BODY: usize = 32 * 1024;

/// A worker that has not begun anything after this time does not only wake up slowly.
const SLOW_START: Duration = Duration::from_millis(1);

/// Microseconds from `since` to `now`.
fn micros(now: Instant, since: Instant) -> u64 {
    now.saturating_duration_since(since).as_micros() as u64
}

/// A call on its way through the pool.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) call: Call,
    pub(crate) sink: Sink,
    /// When the pool got it.
    pub(crate) entered: Instant,
    /// Workers that died while this call's code ran in them.
    pub(crate) killed: u32,
    /// How often it was given to another worker because its own had died, for whatever reason.
    pub(crate) resubmitted: u32,
    /// Workers that gave this call back.
    pub(crate) given_back: usize,
    /// What its time is remembered by.
    pub(crate) key: RouteKey,
    /// What it is expected to take.
    pub(crate) expected: Expected,
    /// What it costs its flow in the waiting queue, in microseconds of a worker.
    pub(crate) cost: u32,
}

impl Job {
    /// A new call, of which nothing is expected yet.
    pub(crate) fn new(call: Call, sink: Sink) -> Self {
        let (entered, key) = (call.complete, RouteKey::of(&call));
        Self {
            call,
            sink,
            entered,
            killed: 0,
            resubmitted: 0,
            given_back: 0,
            key,
            expected: Expected::UNKNOWN,
            cost: 1,
        }
    }
}

/// How the body of a call in a lane reaches its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyWay {
    /// It lies in the call, or there is none.
    InCall,
    /// The worker is to ask for its descriptor.
    ToBeAskedFor,
    /// The worker has asked, so it has begun the call.
    Given,
}

/// A body that is to be sent to a worker.
#[derive(Debug)]
pub(crate) enum BodyToSend {
    Memory(Bytes),
    File(OwnedFd),
}

impl BodyToSend {
    /// The descriptor that the worker reads.
    pub(crate) fn into_descriptor(self) -> std::io::Result<OwnedFd> {
        match self {
            Self::File(fd) => Ok(fd),
            Self::Memory(bytes) => {
                let fd = rustix::fs::memfd_create("howdah-body", rustix::fs::MemfdFlags::CLOEXEC)?;
                let mut file = std::fs::File::from(fd);
                file.write_all(&bytes)?;
                Ok(file.into())
            }
        }
    }
}

/// A call that lies in a lane.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) number: u64,
    pub(crate) slot: CallSlot,
    pub(crate) job: Box<Job>,
    /// When it became the lane's first call, as far as the server can tell; in a lane whose worker runs several, when it
    /// was sent.
    pub(crate) since: Instant,
    /// What its worker is told with it (`precedence`): `wire::CALL_*`.
    pub(crate) flags: u32,
    /// How its body travels.
    pub(crate) body: BodyWay,
    /// A part of its answer has come.
    pub(crate) answering: bool,
    /// In a lane whose worker runs several: the worker was told that the client has gone.
    pub(crate) told_gone: bool,
    /// In a lane whose worker runs several: when the client was told that the call is past its deadline.
    pub(crate) overdue: Option<Instant>,
}

/// What did not fit into the request ring but must reach the worker.
#[derive(Debug, Clone, Copy)]
enum Unsent {
    Cancel(u64, u32),
    Stop,
}

/// Where a worker is in its life. Legal moves: Starting → Serving → Draining → Ending, and any → Ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Forked, has not said that it is ready.
    Starting,
    /// Takes calls.
    Serving,
    /// Finishes the calls it has, then ends (reload, shrink, retire).
    Draining,
    /// Is being killed; whatever it still says does not count.
    Ending,
}

impl Phase {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Serving => "serving",
            Self::Draining => "draining",
            Self::Ending => "ending",
        }
    }
}

/// Why a worker is being killed; decides what its call is told.
#[derive(Debug, Clone)]
pub(crate) enum KillReason {
    /// Its call ran past the deadline.
    Deadline,
    /// It runs several calls, and one of them did not end after its deadline.
    Stuck,
    /// It broke the lane's rules.
    Broken(String),
    /// The pool stops and the grace time is over.
    Stopping,
    /// It did not become ready in time.
    BootTimeout,
    /// The server's own reader of its lane panicked.
    Panicked,
    /// Its warm-up has left what a snapshot must not hold; the next one does without.
    WarmUp,
}

impl KillReason {
    /// The label in metrics.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Stuck => "stuck",
            Self::Broken(_) => "broken",
            Self::Stopping => "stopping",
            Self::BootTimeout => "boot_timeout",
            Self::Panicked => "panicked",
            Self::WarmUp => "warm_up",
        }
    }
}

/// How a worker in snapshot mode finds the pages that a request has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SnapshotWork {
    /// A position in `wire::SNAPSHOT_WAYS`.
    pub(crate) way: u32,
    /// Searches since the worker's start; without one, a restore copies the pages it knows.
    pub(crate) searches: u32,
    /// Pages that the last restore put back.
    pub(crate) restored_pages: u32,
    /// Nanoseconds it took.
    pub(crate) restore_ns: u32,
}

impl SnapshotWork {
    /// What the end of a call says of it; `None` without a snapshot.
    pub(crate) fn of(done: &WireDone) -> Option<Self> {
        let WireDone { searches, restored_pages, restore_ns, .. } = *done;
        (done.way() != 0).then_some(Self { way: done.way(), searches, restored_pages, restore_ns })
    }
}

#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) worker: u32,
    pub(crate) generation: u64,
    pub(crate) pid: u32,
    pub(crate) pidfd: Arc<OwnedFd>,
    /// Who may signal it.
    pub(crate) launcher: Launcher,
    /// The shard its reader runs on.
    pub(crate) home: usize,
    pub(crate) phase: Phase,
    /// It has said that it is ready at least once.
    pub(crate) was_ready: bool,
    pub(crate) kill_reason: Option<KillReason>,
    pub(crate) in_flight: Calls,
    /// Calls it holds at most.
    pub(crate) depth: usize,
    /// Its worker runs several calls.
    pub(crate) several: bool,
    /// Its worker's nice value may be higher than its own.
    pub(crate) gives_way: bool,
    /// The request ring had no room for the last call.
    pub(crate) full: bool,
    /// Calls were taken back because the worker did not take them for long, and it has not come back since.
    pub(crate) stuck: bool,
    /// The first call that a worker which runs several has not taken, and since when it is that.
    untaken: Option<(u64, Instant)>,
    pub(crate) calls: u64,
    pub(crate) started: Instant,
    pub(crate) idle_since: Instant,
    /// What its last call told of its snapshot.
    pub(crate) snapshot: Option<SnapshotWork>,
    pub(crate) control: Arc<ControlSocket>,
    /// Whose death ends the worker.
    pub(crate) zygote: Option<ZygoteLife>,
    /// By which its worker says when it began a call.
    pub(crate) clock: Clock,
    sender: CallSender,
    unsent: Vec<Unsent>,
    next_number: u64,
}

/// What identifies a worker that was just forked.
pub(crate) struct NewWorker {
    pub(crate) worker: u32,
    pub(crate) generation: u64,
    pub(crate) pid: u32,
    pub(crate) pidfd: Arc<OwnedFd>,
    pub(crate) home: usize,
    /// Calls its lane holds at most.
    pub(crate) depth: usize,
    pub(crate) several: bool,
    /// Who may signal it.
    pub(crate) launcher: Launcher,
}

impl Lane {
    pub(crate) fn new(new: NewWorker, sender: CallSender, control: Arc<ControlSocket>) -> Self {
        let now = Instant::now();
        Self {
            worker: new.worker,
            generation: new.generation,
            pid: new.pid,
            pidfd: new.pidfd,
            launcher: new.launcher,
            home: new.home,
            phase: Phase::Starting,
            was_ready: false,
            kill_reason: None,
            in_flight: Calls::with_capacity(new.depth.min(128)),
            depth: new.depth,
            several: new.several,
            gives_way: false,
            full: false,
            stuck: false,
            untaken: None,
            calls: 0,
            started: now,
            idle_since: now,
            snapshot: None,
            control,
            zygote: None,
            clock: Clock::system(),
            sender,
            unsent: Vec::new(),
            next_number: 1,
        }
    }

    /// What its worker tells about its connection pools.
    pub(crate) fn connection_pools(&self) -> Vec<PoolReport> {
        self.sender.pools()
    }

    /// Puts a call into the lane, at the time `now`. On an error the job comes back.
    pub(crate) fn send(&mut self, job: Box<Job>, flags: u32, now: Instant) -> Result<(), (Box<Job>, SendError)> {
        let number = self.next_number;
        let (in_lane, body) = match &job.call.body {
            RequestBody::Empty => (BodyInLane::None, BodyWay::InCall),
            RequestBody::Memory(bytes)
                if bytes.len() <= MAX_INLINE_BODY.min(self.sender.inline_room(&job.call.head)) =>
            {
                (BodyInLane::Inline(bytes), BodyWay::InCall)
            }
            body => (BodyInLane::Descriptor(body.len()), BodyWay::ToBeAskedFor),
        };
        match self.sender.send_call_with(&job.call.head, number, in_lane, flags) {
            Ok(slot) => {
                self.next_number += 1;
                // Taken back before it is begun, it leaves this claim behind, and the next call that gives way to none clears it.
                self.gives_way |= precedence::ordered(flags) == Some(true);
                let (answering, told_gone, overdue) = (false, false, None);
                self.in_flight.push(InFlight {
                    number,
                    slot,
                    job,
                    since: now,
                    flags,
                    body,
                    answering,
                    told_gone,
                    overdue,
                });
                Ok(())
            }
            Err(error) => {
                self.full = error == SendError::Full;
                Err((job, error))
            }
        }
    }

    /// The body of the call with this number, for which its worker asks: once, and only for a call that it runs. An error
    /// means that it broke the rules.
    pub(crate) fn give_body(&mut self, number: u64) -> Result<std::io::Result<BodyToSend>, &'static str> {
        // Those given before were received by now, if the calls they are for are done.
        let others_run = self.in_flight.iter().any(|call| call.body == BodyWay::Given);
        if !others_run && !self.control.all_received() {
            return Err("bodies that it asked for and did not take");
        }
        let call = self.answered(number).filter(|call| call.body == BodyWay::ToBeAskedFor && !call.answering);
        let call = call.ok_or("a body wanted that is not to be had")?;
        call.body = BodyWay::Given;
        Ok(match &call.job.call.body {
            RequestBody::File(fd, ..) => fd.try_clone().map(BodyToSend::File),
            RequestBody::Memory(bytes) => Ok(BodyToSend::Memory(bytes.clone())),
            RequestBody::Empty => Ok(BodyToSend::Memory(Bytes::new())),
        })
    }

    /// The body that was given has been sent.
    pub(crate) fn body_sent(&self) {
        self.sender.body_sent();
    }

    /// Takes the last call back if the worker has not begun it.
    pub(crate) fn take_back_last(&mut self) -> Option<Box<Job>> {
        let last = self.in_flight.back()?;
        if self.is_begun(last) || !self.sender.take_back(last.slot) {
            return None;
        }
        self.in_flight.pop_back().map(|f| f.job)
    }

    /// Takes the last call back if it waits behind another one.
    pub(crate) fn take_back_waiting(&mut self) -> Option<Box<Job>> {
        if self.in_flight.len() > 1 { self.take_back_last() } else { None }
    }

    /// Drops a call whose client has gone, or tells the worker if it has begun it.
    pub(crate) fn let_go(&mut self, number: u64) {
        let Some(call) = self.in_flight.get(number) else { return };
        if !self.is_begun(call) && self.sender.take_back(call.slot) {
            self.in_flight.remove(number);
        } else {
            self.abort(number);
        }
    }

    /// The call that an answer with this number is for. A worker that runs one at a time answers its first call.
    pub(crate) fn answered(&mut self, number: u64) -> Option<&mut InFlight> {
        if self.several {
            return self.in_flight.get_mut(number);
        }
        self.in_flight.front_mut().filter(|call| call.number == number)
    }

    /// True if the lane may be given a call.
    pub(crate) fn takes_calls(&self) -> bool {
        self.phase == Phase::Serving && self.in_flight.len() < self.depth && !self.full && !self.stuck
    }

    /// How long the worker has taken nothing of what lies there; `None` if nothing does.
    pub(crate) fn untaken_for(&mut self, now: Instant) -> Option<Duration> {
        let first = self.in_flight.iter().rev().take_while(|call| !self.is_begun(call)).last();
        let Some((number, sent)) = first.map(|call| (call.number, call.since)) else {
            self.untaken = None;
            return None;
        };
        let since = match self.untaken {
            Some((other, since)) if other == number => since,
            // It has taken some since the last look: it is slow, but comes back.
            Some(_) => now,
            None => sent,
        };
        self.untaken = Some((number, since));
        Some(now.saturating_duration_since(since))
    }

    /// Notices that the worker has taken all it was sent.
    pub(crate) fn look_whether_stuck(&mut self) {
        self.stuck = self.stuck && !self.sender.is_empty();
    }

    /// How many calls lie there without being run, behind the one that the worker takes first.
    pub(crate) fn waiting_calls(&self) -> usize {
        let untaken = self.in_flight.iter().rev().take_while(|call| !self.is_begun(call)).count();
        untaken.min(self.in_flight.len().saturating_sub(1))
    }

    /// True if the lane's last call lies there without being run.
    pub(crate) fn holds_waiting_call(&self) -> bool {
        self.in_flight.len() > 1 && self.in_flight.back().is_some_and(|f| !self.is_begun(f))
    }

    /// How long a call would wait behind those the lane has, in microseconds, as far as one can tell. `None`: the one that
    /// runs has taken longer than expected, so nobody can tell.
    pub(crate) fn expected_wait(&self, now: Instant) -> Option<u64> {
        let Some(front) = self.in_flight.front() else { return Some(0) };
        let ran = micros(now, front.since);
        // What the server knows by itself is enough as long as things go as expected.
        if ran <= u64::from(front.job.expected.mean) {
            return Some(self.in_flight.expected_us() - ran);
        }
        self.look_at_progress(now)
    }

    /// The same, by what the worker says it has begun. Costs cache misses.
    fn look_at_progress(&self, now: Instant) -> Option<u64> {
        let mut ahead = 0;
        for call in self.in_flight.iter().rev() {
            if self.is_begun(call) {
                // A claim of the worker's. It can have begun the call neither before that was sent nor in the future.
                let ran = self
                    .sender
                    .ran_us(call.slot, self.clock.micros(now))
                    .map_or(u64::MAX, u64::from)
                    .min(micros(now, call.since));
                return call.job.expected.remaining(ran).map(|remaining| ahead + remaining);
            }
            ahead += u64::from(call.job.expected.mean);
        }
        // The worker sleeps, or is on its way: unless that takes too long.
        (self.front_age(now) <= SLOW_START).then_some(ahead)
    }

    /// How long the call that the worker takes first has been there.
    pub(crate) fn front_age(&self, now: Instant) -> Duration {
        self.in_flight.front().map_or(Duration::ZERO, |front| now.saturating_duration_since(front.since))
    }

    /// True if the worker has begun this call, as far as it tells.
    pub(crate) fn is_begun(&self, call: &InFlight) -> bool {
        call.answering || call.body == BodyWay::Given || self.sender.is_begun(call.slot)
    }

    /// The call whose code a worker that runs several was running (as far as it tells).
    pub(crate) fn selected(&self) -> Option<u64> {
        Some(self.sender.selected()).filter(|&number| self.several && number != 0)
    }

    /// True if the worker died because its zygote had.
    pub(crate) fn has_lost_its_zygote(&self) -> bool {
        self.zygote.as_ref().is_some_and(ZygoteLife::is_over)
    }

    /// True if the call's script has run past its time limit (as far as the worker tells).
    pub(crate) fn is_timed_out(&self, number: u64) -> bool {
        self.sender.timed_out(number)
    }

    /// Tells the worker that the client of a call has gone.
    pub(crate) fn abort(&mut self, number: u64) {
        if !self.several {
            self.sender.abort(number);
        } else if let Some(call) = self.in_flight.get_mut(number)
            && !std::mem::replace(&mut call.told_gone, true)
        {
            self.send_or_keep(Unsent::Cancel(number, CANCEL_CLIENT_GONE));
        }
    }

    /// Tells a worker that runs several calls that one of them is past its deadline.
    pub(crate) fn cancel_overdue(&mut self, number: u64) {
        if let Some(call) = self.in_flight.get_mut(number) {
            call.overdue = Some(Instant::now());
            self.send_or_keep(Unsent::Cancel(number, CANCEL_DEADLINE));
        }
    }

    fn send_or_keep(&mut self, message: Unsent) {
        self.unsent.push(message);
        self.send_kept();
    }

    /// True if something waits for room in the request ring.
    pub(crate) fn wants_room(&self) -> bool {
        self.full || !self.unsent.is_empty()
    }

    /// Sends what had no room.
    pub(crate) fn send_kept(&mut self) {
        self.full = false;
        while let Some(&message) = self.unsent.first() {
            let sent = match message {
                Unsent::Cancel(number, reason) => self.sender.send_cancel(number, reason),
                Unsent::Stop => self.sender.send_stop(),
            };
            match sent {
                Ok(()) => self.unsent.remove(0),
                Err(SendError::Full) => {
                    self.full = true;
                    return;
                }
                Err(error) => return self.kill(KillReason::Broken(error.to_string())),
            };
        }
    }

    /// Asks the worker to end after the calls it has.
    pub(crate) fn stop(&mut self) {
        if matches!(self.phase, Phase::Starting | Phase::Serving) {
            self.phase = Phase::Draining;
            if self.several {
                self.send_or_keep(Unsent::Stop);
            } else if self.sender.send_stop().is_err() {
                self.kill(KillReason::Stopping);
            }
        }
    }

    pub(crate) fn kill(&mut self, reason: KillReason) {
        if self.phase != Phase::Ending || self.kill_reason.is_none() {
            self.kill_reason.get_or_insert(reason);
        }
        self.phase = Phase::Ending;
        self.launcher.kill_worker(&self.pidfd);
    }
}

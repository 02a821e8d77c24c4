//! One lane as the scheduler sees it: the sending half, its worker, and the requests it holds. `serial` and
//! `multiplexed` hold the parts that differ between workers that run one request at a time and those that run many.
//!
//! A body that travels as a descriptor stays with its request until the worker has begun the request and asks for the
//! body. So a request that is taken back leaves nothing in the socket of a worker that does not run it.

use crate::lane::requests::{BodyState, InFlight, LaneRequests};
use crate::process::launcher::Launcher;
use crate::process::worker_state::{KillReason, WorkerEvent, WorkerState};
use crate::process::zygote::ZygoteLife;
use crate::request::RequestBody;
use crate::request::last_request::LastRequest;
use crate::request::pending::Pending;
use bytes::Bytes;
use howdah_transport::control_socket::ControlSocket;
use howdah_transport::wire::WireDone;
use howdah_transport::{BodyInLane, PoolReport, RequestSender, SendError};
use multiplexed::Unsent;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) mod clock;
pub(crate) mod connection_pools;
mod multiplexed;
pub(crate) mod precedence;
pub(crate) mod requests;
mod serial;

pub(crate) use multiplexed::MultiplexedLane;
pub(crate) use serial::SerialLane;

/// Maximum size of a body that is copied into the ring, in bytes; longer ones travel as a descriptor.
const MAX_INLINE_BODY: usize = 32 * 1024;

/// Requests for which a serial lane allocates room at its start, and the maximum of that for a multiplexed lane.
const INITIAL_CAPACITY: usize = 2;
const MANY_REQUESTS: usize = 128;

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

/// A snapshot worker's report about its restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SnapshotWork {
    /// Index into `wire::SNAPSHOT_WAYS`.
    pub(crate) way: u32,
    /// Searches for written pages since the worker's start. A restore without a search copies back the pages it knows.
    pub(crate) searches: u32,
    /// Pages that the last restore put back.
    pub(crate) restored_pages: u32,
    /// Duration of the last restore, in nanoseconds.
    pub(crate) restore_ns: u32,
}

impl SnapshotWork {
    /// The restore's report at the end of a request; `None` without a snapshot.
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
    /// Sends signals to the worker.
    pub(crate) launcher: Launcher,
    /// The I/O thread its reader runs on.
    pub(crate) home: usize,
    pub(crate) state: WorkerState,
    /// The worker has begun to serve.
    pub(crate) was_ready: bool,
    pub(crate) in_flight: LaneRequests,
    pub(crate) kind: LaneKind,
    pub(crate) requests: u64,
    pub(crate) started: Instant,
    pub(crate) idle_since: Instant,
    /// When the draining worker had no request left.
    pub(crate) ends_since: Option<Instant>,
    /// The request that ended last.
    pub(crate) last: Option<LastRequest>,
    /// The last request's snapshot report.
    pub(crate) snapshot: Option<SnapshotWork>,
    pub(crate) control: Arc<ControlSocket>,
    /// The zygote whose death ends the worker.
    pub(crate) zygote: Option<ZygoteLife>,
    sender: RequestSender,
    next_number: u64,
}

/// Execution model of the lane's worker.
#[derive(Debug)]
pub(crate) enum LaneKind {
    /// Runs one request after the other.
    Serial(SerialLane),
    /// Runs many requests at once.
    Multiplexed(MultiplexedLane),
}

/// Identity of a worker that was just forked.
pub(crate) struct NewWorker {
    pub(crate) worker: u32,
    pub(crate) generation: u64,
    pub(crate) pid: u32,
    pub(crate) pidfd: Arc<OwnedFd>,
    pub(crate) home: usize,
    /// Maximum number of requests in its lane; `None` for a serial worker.
    pub(crate) concurrency: Option<usize>,
    /// Sends signals to the worker.
    pub(crate) launcher: Launcher,
}

impl Lane {
    pub(crate) fn new(new: NewWorker, sender: RequestSender, control: Arc<ControlSocket>) -> Self {
        let now = Instant::now();
        let kind = match new.concurrency {
            Some(depth) => LaneKind::Multiplexed(MultiplexedLane::new(depth)),
            None => LaneKind::Serial(SerialLane::new()),
        };
        Self {
            worker: new.worker,
            generation: new.generation,
            pid: new.pid,
            pidfd: new.pidfd,
            launcher: new.launcher,
            home: new.home,
            state: WorkerState::default(),
            was_ready: false,
            in_flight: LaneRequests::with_capacity(new.concurrency.unwrap_or(INITIAL_CAPACITY).min(MANY_REQUESTS)),
            kind,
            requests: 0,
            started: now,
            idle_since: now,
            ends_since: None,
            last: None,
            snapshot: None,
            control,
            zygote: None,
            sender,
            next_number: 1,
        }
    }

    /// Reports of the worker's connection pools.
    pub(crate) fn connection_pools(&self) -> Vec<PoolReport> {
        self.sender.pools()
    }

    /// Puts a request into the lane, at the time `now`. On an error the request is returned.
    pub(crate) fn send(
        &mut self,
        pending: Box<Pending>,
        flags: u32,
        now: Instant,
    ) -> Result<(), (Box<Pending>, SendError)> {
        let number = self.next_number;
        let (in_lane, body) = match &pending.request.body {
            RequestBody::Empty => (BodyInLane::None, BodyState::InRequest),
            RequestBody::Dropped(len) => (BodyInLane::Dropped(*len), BodyState::InRequest),
            RequestBody::Memory(bytes)
                if bytes.len() <= MAX_INLINE_BODY.min(self.sender.inline_room(&pending.request.head)) =>
            {
                (BodyInLane::Inline(bytes), BodyState::InRequest)
            }
            RequestBody::Stream(_) => (BodyInLane::Stream, BodyState::ToBeAskedFor),
            body => (BodyInLane::Descriptor(body.len()), BodyState::ToBeAskedFor),
        };
        match self.sender.send_request_with(&pending.request.head, number, in_lane, flags) {
            Ok(slot) => {
                self.next_number += 1;
                if let LaneKind::Serial(serial) = &mut self.kind {
                    serial.note_sent(flags);
                }
                let (responding, abort_sent, overdue, cpu_before) = (false, false, None, None);
                self.in_flight.push(InFlight {
                    number,
                    slot,
                    pending,
                    since: now,
                    flags,
                    body,
                    responding,
                    abort_sent,
                    overdue,
                    noted: false,
                    cpu_before,
                });
                Ok(())
            }
            Err(error) => {
                if let LaneKind::Multiplexed(multiplexed) = &mut self.kind
                    && error == SendError::Full
                {
                    multiplexed.note_full();
                }
                Err((pending, error))
            }
        }
    }

    /// Returns the body of the request `number` for its worker, which may ask once, and only for a request that it
    /// runs. An outer error means that the worker broke the protocol.
    pub(crate) fn give_body(&mut self, number: u64) -> Result<std::io::Result<BodyToSend>, &'static str> {
        // Once the requests of earlier bodies are done, the worker must have received those bodies.
        if !self.control.all_received() && !self.in_flight.iter().any(InFlight::may_await_body) {
            return Err("did not receive request bodies that it had requested");
        }
        let request =
            self.responded_to(number).filter(|request| request.body == BodyState::ToBeAskedFor && !request.responding);
        let request = request.ok_or("requested a body that does not exist")?;
        let body = &mut request.pending.request.body;
        request.body = if matches!(body, RequestBody::Stream(_)) { BodyState::GivenStream } else { BodyState::Given };
        Ok(match body {
            RequestBody::File(fd, ..) => fd.try_clone().map(BodyToSend::File),
            RequestBody::Memory(bytes) => Ok(BodyToSend::Memory(bytes.clone())),
            // The server keeps no copy of the script's end, so the stream ends with the script's process.
            RequestBody::Stream(_) => match std::mem::take(body) {
                RequestBody::Stream(fd) => Ok(BodyToSend::File(fd)),
                _ => Ok(BodyToSend::Memory(Bytes::new())),
            },
            RequestBody::Empty | RequestBody::Dropped(_) => Ok(BodyToSend::Memory(Bytes::new())),
        })
    }

    /// Notes that the body from `give_body` was sent.
    pub(crate) fn message_sent(&self) {
        self.sender.message_sent();
    }

    /// Takes the last request back if the worker has not begun it.
    pub(crate) fn take_back_last(&mut self) -> Option<Box<Pending>> {
        let last = self.in_flight.back()?;
        if self.is_begun(last) || !self.sender.take_back(last.slot) {
            return None;
        }
        self.in_flight.pop_back().map(|f| f.pending)
    }

    /// Takes the last request back if it waits behind another one.
    pub(crate) fn take_back_waiting(&mut self) -> Option<Box<Pending>> {
        if self.in_flight.len() > 1 { self.take_back_last() } else { None }
    }

    /// Takes back a request whose client has gone, or notifies the worker if it has begun the request.
    pub(crate) fn let_go(&mut self, number: u64) {
        let Some(request) = self.in_flight.get(number) else { return };
        if !self.is_begun(request) && self.sender.take_back(request.slot) {
            self.in_flight.remove(number);
        } else {
            self.abort(number);
        }
    }

    /// The request for a response with this number. A serial worker responds only to its first request.
    pub(crate) fn responded_to(&mut self, number: u64) -> Option<&mut InFlight> {
        match self.kind {
            LaneKind::Serial(_) => self.in_flight.front_mut().filter(|request| request.number == number),
            LaneKind::Multiplexed(_) => self.in_flight.get_mut(number),
        }
    }

    /// Removes a request that ended at the time `now`.
    pub(crate) fn end_request(&mut self, number: u64, now: Instant) -> Option<InFlight> {
        let request = self.in_flight.remove(number)?;
        self.requests += 1;
        match &mut self.kind {
            LaneKind::Serial(serial) => {
                serial.note_done(request.flags);
                if let Some(next) = self.in_flight.front_mut() {
                    next.since = now;
                }
            }
            LaneKind::Multiplexed(multiplexed) => multiplexed.note_done(),
        }
        Some(request)
    }

    /// True if the lane is multiplexed and takes another request.
    pub(crate) fn has_place(&self) -> bool {
        match &self.kind {
            LaneKind::Serial(_) => false,
            LaneKind::Multiplexed(multiplexed) => self.state.is_serving() && multiplexed.has_place(&self.in_flight),
        }
    }

    /// Maximum number of requests in a multiplexed lane; 1 for a serial lane.
    pub(crate) const fn depth(&self) -> usize {
        match &self.kind {
            LaneKind::Serial(_) => 1,
            LaneKind::Multiplexed(multiplexed) => multiplexed.depth(),
        }
    }

    /// Number of further requests that the lane takes.
    pub(crate) fn free_places(&self) -> usize {
        if self.has_place() { self.depth().saturating_sub(self.in_flight.len()) } else { 0 }
    }

    /// Time for which a multiplexed worker has taken none of the waiting requests; `None` if none wait.
    pub(crate) fn untaken_for(&mut self, now: Instant) -> Option<Duration> {
        match &mut self.kind {
            LaneKind::Serial(_) => None,
            LaneKind::Multiplexed(multiplexed) => multiplexed.untaken_for(&self.in_flight, &self.sender, now),
        }
    }

    /// Clears `stuck` if a multiplexed worker has taken everything it was sent. Returns true if it is still stuck.
    pub(crate) fn check_stuck(&mut self) -> bool {
        let LaneKind::Multiplexed(multiplexed) = &mut self.kind else { return false };
        multiplexed.check_stuck(&self.sender);
        multiplexed.stuck
    }

    /// Marks a multiplexed worker as stuck, after requests that it did not take were taken back.
    pub(crate) fn note_stuck(&mut self) {
        if let LaneKind::Multiplexed(multiplexed) = &mut self.kind {
            multiplexed.stuck = true;
        }
    }

    /// True if the worker's nice value may be raised.
    pub(crate) const fn gives_way(&self) -> bool {
        matches!(&self.kind, LaneKind::Serial(serial) if serial.gives_way)
    }

    /// Number of requests in the lane that the worker has not begun, without the one that it takes first.
    pub(crate) fn waiting_requests(&self) -> usize {
        let untaken = self.in_flight.iter().rev().take_while(|request| !self.is_begun(request)).count();
        untaken.min(self.in_flight.len().saturating_sub(1))
    }

    /// True if the lane's last request waits behind another one.
    pub(crate) fn holds_waiting_request(&self) -> bool {
        self.in_flight.len() > 1 && self.in_flight.back().is_some_and(|f| !self.is_begun(f))
    }

    /// Expected wait of a further request in this lane, in microseconds; `None` if unknown, as in a multiplexed lane.
    pub(crate) fn expected_wait(&self, now: Instant) -> Option<u64> {
        match &self.kind {
            LaneKind::Serial(serial) => serial.expected_wait(&self.in_flight, &self.sender, now),
            LaneKind::Multiplexed(_) => None,
        }
    }

    /// True if the worker has begun this request, according to its frames and shared memory.
    pub(crate) fn is_begun(&self, request: &InFlight) -> bool {
        request.is_begun(&self.sender)
    }

    /// The request whose code a multiplexed worker was running, according to its shared memory.
    pub(crate) fn selected(&self) -> Option<u64> {
        let is_multiplexed = matches!(self.kind, LaneKind::Multiplexed(_));
        Some(self.sender.selected()).filter(|&number| is_multiplexed && number != 0)
    }

    /// True if the request at index `at` is the one that the worker takes first. In a multiplexed lane only a sole
    /// request is.
    pub(crate) fn takes_first(&self, at: usize) -> bool {
        match self.kind {
            LaneKind::Serial(_) => at == 0,
            LaneKind::Multiplexed(_) => self.in_flight.len() == 1,
        }
    }

    /// True if the worker's zygote has ended or was ordered to, which ends the worker too.
    pub(crate) fn has_lost_its_zygote(&self) -> bool {
        self.zygote.as_ref().is_some_and(ZygoteLife::is_over)
    }

    /// True if the request's script has exceeded its time limit, according to the worker's shared memory.
    pub(crate) fn is_timed_out(&self, number: u64) -> bool {
        self.sender.timed_out(number)
    }

    /// Notifies the worker that the client of a request has gone.
    pub(crate) fn abort(&mut self, number: u64) {
        match self.kind {
            LaneKind::Serial(_) => self.sender.abort(number),
            LaneKind::Multiplexed(_) => {
                if let Some(request) = self.in_flight.get_mut(number)
                    && !std::mem::replace(&mut request.abort_sent, true)
                {
                    self.send_or_keep(Unsent::ClientGone(number));
                }
            }
        }
    }

    /// Notifies a multiplexed worker that one of its requests is past its deadline.
    pub(crate) fn cancel_overdue(&mut self, number: u64) {
        if let Some(request) = self.in_flight.get_mut(number) {
            request.overdue = Some(Instant::now());
            self.send_or_keep(Unsent::Overdue(number));
        }
    }

    fn send_or_keep(&mut self, message: Unsent) {
        let LaneKind::Multiplexed(multiplexed) = &mut self.kind else { return };
        if let Err(error) = multiplexed.send_or_keep(message, &mut self.sender) {
            self.kill(KillReason::Broken(error.to_string()));
        }
    }

    /// True if a message or request to a multiplexed worker waits for room in the request ring.
    pub(crate) const fn wants_room(&self) -> bool {
        matches!(&self.kind, LaneKind::Multiplexed(multiplexed) if multiplexed.wants_room())
    }

    /// Sends a multiplexed worker the messages that had no room in the request ring.
    pub(crate) fn send_kept(&mut self) {
        let LaneKind::Multiplexed(multiplexed) = &mut self.kind else { return };
        if let Err(error) = multiplexed.send_kept(&mut self.sender) {
            self.kill(KillReason::Broken(error.to_string()));
        }
    }

    /// Notes that the worker reported ready. Returns false if it is not to serve any more.
    pub(crate) fn note_ready(&mut self) -> bool {
        let serves = self.state.note(WorkerEvent::Ready);
        self.was_ready |= serves;
        serves
    }

    /// Asks the worker to exit after its current requests. Kills a serial worker whose request ring has no room for
    /// that.
    pub(crate) fn stop(&mut self) {
        if self.state.note(WorkerEvent::Stop) {
            self.request_stop();
        }
    }

    /// Condemns a worker that will be killed for `reason` once it was asked for its stack.
    pub(crate) fn condemn(&mut self, reason: KillReason) {
        let is_news = self.state.is_to_stay();
        if self.state.note(WorkerEvent::Condemn(reason)) && is_news {
            self.request_stop();
        }
    }

    fn request_stop(&mut self) {
        match self.kind {
            LaneKind::Serial(_) => {
                if self.sender.send_stop().is_err() {
                    self.kill(KillReason::Stopping);
                }
            }
            LaneKind::Multiplexed(_) => self.send_or_keep(Unsent::Stop),
        }
    }

    /// Kills the worker. Only the first reason is kept.
    pub(crate) fn kill(&mut self, reason: KillReason) {
        self.state.note(WorkerEvent::Kill(reason));
        self.launcher.kill_worker(&self.pidfd);
    }
}

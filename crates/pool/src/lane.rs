//! One lane as the scheduler sees it: the sending half, the worker behind it and the calls it holds.

use crate::call::{Call, RequestBody};
use crate::fault::{Fault, FaultKind};
use crate::reply_sink::Sink;
use howdah_transport::control_socket::ControlSocket;
use howdah_transport::{BodyInLane, CallSender, CallSlot, SendError};
use std::collections::VecDeque;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// Calls a lane holds at most: the running one, and one that the worker finds without waiting for the server.
pub(crate) const DEPTH: usize = 2;
/// Longest body that is copied into the ring; longer ones travel as a descriptor.
const MAX_INLINE_BODY: usize = 32 * 1024;

/// A call on its way through the pool.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) call: Call,
    pub(crate) sink: Sink,
    /// When the pool got it.
    pub(crate) entered: Instant,
}

/// A call that lies in a lane.
#[derive(Debug)]
pub(crate) struct InFlight {
    pub(crate) number: u64,
    pub(crate) slot: CallSlot,
    pub(crate) job: Box<Job>,
    /// When it became the lane's first call, as far as the server can tell.
    pub(crate) since: Instant,
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
    /// It broke the lane's rules.
    Broken(String),
    /// The pool stops and the grace time is over.
    Stopping,
    /// It did not become ready in time.
    BootTimeout,
}

impl KillReason {
    /// The label in metrics.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Broken(_) => "broken",
            Self::Stopping => "stopping",
            Self::BootTimeout => "boot_timeout",
        }
    }
}

/// How a worker in snapshot mode finds the pages that a request has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SnapshotWork {
    /// A position in `wire::SNAPSHOT_WAYS`.
    pub(crate) way: u32,
    /// Searches since the worker's start; without one, a restore copies the pages it knows.
    pub(crate) searches: u32,
}

#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) worker: u32,
    pub(crate) generation: u64,
    pub(crate) pid: u32,
    pub(crate) pidfd: Arc<OwnedFd>,
    /// The shard its reader runs on.
    pub(crate) home: usize,
    pub(crate) phase: Phase,
    /// It has said that it is ready at least once.
    pub(crate) was_ready: bool,
    pub(crate) kill_reason: Option<KillReason>,
    pub(crate) in_flight: VecDeque<InFlight>,
    pub(crate) calls: u64,
    pub(crate) started: Instant,
    pub(crate) idle_since: Instant,
    /// What its last call told of its snapshot.
    pub(crate) snapshot: Option<SnapshotWork>,
    pub(crate) control: Arc<ControlSocket>,
    sender: CallSender,
    next_number: u64,
}

/// What identifies a worker that was just forked.
pub(crate) struct NewWorker {
    pub(crate) worker: u32,
    pub(crate) generation: u64,
    pub(crate) pid: u32,
    pub(crate) pidfd: Arc<OwnedFd>,
    pub(crate) home: usize,
}

impl Lane {
    pub(crate) fn new(new: NewWorker, sender: CallSender, control: Arc<ControlSocket>) -> Self {
        let now = Instant::now();
        Self {
            worker: new.worker,
            generation: new.generation,
            pid: new.pid,
            pidfd: new.pidfd,
            home: new.home,
            phase: Phase::Starting,
            was_ready: false,
            kill_reason: None,
            in_flight: VecDeque::with_capacity(DEPTH),
            calls: 0,
            started: now,
            idle_since: now,
            snapshot: None,
            control,
            sender,
            next_number: 1,
        }
    }

    /// Puts a call into the lane. On an error the job comes back.
    pub(crate) fn send(&mut self, job: Box<Job>) -> Result<(), (Box<Job>, SendError)> {
        let number = self.next_number;
        // Used up even if the call does not fit: its body's descriptor may already be on its way under this number.
        self.next_number += 1;
        let sent = match &job.call.body {
            RequestBody::Empty => self.sender.send_call(&job.call.head, number, BodyInLane::None),
            RequestBody::Memory(bytes)
                if bytes.len() <= MAX_INLINE_BODY.min(self.sender.inline_room(&job.call.head)) =>
            {
                self.sender.send_call(&job.call.head, number, BodyInLane::Inline(bytes))
            }
            body => match self.send_descriptor(number, body) {
                Ok(()) => self.sender.send_call(&job.call.head, number, BodyInLane::Descriptor(body.len())),
                Err(error) => {
                    job.sink.fail(Fault::with(FaultKind::Storage, format!("cannot hand a body over: {error}")));
                    return Ok(());
                }
            },
        };
        match sent {
            Ok(slot) => {
                self.in_flight.push_back(InFlight { number, slot, job, since: Instant::now() });
                Ok(())
            }
            Err(error) => Err((job, error)),
        }
    }

    fn send_descriptor(&self, number: u64, body: &RequestBody) -> std::io::Result<()> {
        match body {
            RequestBody::File(fd, _) => self.control.send_body(number, fd.as_fd()),
            RequestBody::Memory(bytes) => {
                let fd = rustix::fs::memfd_create("howdah-body", rustix::fs::MemfdFlags::CLOEXEC)?;
                let mut file = std::fs::File::from(fd);
                file.write_all(bytes)?;
                self.control.send_body(number, file.as_fd())
            }
            RequestBody::Empty => Ok(()),
        }
    }

    /// Takes the last call back if the worker has not begun it.
    pub(crate) fn take_back_last(&mut self) -> Option<Box<Job>> {
        let last = self.in_flight.back()?;
        if !self.sender.take_back(last.slot) {
            return None;
        }
        self.in_flight.pop_back().map(|f| f.job)
    }

    /// True if the lane's last call lies there without being run.
    pub(crate) fn holds_waiting_call(&self) -> bool {
        self.in_flight.len() > 1 && self.in_flight.back().is_some_and(|f| !self.sender.is_begun(f.slot))
    }

    /// True if the worker has begun this call, as far as it tells.
    pub(crate) fn is_begun(&self, call: &InFlight) -> bool {
        self.sender.is_begun(call.slot)
    }

    pub(crate) fn abort(&self, number: u64) {
        self.sender.abort(number);
    }

    /// Asks the worker to end after the calls it has.
    pub(crate) fn stop(&mut self) {
        if matches!(self.phase, Phase::Starting | Phase::Serving) {
            self.phase = Phase::Draining;
            if self.sender.send_stop().is_err() {
                self.kill(KillReason::Stopping);
            }
        }
    }

    pub(crate) fn kill(&mut self, reason: KillReason) {
        if self.phase != Phase::Ending || self.kill_reason.is_none() {
            self.kill_reason.get_or_insert(reason);
        }
        self.phase = Phase::Ending;
        // An error means that it is dead already; its reader will notice.
        let _ = rustix::process::pidfd_send_signal(&*self.pidfd, rustix::process::Signal::KILL);
    }
}

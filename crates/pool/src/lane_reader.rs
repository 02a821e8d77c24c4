//! The task that reads one lane: reading, sleeping, waiting for clients, and the worker's death. `frames` interprets
//! the frames; `open_responses` holds the responses that have begun.
//!
//! It runs on the lane's home I/O thread and owns the receiving half, so reading needs no lock. For most requests the
//! pool's lock is taken twice: at the first frame and at the end (`LaneHandle`). Frames of a multiplexed worker belong
//! to alternating requests, and one slow client must not hold up the others.
//!
//! A worker may send anything. `frame_order` limits the order of frames, `response::head` and `log_limit` their volume,
//! and `waste` how often a worker may wake the server without effect. The reader always ends with `finish`, even after
//! a panic: it removes the lane, answers or reruns the lane's requests, and notifies the supervisor.

use crate::descriptor;
use crate::fault::{Fault, FaultKind};
use crate::lane::NewWorker;
use crate::lane_reader::handle::LaneHandle;
use crate::lane_reader::waste::Waste;
use crate::panics;
use crate::process::end::Death;
use crate::process::worker_state::KillReason;
use crate::response::sink::Sink;
use howdah_transport::FrameReceiver;
use howdah_transport::wire::FrameKind;
use open_responses::OpenResponses;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use worker_log::WorkerLog;

mod frame_order;
mod frames;
pub(crate) mod handle;
mod open_responses;
pub(crate) mod rescue;
mod waste;
pub(crate) mod worker_log;

/// The ring space of frames is released to the worker once per batch, at the end of a request, and before a copied
/// frame of at least this size is handled. A body that was left in the ring delays that.
const LARGE_FRAME: usize = 16 * 1024;
/// Interval at which a response without budget tries again: budget freed by other responses does not wake its reader.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time that a worker waits with a response that lacks budget while its client reads nothing.
const STALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Frames read before other tasks of the thread get a turn; up to twice as many if the batch would end within a
/// response.
const BATCH: usize = 64;

pub(crate) struct LaneReader {
    lane: LaneHandle,
    frames: FrameReceiver,
    eventfd: Arc<OwnedFd>,
    pidfd: Arc<OwnedFd>,
    /// Responses that have begun.
    open: OpenResponses,
    /// The current response has more data waiting for its front than allowed.
    overfull: bool,
    /// Responses whose body may still be in the ring.
    holding: Vec<Sink>,
    /// Start of the current batch: precise enough for all its requests.
    now: Instant,
    /// The worker has reported ready.
    ready: bool,
    log: WorkerLog,
    waste: Waste,
    /// Collected parts of an unfinished order for connections and channels.
    live_parts: Vec<u8>,
}

/// End of a batch.
enum Batch {
    /// The ring is empty; the number of frames that were read.
    Empty(usize),
    More,
    Broken(String),
}

impl LaneReader {
    /// The reader of a worker's lane.
    pub(crate) fn new(lane: LaneHandle, of: &NewWorker, frames: FrameReceiver, eventfd: OwnedFd) -> Self {
        let now = Instant::now();
        Self {
            lane,
            frames,
            eventfd: Arc::new(eventfd),
            pidfd: of.pidfd.clone(),
            open: OpenResponses::new(of.concurrency.is_some()),
            overfull: false,
            holding: Vec::new(),
            now,
            ready: false,
            log: WorkerLog::new(now),
            waste: Waste::default(),
            live_parts: Vec::new(),
        }
    }

    /// Reads until the worker is dead, then handles its requests.
    pub(crate) async fn run(mut self) {
        if panics::caught(self.read()).await.is_none() {
            tracing::error!(pool = self.lane.pool(), pid = self.lane.pid(), "lane reader panicked: killing its worker");
            self.kill(KillReason::Panicked);
            // The worker's number is free only after its death.
            if let Ok(pidfd) = descriptor::watch(self.pidfd.clone()) {
                let _ = pidfd.readable().await;
            }
        }
        self.finish();
    }

    fn kill(&self, reason: KillReason) {
        self.lane.kill(reason);
    }

    /// Reads until the worker is dead.
    async fn read(&mut self) {
        let registered = descriptor::watch(self.eventfd.clone())
            .and_then(|eventfd| Ok((eventfd, descriptor::watch(self.pidfd.clone())?)));
        let (eventfd, pidfd) = match registered {
            Ok(pair) => pair,
            Err(error) => {
                return self.kill(KillReason::Broken(format!("the server cannot poll its descriptors: {error}")));
            }
        };
        // The reader was woken since it last read frames.
        let mut woken = false;
        loop {
            let batch = self.read_batch().await;
            if std::mem::take(&mut woken) && matches!(batch, Batch::Empty(0)) {
                self.waste.note(self.is_idle());
            }
            if self.waste.is_too_much() {
                self.kill(KillReason::Broken("kept the server busy without a request".into()));
                let _ = pidfd.readable().await;
                break;
            }
            if self.waste.wants_pause() {
                tokio::time::sleep(waste::PAUSE).await;
                self.settle();
            }
            match batch {
                Batch::More => {
                    tokio::task::yield_now().await;
                    self.settle();
                    continue;
                }
                Batch::Broken(what) => {
                    self.kill(KillReason::Broken(what));
                    // Read nothing more from the worker; wait for its death.
                    let _ = pidfd.readable().await;
                    break;
                }
                Batch::Empty(_) => {}
            }
            if !self.holding.is_empty() {
                // Fronts that were woken for these responses run first.
                step_back().await;
                self.settle();
                continue;
            }
            if !self.frames.prepare_sleep() {
                if self.waste.could_not_sleep() {
                    tokio::task::yield_now().await;
                }
                continue;
            }
            self.waste.sleeps();
            if self.open.are_multiplexed() {
                // Not earlier: the worker wakes only a server that has announced its sleep.
                self.lane.room_made();
            }
            // The eventfd is waited on edge-triggered and never read: every write is a new edge. Both are polled
            // directly: `readable()` enters a list of waiters each time, at three times the cost.
            let is_alive = poll_fn(|cx| match eventfd.poll_read_ready(cx) {
                Poll::Ready(ready) => Poll::Ready(ready.map(|mut ready| ready.clear_ready()).is_ok()),
                Poll::Pending => pidfd.poll_read_ready(cx).map(|_| false),
            });
            if !is_alive.await {
                // Frames that the worker wrote before its death still count.
                while matches!(self.read_batch().await, Batch::More) {}
                break;
            }
            woken = true;
        }
    }

    /// True if the worker has no request to which its frames could belong.
    fn is_idle(&self) -> bool {
        self.open.is_empty() && !self.lane.has_requests()
    }

    async fn read_batch(&mut self) -> Batch {
        let mut end = Batch::More;
        let mut taken = 0;
        // A front that is notified of half a response treats it as a stream: no length, and compressed however short it
        // is.
        while taken < BATCH || (taken < 2 * BATCH && self.open.is_within_response()) {
            taken += 1;
            match self.frames.next_frame_in_place() {
                Ok(Some(frame)) => {
                    if taken == 1 {
                        self.now = Instant::now();
                    }
                    // Released before the worker can begin its next request. Otherwise the worker would find its ring
                    // full of responses that were copied long ago, and publish half a response only to get room.
                    if frame.kind == FrameKind::Done || frame.payload.len() >= LARGE_FRAME {
                        self.frames.frames_taken();
                    }
                    if let Err(what) = self.take(frame) {
                        end = Batch::Broken(what);
                        break;
                    }
                    // Further frames of this response would have no room.
                    if std::mem::take(&mut self.overfull) {
                        break;
                    }
                }
                Ok(None) => {
                    end = Batch::Empty(taken - 1);
                    break;
                }
                Err(error) => {
                    end = Batch::Broken(error.to_string());
                    break;
                }
            }
        }
        let shown = self.open.show();
        if shown && !self.open.are_multiplexed() {
            self.let_client_catch_up().await;
        }
        self.frames.frames_taken();
        end
    }

    /// Waits until the current response has room: a serial worker is slowed to its client's speed.
    async fn let_client_catch_up(&mut self) {
        let Some(sink) = self.open.current.as_ref().map(|current| current.sink.clone()) else { return };
        if sink.is_overfull() {
            self.settle();
            self.wait_for_room(&sink).await;
        }
    }

    /// Waits for room in a response. A response without budget whose client reads nothing is failed after
    /// `STALL_TIMEOUT`, to free its worker.
    async fn wait_for_room(&mut self, sink: &Sink) {
        let (mut taken, mut since) = (sink.taken(), Instant::now());
        while tokio::time::timeout(POLL_INTERVAL, poll_fn(|cx| sink.poll_room(cx))).await.is_err() {
            let now_taken = sink.taken();
            // With a full file the connection, not this task, gives up on the client.
            if now_taken != taken || !sink.lacks_budget() {
                (taken, since) = (now_taken, Instant::now());
            } else if since.elapsed() > STALL_TIMEOUT {
                sink.give_up(Fault::with(
                    FaultKind::OverBudget,
                    "no room for the response in http.memory or http.spool, and its client is not reading",
                ));
                if let Some(current) = self.open.current.as_mut() {
                    current.ended = true;
                    self.lane.abort_request(current.number);
                }
                return;
            }
        }
    }

    /// Copies the bodies that no front has taken out of the ring, so that ring space is held for one turn at most.
    fn settle(&mut self) {
        self.holding.drain(..).for_each(|sink| sink.settle());
    }

    /// After the worker's death: answers or reruns its requests and notifies the supervisor.
    fn finish(mut self) {
        self.log.end(&self.lane);
        let Some(mut lane) = self.lane.remove() else { return };
        let served = lane.state.is_serving();
        let idle = lane.requests == 0 && lane.in_flight.is_empty() && served;
        let parts = rescue::parts(&lane);
        if served || !parts.is_empty() {
            self.lane.note_death();
        }
        let death = Death {
            worker: lane.worker,
            pid: lane.pid,
            generation: lane.generation,
            home: lane.home,
            was_ready: lane.was_ready,
            idle,
            lived: lane.started.elapsed(),
            reason: lane.state.kill_reason().cloned(),
            boot_error: self.log.boot_error.take(),
        };
        let requests: Vec<_> = lane.in_flight.take().zip(parts).collect();
        for (request, part) in requests {
            if self.open.has_ended(request.number) || request.overdue.is_some() {
                continue; // the client has its response or its 504; the rest of the script is lost
            }
            let sink = request.pending.sink.clone();
            if catch_unwind(AssertUnwindSafe(|| self.lane.rescue(request.pending, part, &death))).is_err() {
                sink.fail(Fault::with(FaultKind::WorkerDied, "the server panicked while handling the worker's death"));
            }
        }
        self.lane.report_death(death);
    }
}

/// Lets the tasks that were woken before this one run first. (`yield_now` would also wait for a poll of the operating
/// system's events.)
async fn step_back() {
    let mut stepped = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut stepped, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

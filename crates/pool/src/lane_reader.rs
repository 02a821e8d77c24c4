//! The task that reads one lane: turns frames into answers, notices the worker's death, gives the lane its next call.
//!
//! It runs on the lane's home shard and owns the receiving half, so reading needs no lock; the pool's lock is taken once
//! when a call's first frame arrives and once when the call is done. Where the worker runs several calls, frames of
//! different calls alternate, and one slow client must not hold up the others.
//!
//! A worker may send anything. `frame_order` says what may follow what, `answer_head` and `log_limit` how much, `waste` how
//! often it may wake the server for nothing. Whatever happens here, a panic included, ends in `finish`: the lane is gone,
//! its calls are answered or run again, the supervisor knows.

use crate::answer_head::{AnswerHead, HeadParts, HeaderLines};
use crate::descriptor;
use crate::estimate::Took;
use crate::fault::{Fault, FaultKind};
use crate::frame_order::FrameOrder;
use crate::lane::{KillReason, NewWorker, Phase, SnapshotWork};
use crate::log_limit::LogLimit;
use crate::panics;
use crate::pool::{Pool, WantedBody};
use crate::reply_sink::{After, Sink};
use crate::rescue::{self, Death};
use crate::supervisor::Event;
use crate::waste::{self, Waste};
use bytes::Bytes;
use howdah_transport::wire::{FLAG_FLUSH, FLAG_MORE, FrameKind, WireDone};
use howdah_transport::{CallMap, Frame, FrameReceiver};
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use zerocopy::FromBytes;

/// Frames of this size are given back to the worker at once, smaller ones by the batch.
const LARGE_FRAME: usize = 16 * 1024;
/// How often it is looked again whether there is budget for an answer: what others give back wakes nobody here.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long a worker waits with an answer that there is no budget for while its client takes nothing of it.
const NOTHING_MOVES: Duration = Duration::from_secs(5);
/// Frames read before other tasks of the thread get a turn; twice as many where a batch would end within an answer.
const BATCH: usize = 64;

pub(crate) struct LaneReader {
    pool: Arc<Pool>,
    index: usize,
    pid: u32,
    frames: FrameReceiver,
    eventfd: Arc<OwnedFd>,
    pidfd: Arc<OwnedFd>,
    /// The call whose frames are arriving.
    current: Option<Current>,
    /// The worker runs several calls.
    several: bool,
    /// Then: the other calls whose answers have begun.
    others: CallMap<Current>,
    /// Then: those of the others whose front was not told of what this batch has added.
    unseen: Vec<u64>,
    /// The answer that arrives has more waiting for its front than may.
    overfull: bool,
    /// Answers whose body may still lie in the ring.
    holding: Vec<Sink>,
    /// When the batch that is being read began: precise enough for all its calls.
    now: Instant,
    /// The worker has said that it is ready.
    ready: bool,
    /// The first error the worker logged outside of a call: why it did not get ready, should it end now.
    said: Option<String>,
    logs: LogLimit,
    waste: Waste,
}

/// The call a lane is answering.
pub(crate) struct Current {
    number: u64,
    sink: Sink,
    received: Instant,
    order: FrameOrder,
    /// Collected parts of a head.
    head: HeadParts,
    /// Something was added that the front has not been told of.
    unseen: bool,
    /// Nothing more goes to the front.
    ended: bool,
}

/// How a batch ended.
enum Batch {
    /// Nothing is left, and so many frames were read.
    Empty(usize),
    More,
    Broken(String),
}

impl LaneReader {
    /// The reader of a worker's lane.
    pub(crate) fn new(pool: Arc<Pool>, of: &NewWorker, frames: FrameReceiver, eventfd: OwnedFd) -> Self {
        let now = Instant::now();
        Self {
            pool,
            index: of.worker as usize,
            pid: of.pid,
            frames,
            eventfd: Arc::new(eventfd),
            pidfd: of.pidfd.clone(),
            current: None,
            several: of.several,
            others: CallMap::default(),
            unseen: Vec::new(),
            overfull: false,
            holding: Vec::new(),
            now,
            ready: false,
            said: None,
            logs: LogLimit::new(now),
            waste: Waste::default(),
        }
    }

    /// Reads until the worker is dead, then hands its calls back.
    pub(crate) async fn run(mut self) {
        if panics::caught(self.read()).await.is_none() {
            tracing::error!(pool = self.pool.name(), pid = self.pid, "a panic while a worker was listened to");
            self.kill(KillReason::Panicked);
            // Its place is free once it is dead.
            if let Ok(pidfd) = descriptor::watch(self.pidfd.clone()) {
                let _ = pidfd.readable().await;
            }
        }
        self.finish();
    }

    fn kill(&self, reason: KillReason) {
        self.pool.kill_lane(self.index, self.pid, reason);
    }

    /// Reads until the worker is dead.
    async fn read(&mut self) {
        let registered = descriptor::watch(self.eventfd.clone())
            .and_then(|eventfd| Ok((eventfd, descriptor::watch(self.pidfd.clone())?)));
        let (eventfd, pidfd) = match registered {
            Ok(pair) => pair,
            Err(error) => {
                return self.kill(KillReason::Broken(format!("cannot wait for the worker: {error}")));
            }
        };
        // Woken since frames were last read.
        let mut woken = false;
        loop {
            let batch = self.read_batch().await;
            if std::mem::take(&mut woken) && matches!(batch, Batch::Empty(0)) {
                self.waste.note(self.is_idle());
            }
            if self.waste.is_too_much() {
                self.kill(KillReason::Broken("it keeps the server busy without a call".into()));
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
                    // Nothing more is read from it; wait for the death.
                    let _ = pidfd.readable().await;
                    break;
                }
                Batch::Empty(_) => {}
            }
            if !self.holding.is_empty() {
                // The fronts that were woken for these answers come first.
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
            if self.several {
                // Only now: the worker wakes a server that has announced its sleep.
                self.pool.room_made(self.index);
            }
            // The eventfd is waited on edge-triggered and never read: every write is a new edge.
            tokio::select! {
                biased;
                ready = eventfd.readable() => match ready {
                    Ok(mut ready) => ready.clear_ready(),
                    Err(_) => break,
                },
                _ = pidfd.readable() => {
                    // What it wrote before it died still counts.
                    while matches!(self.read_batch().await, Batch::More) {}
                    break;
                }
            }
            woken = true;
        }
    }

    /// True if the worker has no call that its frames could be about.
    fn is_idle(&self) -> bool {
        self.current.is_none() && self.others.is_empty() && !self.pool.has_calls(self.index)
    }

    async fn read_batch(&mut self) -> Batch {
        let mut end = Batch::More;
        let mut taken = 0;
        // A front that is told of half an answer takes it for a stream: no length, and compressed however short it is.
        while taken < BATCH || (taken < 2 * BATCH && self.is_within_answer()) {
            taken += 1;
            match self.frames.next_frame_in_place() {
                Ok(Some(frame)) => {
                    if taken == 1 {
                        self.now = Instant::now();
                    }
                    // Given back before the worker can have a next call: else it would find its ring full of answers
                    // that were copied long ago, and publish half an answer only to get room.
                    if frame.kind == FrameKind::Done || frame.payload.len() >= LARGE_FRAME {
                        self.frames.frames_taken();
                    }
                    if let Err(what) = self.take(frame) {
                        end = Batch::Broken(what);
                        break;
                    }
                    // What is read now would have no place.
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
        if let Some(current) = self.current.as_mut()
            && std::mem::take(&mut current.unseen)
        {
            current.sink.wake();
            if !self.several {
                let sink = current.sink.clone();
                if sink.is_overfull() {
                    self.settle();
                    self.wait_for_room(&sink).await;
                }
            }
        }
        for number in self.unseen.drain(..) {
            if let Some(other) = self.others.get_mut(&number)
                && std::mem::take(&mut other.unseen)
            {
                other.sink.wake();
            }
        }
        self.frames.frames_taken();
        end
    }

    /// Waits until the current call's answer has room again: the worker goes at its client's speed. An answer without
    /// budget that does not move is given up, so that its worker is there for others.
    async fn wait_for_room(&mut self, sink: &Sink) {
        let (mut taken, mut since) = (sink.taken(), Instant::now());
        while tokio::time::timeout(LOOK_AGAIN, std::future::poll_fn(|cx| sink.poll_room(cx))).await.is_err() {
            let now_taken = sink.taken();
            // A file that is full has a client that still has to be given up by the connection.
            if now_taken != taken || !sink.lacks_budget() {
                (taken, since) = (now_taken, Instant::now());
            } else if since.elapsed() > NOTHING_MOVES {
                sink.give_up(Fault::with(
                    FaultKind::OverBudget,
                    "there is no room for the answer, and its client takes nothing",
                ));
                if let Some(current) = self.current.as_mut() {
                    current.ended = true;
                    self.pool.abort_call(self.index, current.number);
                }
                return;
            }
        }
    }

    /// Copies what no front has taken out of the ring, so that it is not held longer than for a turn.
    fn settle(&mut self) {
        self.holding.drain(..).for_each(|sink| sink.settle());
    }

    /// Makes the call with this number the current one.
    fn turn_to(&mut self, number: u64) -> Result<(), String> {
        if !self.several {
            self.current = Some(self.pool.begin_call(self.index, number).ok_or("an answer to no call")?);
            return Ok(());
        }
        if let Some(last) = self.current.take() {
            // Heads are written in one go; else an evil worker could have a long one collected for each of its calls.
            if last.order.within_head() {
                return Err("a head that another call interrupts".into());
            }
            if last.unseen {
                self.unseen.push(last.number);
            }
            self.others.insert(last.number, last);
        }
        let open = self.others.remove(&number);
        self.current = Some(match open {
            Some(open) => open,
            None => self.pool.begin_call(self.index, number).ok_or("an answer to no call")?,
        });
        Ok(())
    }

    /// Whether the front would be told of an answer that has not ended.
    fn is_within_answer(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.unseen && !current.ended)
    }

    /// Takes one frame. An error means that the worker broke the rules.
    fn take(&mut self, frame: Frame) -> Result<(), String> {
        match frame.kind {
            FrameKind::Ready if std::mem::replace(&mut self.ready, true) => return Err("ready twice".into()),
            FrameKind::Ready => {
                self.pool.worker_ready(self.index);
                return Ok(());
            }
            FrameKind::Log => {
                self.log(&frame);
                return Ok(());
            }
            FrameKind::NeedBody => return self.give_body(frame.number),
            FrameKind::GiveBack => {
                let began = u64::read_from_bytes(&frame.payload).map_err(|_| "a malformed call given back")?;
                return self.pool.call_given_back(self.index, frame.number, began);
            }
            FrameKind::Call | FrameKind::Stop | FrameKind::Cancel | FrameKind::Pad => {
                return Err("a frame that only the server sends".into());
            }
            _ => {}
        }
        if self.current.as_ref().is_none_or(|c| c.number != frame.number) {
            self.turn_to(frame.number)?;
        }
        let Some(current) = self.current.as_mut() else { return Ok(()) };
        current.order.note(frame.kind, frame.flags & FLAG_MORE != 0)?;
        match frame.kind {
            FrameKind::Head => self.take_head(frame)?,
            FrameKind::Body => self.take_body(frame),
            FrameKind::End => {
                let micros = self.now.saturating_duration_since(current.received).as_micros() as u64;
                current.sink.update_stats(|stats| stats.queue_us = micros);
                current.sink.end();
                current.ended = true;
                current.unseen = true;
            }
            FrameKind::Done => self.done(&frame.payload)?,
            FrameKind::Interim => self.take_interim(frame)?,
            _ => {}
        }
        Ok(())
    }

    /// Sends the worker the body of a call that it has begun.
    fn give_body(&mut self, number: u64) -> Result<(), String> {
        let Some(WantedBody { body, control, sink }) = self.pool.body_wanted(self.index, number)? else {
            return Ok(());
        };
        let sent = body.and_then(|body| body.into_descriptor()).and_then(|fd| control.send_body(number, fd.as_fd()));
        let error = match sent {
            Ok(()) => {
                if self.several {
                    self.pool.body_sent(self.index);
                }
                return Ok(());
            }
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::WouldBlock => return Err("bodies that it asked for and did not take".into()),
            // It has died, which will be noticed in a moment.
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::NotConnected => return Ok(()),
            _ => {}
        }
        sink.fail(Fault::with(FaultKind::Storage, format!("cannot hand a body over: {error}")));
        // The worker waits for an answer.
        control.send_no_body(number).map_err(|error| format!("cannot be told that there is no body: {error}"))?;
        if self.several {
            self.pool.body_sent(self.index);
        }
        Ok(())
    }

    /// Adds a frame of the current answer's head.
    fn take_head(&mut self, frame: Frame) -> Result<(), String> {
        let Some(current) = self.current.as_mut() else { return Ok(()) };
        let Some(head) = current.head.add(frame.payload, frame.flags & FLAG_MORE != 0) else { return Ok(()) };
        let number = current.number;
        match head {
            AnswerHead::Good(status, headers) => {
                let is_final = (200..=599).contains(&status);
                current.sink.set_head(if is_final { status } else { 500 }, headers);
                current.unseen = true;
                if !is_final {
                    self.log_of_call(number, &format!("PHP set status {status}, which is no final status; 500 sent"));
                }
            }
            AnswerHead::TooLong => {
                // What follows goes nowhere. The worker is not to blame: scripts can do this.
                let what = "an answer with more than 1000 header lines, or 1 MiB of them";
                current.sink.fail(Fault::with(FaultKind::WorkerBroken, what));
                current.ended = true;
                self.log_of_call(number, &format!("{what}; 502 sent"));
            }
            AnswerHead::Malformed => return Err("a malformed head".into()),
        }
        Ok(())
    }

    /// Adds a frame of an interim answer. Those that are too many, or that nobody waits for, are dropped.
    fn take_interim(&mut self, frame: Frame) -> Result<(), String> {
        let Some(current) = self.current.as_mut() else { return Ok(()) };
        let more = frame.flags & FLAG_MORE != 0;
        let takes = current.order.takes_interim(frame.payload.len(), more);
        if !takes || current.ended || current.sink.is_gone() {
            // The frames of one are dropped together, or not parsed: a part alone makes no sense.
            current.head = HeadParts::default();
            self.waste.note(false);
            return Ok(());
        }
        let number = current.number;
        match current.head.add(frame.payload, more) {
            None | Some(AnswerHead::TooLong) => {}
            Some(AnswerHead::Good(status, headers)) => self.pass_interim(number, status, &headers),
            Some(AnswerHead::Malformed) => return Err("a malformed interim answer".into()),
        }
        Ok(())
    }

    fn pass_interim(&self, number: u64, status: u16, headers: &HeaderLines) {
        if let Some(front) = self.pool.interim_front(self.index, number) {
            front.interim(status, headers);
        }
    }

    /// Adds to the body of the current call's answer.
    fn take_body(&mut self, frame: Frame) {
        let Some(current) = self.current.as_mut() else { return };
        let flush = frame.flags & FLAG_FLUSH != 0;
        let empty = frame.held.is_none() && frame.payload.is_empty();
        let mut after = After { gone: false, overfull: false };
        if !current.order.says_something(empty, flush) {
            self.waste.note(false);
        } else if current.ended {
            after.gone = current.sink.is_gone();
        } else {
            after = match frame.held {
                // What is to be sent now may be sent in parts.
                Some(held) if flush => current.sink.push(Bytes::from(held.copy_from(0)), flush),
                Some(held) => current.sink.push_held(held).unwrap_or_else(|| {
                    self.holding.push(current.sink.clone());
                    after
                }),
                None => current.sink.push(Bytes::from(frame.payload), flush),
            };
            current.unseen = true;
        }
        // Where the worker runs one call, it waits for a client that is far behind; here it must not.
        if self.several && after.overfull {
            if current.sink.lacks_budget() {
                current.sink.give_up(Fault::with(FaultKind::OverBudget, "there is no room for the answer"));
            } else {
                let fault = Fault::with(FaultKind::Storage, "the client is too slow for so long an answer");
                current.sink.fail(fault);
            }
            current.ended = true;
            self.pool.abort_call(self.index, frame.number);
        }
        self.overfull = after.overfull && !self.several;
        if after.gone {
            self.pool.abort_call(self.index, frame.number);
        }
    }

    fn done(&mut self, payload: &[u8]) -> Result<(), String> {
        let Some(current) = self.current.take() else { return Ok(()) };
        self.waste.something_done();
        let done = WireDone::read_from_bytes(payload).map_err(|_| "a malformed end of call")?;
        let micros = self.now.saturating_duration_since(current.received).as_micros() as u64;
        let php_us = done.php_ns / 1000;
        current.sink.update_stats(|stats| {
            stats.php_us = php_us;
            stats.queue_us = micros.saturating_sub(php_us);
            stats.peak_memory = done.peak_memory;
        });
        self.pool.metrics().queue_wait.observe_us(micros.saturating_sub(php_us));
        if !current.ended {
            current.sink.fail(Fault::with(FaultKind::WorkerBroken, "a call ended without an answer"));
        } else if current.unseen {
            current.sink.wake();
        }
        self.pool.metrics().sessions_reset.add(u64::from(done.resets()));
        self.pool.metrics().workers_unfit.add(u64::from(done.is_unfit()));
        let snapshot = SnapshotWork::of(&done);
        let took = Took { php: php_us, cpu: (done.cpu_ns > 0).then_some(done.cpu_ns / 1000) };
        self.pool.call_done(self.index, current.number, self.now, took, done.retires(), snapshot);
        Ok(())
    }

    fn log_of_call(&self, number: u64, text: &str) {
        let (id, label) = self.pool.call_name(self.index, number).unwrap_or_default();
        tracing::warn!(target: "php", request = id, label, "{text}");
    }

    fn log(&mut self, frame: &Frame) {
        let Some((&level, text)) = frame.payload.split_first() else {
            self.waste.note(self.is_idle());
            return;
        };
        let verdict = self.logs.admit(text.len(), self.now);
        if let Some(lines) = verdict.left_out {
            self.log_left_out(lines);
        }
        if !verdict.pass {
            self.waste.note(self.is_idle());
            return;
        }
        let text = String::from_utf8_lossy(text);
        let call = self.pool.call_name(self.index, frame.number);
        let (id, label) = call.as_ref().map_or(("-", ""), |(id, label)| (id.as_str(), label.as_str()));
        if call.is_none() && level <= 3 {
            self.said.get_or_insert_with(|| text.to_string());
        }
        if call.is_none() && !self.pool.is_news(self.index, &text) {
            return;
        }
        let pool = self.pool.name();
        match level {
            0..=3 => tracing::error!(target: "php", pool, pid = self.pid, request = id, label, "{text}"),
            4 => tracing::warn!(target: "php", pool, pid = self.pid, request = id, label, "{text}"),
            5 | 6 => tracing::info!(target: "php", pool, pid = self.pid, request = id, label, "{text}"),
            _ => tracing::debug!(target: "php", pool, pid = self.pid, request = id, label, "{text}"),
        }
    }

    fn log_left_out(&self, lines: u64) {
        let pool = self.pool.name();
        tracing::warn!(target: "php", pool, pid = self.pid, lines, "a worker logs faster than is written: lines left out");
    }

    /// The worker is dead: its calls are answered or run again, and the supervisor is told.
    fn finish(mut self) {
        if let Some(lines) = self.logs.take_left_out() {
            self.log_left_out(lines);
        }
        let mut answering = std::mem::take(&mut self.others);
        answering.extend(self.current.take().map(|current| (current.number, current)));
        let Some(mut lane) = self.pool.remove_lane(self.index) else { return };
        let reason = lane.kill_reason.clone();
        let idle = lane.calls == 0 && lane.in_flight.is_empty() && reason.is_none() && lane.phase == Phase::Serving;
        let parts = rescue::parts(&lane);
        if lane.phase == Phase::Serving || !parts.is_empty() {
            self.pool.note_death();
        }
        let death = Death { pid: self.pid, home: lane.home, reason: reason.as_ref() };
        let calls: Vec<_> = lane.in_flight.take().zip(parts).collect();
        for (call, part) in calls {
            if answering.get(&call.number).is_some_and(|answer| answer.ended) || call.overdue.is_some() {
                continue; // the client has its whole answer; the rest of the script is lost, as the log says
            }
            let sink = call.job.sink.clone();
            if catch_unwind(AssertUnwindSafe(|| self.pool.rescue(call.job, part, &death))).is_err() {
                sink.fail(Fault::with(FaultKind::WorkerDied, "a panic while the worker's calls were looked after"));
            }
        }
        let event = Event::WorkerGone {
            worker: lane.worker,
            pid: lane.pid,
            generation: lane.generation,
            was_ready: lane.was_ready,
            idle,
            lived: lane.started.elapsed(),
            reason,
            said: self.said,
        };
        self.pool.tell_supervisor(event);
    }
}

/// Lets the tasks that were woken before this one run first. (`yield_now` would wait for the operating system's news as well.)
async fn step_back() {
    let mut stepped = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut stepped, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Current {
    pub(crate) fn new(number: u64, sink: Sink, received: Instant) -> Self {
        let (order, head) = (FrameOrder::default(), HeadParts::default());
        Self { number, sink, received, order, head, unseen: false, ended: false }
    }
}

/// How long a worker has to answer the request for its PHP stack: it does at once, unless the machine has no time for it.
pub(crate) const STACK_WAIT: Duration = Duration::from_secs(3);

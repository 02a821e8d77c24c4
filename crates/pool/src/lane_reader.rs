//! The task that reads one lane: turns frames into answers, notices the worker's death, gives the lane its next call.
//!
//! It runs on the lane's home shard and owns the receiving half, so reading needs no lock; the pool's lock is taken once
//! when a call's first frame arrives and once when the call is done. Where the worker runs several calls, frames of
//! different calls alternate, and one slow client must not hold up the others.

use crate::descriptor;
use crate::fault::{Fault, FaultKind};
use crate::lane::{KillReason, Phase, SnapshotWork};
use crate::pool::Pool;
use crate::reply_sink::Sink;
use crate::supervisor::Event;
use bytes::Bytes;
use howdah_transport::wire::{DONE_RETIRE, DONE_WAY_SHIFT, FLAG_FLUSH, FLAG_MORE, FrameKind};
use howdah_transport::{CallMap, Frame, FrameReceiver};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Longest head of an answer, over all its frames.
const MAX_HEAD: usize = 1024 * 1024;
/// Frames of this size are given back to the worker at once, smaller ones by the batch.
const LARGE_FRAME: usize = 16 * 1024;
/// Frames read before other tasks of the thread get a turn; twice as many where a batch would end within an answer.
const BATCH: usize = 64;

pub(crate) struct LaneReader {
    pub(crate) pool: Arc<Pool>,
    pub(crate) index: usize,
    pub(crate) pid: u32,
    pub(crate) frames: FrameReceiver,
    pub(crate) eventfd: Arc<OwnedFd>,
    pub(crate) pidfd: Arc<OwnedFd>,
    /// The call whose frames are arriving.
    pub(crate) current: Option<Current>,
    /// The worker runs several calls.
    pub(crate) several: bool,
    /// Then: the other calls whose answers have begun.
    pub(crate) others: CallMap<Current>,
    /// Then: those of the others whose front was not told of what this batch has added.
    pub(crate) unseen: Vec<u64>,
    /// Answers whose body may still lie in the ring.
    pub(crate) holding: Vec<Sink>,
    /// When the batch that is being read began: precise enough for all its calls.
    pub(crate) now: Instant,
    /// The first error the worker logged outside of a call: why it did not get ready, should it end now.
    pub(crate) said: Option<String>,
}

/// The call a lane is answering.
pub(crate) struct Current {
    number: u64,
    sink: Sink,
    received: Instant,
    /// Collected parts of a head.
    head: Vec<u8>,
    /// Something was added that the front has not been told of.
    unseen: bool,
    /// Nothing more goes to the front.
    ended: bool,
    end_seen: bool,
}

/// How a batch ended.
enum Batch {
    Empty,
    More,
    Broken(String),
}

impl LaneReader {
    /// Reads until the worker is dead, then hands its calls back.
    pub(crate) async fn run(mut self) {
        let registered = descriptor::watch(self.eventfd.clone())
            .and_then(|eventfd| Ok((eventfd, descriptor::watch(self.pidfd.clone())?)));
        let (eventfd, pidfd) = match registered {
            Ok(pair) => pair,
            Err(error) => {
                self.pool.kill_lane(self.index, KillReason::Broken(format!("cannot wait for the worker: {error}")));
                self.finish();
                return;
            }
        };
        loop {
            match self.read_batch().await {
                Batch::More => {
                    tokio::task::yield_now().await;
                    self.settle();
                    continue;
                }
                Batch::Broken(what) => {
                    self.pool.kill_lane(self.index, KillReason::Broken(what));
                    // Nothing more is read from it; wait for the death.
                    let _ = pidfd.readable().await;
                    break;
                }
                Batch::Empty => {}
            }
            if !self.holding.is_empty() {
                // The fronts that were woken for these answers come first.
                step_back().await;
                self.settle();
                continue;
            }
            if !self.frames.prepare_sleep() {
                continue;
            }
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
        }
        self.finish();
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
                }
                Ok(None) => {
                    end = Batch::Empty;
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
                }
                std::future::poll_fn(|cx| sink.poll_room(cx)).await;
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
            if !last.head.is_empty() {
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
            FrameKind::Ready => {
                self.pool.worker_ready(self.index);
                return Ok(());
            }
            FrameKind::Log => {
                self.log(&frame);
                return Ok(());
            }
            FrameKind::GiveBack => {
                let began = frame.payload.try_into().map_err(|_| "a malformed call given back")?;
                return self.pool.call_given_back(self.index, frame.number, u64::from_ne_bytes(began));
            }
            FrameKind::Call | FrameKind::Stop | FrameKind::Cancel | FrameKind::Pad => {
                return Err("a frame that only the server sends".into());
            }
            _ => {}
        }
        if self.current.as_ref().is_none_or(|c| c.number != frame.number) {
            self.turn_to(frame.number)?;
        }
        let number = frame.number;
        let Some(current) = self.current.as_mut() else { return Ok(()) };
        match frame.kind {
            FrameKind::Head => {
                if let Some(status) = current.add_head(frame)? {
                    self.log_no_final_status(number, status);
                }
            }
            FrameKind::Body => self.take_body(frame),
            FrameKind::End if current.end_seen && self.several => return Err("a second end of an answer".into()),
            FrameKind::End => {
                let micros = self.now.saturating_duration_since(current.received).as_micros() as u64;
                current.sink.update_stats(|stats| stats.queue_us = micros);
                current.sink.end();
                current.ended = true;
                current.end_seen = true;
                current.unseen = true;
            }
            FrameKind::Done => self.done(&frame.payload)?,
            FrameKind::Interim => {
                if let Some((status, headers)) = current.collect_head(frame)?
                    && let Some(front) = self.pool.interim_front(self.index, number)
                {
                    front.interim(status, &headers);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds to the body of the current call's answer.
    fn take_body(&mut self, frame: Frame) {
        let Some(current) = self.current.as_mut() else { return };
        let flush = frame.flags & FLAG_FLUSH != 0;
        if !current.ended && (flush || frame.held.is_some() || !frame.payload.is_empty()) {
            match frame.held {
                // What is to be sent now may be sent in parts.
                Some(held) if flush => current.sink.push(Bytes::from(held.copy_from(0)), flush),
                Some(held) => {
                    if current.sink.push_held(held) {
                        self.holding.push(current.sink.clone());
                    }
                }
                None => current.sink.push(Bytes::from(frame.payload), flush),
            }
            current.unseen = true;
        }
        // Where the worker runs one call, it waits for a client that is far behind; here it must not.
        if self.several && current.sink.is_overfull() {
            current.sink.fail(Fault::with(FaultKind::Storage, "the client is too slow for so long an answer"));
            current.ended = true;
            self.pool.abort_call(self.index, frame.number);
        }
        if current.sink.is_gone() {
            self.pool.abort_call(self.index, frame.number);
        }
    }

    fn done(&mut self, payload: &[u8]) -> Result<(), String> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let Done { php_ns, peak_memory, flags, snapshot } = parse_done(payload).ok_or("a malformed end of call")?;
        let micros = self.now.saturating_duration_since(current.received).as_micros() as u64;
        let php_us = php_ns / 1000;
        current.sink.update_stats(|stats| {
            stats.php_us = php_us;
            stats.queue_us = micros.saturating_sub(php_us);
            stats.peak_memory = peak_memory;
        });
        self.pool.metrics().queue_wait.observe_us(micros.saturating_sub(php_us));
        if !current.ended {
            current.sink.fail(Fault::with(FaultKind::WorkerBroken, "a call ended without an answer"));
        } else if current.unseen {
            current.sink.wake();
        }
        let way = flags >> DONE_WAY_SHIFT & 0xff;
        let snapshot = (way != 0).then_some(SnapshotWork { way, ..snapshot });
        self.pool.call_done(self.index, current.number, self.now, php_us, flags & DONE_RETIRE != 0, snapshot);
        Ok(())
    }

    fn log_no_final_status(&self, number: u64, status: u16) {
        let (id, label) = self.pool.call_name(self.index, number).unwrap_or_default();
        tracing::warn!(target: "php", request = id, label, "PHP set status {status}, which is no final status; 500 sent");
    }

    fn log(&mut self, frame: &Frame) {
        let Some((&level, text)) = frame.payload.split_first() else { return };
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

    /// The worker is dead: its calls are answered or run again, and the supervisor is told.
    fn finish(mut self) {
        let mut answering = std::mem::take(&mut self.others);
        answering.extend(self.current.take().map(|current| (current.number, current)));
        let Some(mut lane) = self.pool.remove_lane(self.index) else { return };
        let reason = lane.kill_reason.clone();
        let idle = lane.calls == 0 && lane.in_flight.is_empty() && reason.is_none() && lane.phase == Phase::Serving;
        let calls = lane.in_flight.take();
        for call in calls {
            let part = lane.part_in_death(&call);
            if answering.get(&call.number).is_some_and(|answer| answer.ended) || call.overdue.is_some() {
                continue; // the client has its whole answer; the rest of the script is lost, as the log says
            }
            self.pool.rescue(call.job, part, self.pid, reason.as_ref(), lane.home);
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
        Self { number, sink, received, head: Vec::new(), unseen: false, ended: false, end_seen: false }
    }

    /// Collects a head's frames; the head once it is complete.
    fn collect_head(&mut self, frame: Frame) -> Result<Option<(u16, HeaderLines)>, String> {
        if self.head.len() + frame.payload.len() > MAX_HEAD {
            return Err("a head of more than 1 MiB".into());
        }
        if self.head.is_empty() {
            self.head = frame.payload;
        } else {
            self.head.extend_from_slice(&frame.payload);
        }
        if frame.flags & FLAG_MORE != 0 {
            return Ok(None);
        }
        let bytes = Bytes::from(std::mem::take(&mut self.head));
        Ok(Some(parse_head(&bytes).ok_or("a malformed head")?))
    }

    /// Adds a frame of the head. Returns the head's status if it is none that can be sent.
    fn add_head(&mut self, frame: Frame) -> Result<Option<u16>, String> {
        let Some((status, headers)) = self.collect_head(frame)? else { return Ok(None) };
        let is_final = (200..=599).contains(&status);
        self.sink.set_head(if is_final { status } else { 500 }, headers);
        self.unseen = true;
        Ok((!is_final).then_some(status))
    }
}

type HeaderLines = Vec<(Bytes, Bytes)>;

/// Splits a head: `u16` status, then for each line `u32` length and `Name: value`. Lines without a colon are dropped.
fn parse_head(bytes: &Bytes) -> Option<(u16, HeaderLines)> {
    let status = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
    let mut headers = Vec::with_capacity(8);
    let mut at = 2;
    while at < bytes.len() {
        let len = u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize;
        let start = at + 4;
        let line = bytes.get(start..start.checked_add(len)?)?;
        if let Some(colon) = line.iter().position(|&b| b == b':') {
            let value_skip = line[colon + 1..].iter().take_while(|&&b| b == b' ' || b == b'\t').count();
            headers.push((bytes.slice(start..start + colon), bytes.slice(start + colon + 1 + value_skip..start + len)));
        }
        at = start + len;
    }
    Some((status, headers))
}

/// `WireDone`, as far as it is used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Done {
    php_ns: u64,
    peak_memory: u64,
    flags: u32,
    snapshot: SnapshotWork,
}

fn parse_done(payload: &[u8]) -> Option<Done> {
    let word = |at: usize| Some(u64::from_ne_bytes(payload.get(at..at + 8)?.try_into().ok()?));
    let half = |at: usize| Some(u32::from_ne_bytes(payload.get(at..at + 4)?.try_into().ok()?));
    let snapshot = SnapshotWork { way: 0, searches: half(20)?, restored_pages: half(24)?, restore_ns: half(28)? };
    Some(Done { php_ns: word(0)?, peak_memory: word(8)?, flags: half(16)?, snapshot })
}

/// How long a worker has to answer the request for its PHP stack: it does at once, unless the machine has no time for it.
pub(crate) const STACK_WAIT: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn head(status: u16, lines: &[&[u8]]) -> Bytes {
        let mut bytes = status.to_ne_bytes().to_vec();
        for line in lines {
            bytes.extend_from_slice(&(line.len() as u32).to_ne_bytes());
            bytes.extend_from_slice(line);
        }
        Bytes::from(bytes)
    }

    #[test]
    fn a_head_is_split_into_names_and_values() {
        let (status, lines) = parse_head(&head(201, &[b"A: b", b"X-Y:z", b"no colon", b"E:"])).unwrap();
        assert_eq!(status, 201);
        let lines: Vec<(&[u8], &[u8])> = lines.iter().map(|(n, v)| (n.as_ref(), v.as_ref())).collect();
        assert_eq!(lines, [(&b"A"[..], &b"b"[..]), (b"X-Y", b"z"), (b"E", b"")]);
    }

    #[test]
    fn a_head_with_a_false_length_is_refused() {
        let mut bytes = head(200, &[b"A: b"]).to_vec();
        bytes[2] = 200;
        assert!(parse_head(&Bytes::from(bytes.clone())).is_none());
        bytes[2..6].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert!(parse_head(&Bytes::from(bytes)).is_none());
        assert!(parse_head(&Bytes::from_static(b"\x01")).is_none());
    }

    #[test]
    fn a_short_end_of_call_is_refused() {
        assert!(parse_done(&[0; 31]).is_none());
        assert_eq!(parse_done(&[0; 32]), Some(Done::default()));
    }
}

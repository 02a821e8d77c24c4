//! Buffer of one response between a lane's reader and the front that takes it.
//!
//! The lane is emptied at once, so that a slow client does not hold a PHP worker. Parts wait in memory, then in an
//! unnamed temporary file (`parts`), as long as there is budget. Only without budget or room on the disk, or when that
//! file reaches `MAX_SPILL`, does the reader stop taking from the lane: a serial worker is slowed to its client's
//! speed, while a multiplexed worker's response fails. The file is read back on the I/O thread: it was just written, so
//! it is in the page cache.
//!
//! A body that the worker wrote in one piece may stay in its ring for a moment (`push_held`): a front that runs next
//! takes it from there without a copy. The lane's reader lets the fronts run once and then copies what is left
//! (`settle`).

use crate::fault::{Fault, FaultKind};
use crate::response::body_copy::{BodyCopy, Copying};
use crate::response::parts::{Chunk, InMemory, Limits, Spill, UnchargedData, WholeBody};
use crate::response::stats::RequestStats;
use bytes::Bytes;
use howdah_budget::{Charge, Share};
use howdah_observe::LogThrottle;
use howdah_transport::HeldPayload;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::warn;

/// Maximum unread bytes of a response in its temporary file; then a serial worker has to wait, and in async mode the
/// response fails.
const MAX_SPILL: u64 = if cfg!(test) { 1 << 20 } else { 1 << 30 };

static DISK_FULL: LogThrottle = LogThrottle::new(Duration::from_secs(10));

#[derive(Debug)]
struct Inner {
    head: Option<(u16, Vec<(Bytes, Bytes)>)>,
    route: Option<Bytes>,
    parts: InMemory,
    spill: Option<Spill>,
    /// PHP asked for a flush after the last byte in the spill.
    flush_after_spill: bool,
    uncharged: UnchargedData,
    /// Bytes that the front has taken.
    taken: u64,
    ended: bool,
    fault: Option<Fault>,
    reader: Option<Waker>,
    /// The lane's reader, if it waits for room.
    writer: Option<Waker>,
    /// The front may take the head: a whole batch of frames has been added. Otherwise a front on another thread could
    /// see the head of a response whose end is in the same batch, and would treat it as a stream.
    visible: bool,
    /// The head has been handed to the front: the request cannot be repeated any more.
    delivered: bool,
    /// The front has dropped its side.
    gone: bool,
    stats: RequestStats,
}

/// State of the response after a part was added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SinkState {
    /// The front no longer wants the response.
    pub(crate) gone: bool,
    /// More data waits for the front than allowed: add nothing before `poll_room` is ready.
    pub(crate) overfull: bool,
}

/// The writing side, held by the lane's reader and the scheduler.
#[derive(Debug, Clone)]
pub(crate) struct Sink {
    inner: Arc<Mutex<Inner>>,
    limits: Arc<Limits>,
}

/// PHP's response: the complete head, and the body as it arrives.
#[derive(Debug)]
pub struct Response {
    /// PHP's status code, or 500 if that is not between 200 and 599.
    pub status: u16,
    /// Header lines in the order PHP sent them, names as PHP wrote them. Not yet checked for HTTP's rules.
    pub headers: Vec<(Bytes, Bytes)>,
    /// The application's route that responded, if a recipe reports it. Not checked.
    pub route: Option<Bytes>,
    pub body: ResponseBody,
}

/// The reading side, held by the front: the body of a response. If it is dropped early, the worker is notified that the
/// client has gone: a serial worker once it sends more of the body, a multiplexed one at the next tick at the latest.
#[derive(Debug)]
pub struct ResponseBody {
    inner: Arc<Mutex<Inner>>,
    copying: Option<Box<Copying>>,
}

/// Locks without ever panicking: the data stays consistent at every point where a panic could happen.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock()
}

/// Creates both sides of a response. Waiting data is also charged to the connection's share, if it has one.
pub(crate) fn new(limits: Arc<Limits>, stats: RequestStats, share: Option<Arc<Share>>) -> (Sink, ResponseBody) {
    let inner = Arc::new(Mutex::new(Inner {
        head: None,
        route: None,
        parts: InMemory::new(Charge::new(limits.budgets.memory, share)),
        spill: None,
        flush_after_spill: false,
        uncharged: UnchargedData::default(),
        taken: 0,
        ended: false,
        fault: None,
        reader: None,
        writer: None,
        visible: false,
        delivered: false,
        gone: false,
        stats,
    }));
    (Sink { inner: inner.clone(), limits }, ResponseBody { inner, copying: None })
}

impl Sink {
    pub(crate) fn set_head(&self, status: u16, headers: Vec<(Bytes, Bytes)>) {
        let mut inner = lock(&self.inner);
        // A worker may still respond to a request that has failed (async mode, past its deadline).
        if inner.head.is_none() && !inner.delivered && !inner.ended {
            inner.head = Some((status, headers));
        }
    }

    /// Sets the application's route; called before `set_head`.
    pub(crate) fn set_route(&self, route: Bytes) {
        lock(&self.inner).route = Some(route);
    }

    /// Adds a part of the body. Call `wake` once after a batch.
    pub(crate) fn push(&self, data: Bytes, flush: bool) -> SinkState {
        let mut inner = lock(&self.inner);
        if inner.gone || inner.ended {
            return inner.after();
        }
        inner.settle(&self.limits);
        if !data.is_empty() {
            inner.keep(&self.limits, data, flush);
        } else if flush {
            inner.flush();
        }
        inner.after()
    }

    /// Adds a part of the body that is in the ring. `None`: it stays there, and `settle` has to be called soon.
    pub(crate) fn push_held(&self, held: HeldPayload) -> Option<SinkState> {
        let mut inner = lock(&self.inner);
        let first = inner.is_drained() && !inner.delivered;
        if first && held.len() <= self.limits.memory && !inner.gone && !inner.ended {
            inner.parts.hold(held);
            return None;
        }
        drop(inner);
        Some(self.push(Bytes::from(held.copy_from(0)), false))
    }

    /// Copies a part that is still in the ring.
    pub(crate) fn settle(&self) {
        let mut inner = lock(&self.inner);
        inner.settle(&self.limits);
        let waker = if inner.ended { inner.give_up_uncharged() } else { None };
        drop(inner);
        wake(waker);
    }

    /// Completes the response.
    pub(crate) fn end(&self) {
        let mut inner = lock(&self.inner);
        inner.charge_rest(&self.limits);
        inner.ended = true;
        let waker = inner.give_up_uncharged();
        drop(inner);
        wake(waker);
    }

    /// Ends the response with a fault; no effect if it has ended.
    pub(crate) fn fail(&self, fault: Fault) {
        let waker = {
            let mut inner = lock(&self.inner);
            if inner.ended {
                return;
            }
            inner.fault = Some(fault);
            inner.ended = true;
            inner.reader.take()
        };
        wake(waker);
    }

    /// Ends the response with a fault and drops waiting data, as there is no room for it.
    pub(crate) fn give_up(&self, fault: Fault) {
        let waker = lock(&self.inner).give_up(fault);
        wake(waker);
    }

    /// Makes added data visible to the front and wakes it.
    pub(crate) fn wake(&self) {
        let waker = {
            let mut inner = lock(&self.inner);
            inner.visible = true;
            inner.reader.take()
        };
        wake(waker);
    }

    pub(crate) fn update_stats(&self, update: impl FnOnce(&mut RequestStats)) {
        update(&mut lock(&self.inner).stats);
    }

    /// True once a part of the response has been handed to the front, or the response is complete or has failed.
    pub(crate) fn is_delivered(&self) -> bool {
        let inner = lock(&self.inner);
        inner.delivered || inner.ended
    }

    /// Drops a dead worker's data; only called while nothing was delivered.
    pub(crate) fn reset(&self) {
        let mut inner = lock(&self.inner);
        inner.head = None;
        inner.visible = false;
        inner.parts.clear();
        inner.spill = None;
        inner.flush_after_spill = false;
        inner.uncharged.clear();
        inner.stats.replays += 1;
    }

    /// True if the front no longer wants the response.
    pub(crate) fn is_gone(&self) -> bool {
        lock(&self.inner).gone
    }

    /// True if more data waits for the front than allowed.
    pub(crate) fn is_overfull(&self) -> bool {
        lock(&self.inner).is_overfull()
    }

    /// True if the response is overfull for lack of budget.
    pub(crate) fn lacks_budget(&self) -> bool {
        let inner = lock(&self.inner);
        inner.is_overfull() && !inner.uncharged.is_empty()
    }

    /// Bytes that the front has taken so far.
    pub(crate) fn taken(&self) -> u64 {
        lock(&self.inner).taken
    }

    /// Ready once there is room for more; registers the lane's reader otherwise.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = lock(&self.inner);
        inner.charge_rest(&self.limits);
        if !inner.is_overfull() {
            return Poll::Ready(());
        }
        inner.writer = Some(cx.waker().clone());
        Poll::Pending
    }
}

fn no_room() -> Fault {
    Fault::with(FaultKind::OverBudget, "no room for the response in http.memory or http.spool")
}

/// Wakes a front; called without the lock.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl Inner {
    /// Ends the response with a fault. Drops waiting data and an undelivered head. Returns the waker to wake.
    fn give_up(&mut self, fault: Fault) -> Option<Waker> {
        if !self.delivered {
            self.head = None;
        }
        self.parts.clear();
        self.spill = None;
        self.uncharged.clear();
        self.fault = Some(fault);
        self.ended = true;
        self.reader.take()
    }

    /// Fails an ended response with uncharged data: its worker goes on to the next request, so nothing can wait for
    /// budget.
    fn give_up_uncharged(&mut self) -> Option<Waker> {
        if self.uncharged.is_empty() { None } else { self.give_up(no_room()) }
    }

    fn after(&self) -> SinkState {
        SinkState { gone: self.gone, overfull: self.is_overfull() }
    }

    /// Number of waiting bytes.
    fn left(&self) -> u64 {
        self.parts.bytes() as u64 + self.spill.as_ref().map_or(0, Spill::left) + self.uncharged.bytes()
    }

    fn is_drained(&self) -> bool {
        self.parts.is_empty() && self.spill.is_none() && self.uncharged.is_empty()
    }

    fn is_overfull(&self) -> bool {
        let spilled = self.spill.as_ref().map_or(0, Spill::left);
        !self.gone && !self.ended && (!self.uncharged.is_empty() || spilled >= MAX_SPILL)
    }

    /// Keeps a part in memory, in the file, or uncharged.
    fn keep(&mut self, limits: &Limits, data: Bytes, flush: bool) {
        if !self.uncharged.is_empty() {
            self.uncharged.add(data, flush);
        } else if let Err(data) = self.try_keep(limits, data, flush) {
            self.uncharged.add(data, flush);
        }
    }

    /// Keeps a part; returns it if there is no budget for it.
    fn try_keep(&mut self, limits: &Limits, mut data: Bytes, flush: bool) -> Result<(), Bytes> {
        if self.spill.is_none() && self.parts.bytes() + data.len() <= limits.memory {
            match self.parts.add(data, flush) {
                Ok(()) => return Ok(()),
                Err(back) => data = back,
            }
        }
        match self.spill(limits, &data) {
            Ok(true) => self.flush_after_spill |= flush,
            Ok(false) => return Err(data),
            // A full disk counts as a lack of budget.
            Err(error) => {
                if DISK_FULL.permit().is_some() {
                    warn!(%error, "cannot spill a response to disk: it waits in its worker, and fails in async mode");
                }
                return Err(data);
            }
        }
        Ok(())
    }

    fn spill(&mut self, limits: &Limits, data: &[u8]) -> std::io::Result<bool> {
        // Without budget, do not even create the file.
        if self.spill.is_none() && limits.budgets.spool.is_full() {
            limits.budgets.spool.note_refused();
            return Ok(false);
        }
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(Spill::new(&limits.temp_dir, self.parts.charge_beside(limits.budgets.spool))?),
        };
        spill.add(data)
    }

    /// Moves uncharged parts to memory or the file, as far as there is budget now.
    fn charge_rest(&mut self, limits: &Limits) {
        while let Some(chunk) = self.uncharged.first() {
            if let Err(data) = self.try_keep(limits, chunk.data, chunk.flush) {
                self.uncharged.put_back(Chunk { data, flush: chunk.flush });
                return;
            }
        }
    }

    fn settle(&mut self, limits: &Limits) {
        if let Some(data) = self.parts.take_from_ring() {
            self.keep(limits, data, false);
        }
    }

    /// Marks the data so far for a flush. Flushes without data in between count as one.
    fn flush(&mut self) {
        if let Some(last) = self.uncharged.last() {
            last.flush = true;
        } else if self.spill.is_some() {
            self.flush_after_spill = true;
        } else {
            self.parts.flush();
        }
    }

    fn next_part(&mut self) -> Option<Result<Chunk, Fault>> {
        // Still in the ring: its copy is sent at once or waits in the connection.
        if let Some(data) = self.parts.take_from_ring() {
            let mut charge = self.parts.charge_beside(self.parts.budget());
            if charge.grow(data.len() as u64) {
                return Some(Ok(Chunk { data: charge.cover(data), flush: false }));
            }
            if self.ended {
                return Some(Err(no_room()));
            }
            self.uncharged.add(data, false);
        }
        if let Some(part) = self.parts.take() {
            return Some(Ok(part));
        }
        let Some(spill) = self.spill.as_mut() else { return self.uncharged.take().map(Ok) };
        if spill.left() == 0 {
            // All read back: the next parts may stay in memory again.
            self.spill = None;
            return match std::mem::take(&mut self.flush_after_spill) {
                true => Some(Ok(Chunk { data: Bytes::new(), flush: true })),
                false => self.uncharged.take().map(Ok),
            };
        }
        match spill.read(self.parts.charge_beside(self.parts.budget())) {
            Ok(data) => {
                let flush = spill.left() == 0 && std::mem::take(&mut self.flush_after_spill);
                Some(Ok(Chunk { data, flush }))
            }
            Err(error) => Some(Err(Fault::storage("cannot read a spilled response back", &error))),
        }
    }
}

impl ResponseBody {
    /// Waits for the head (or a fault) and hands the response over.
    pub(crate) fn poll_response(this: &mut Option<Self>, cx: &mut Context<'_>) -> Poll<Result<Response, Fault>> {
        let Some(receiver) = this.as_ref() else { return Poll::Pending };
        let head = {
            let mut inner = lock(&receiver.inner);
            let visible = inner.visible || inner.ended;
            if let Some(head) = if visible { inner.head.take() } else { None } {
                inner.delivered = true;
                Ok((head, inner.route.take()))
            } else if inner.ended {
                Err(inner.fault.clone().unwrap_or(Fault::with(FaultKind::WorkerBroken, "the response has no head")))
            } else {
                inner.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
        };
        let Some(receiver) = this.take() else { return Poll::Pending };
        Poll::Ready(head.map(|((status, headers), route)| Response { status, headers, route, body: receiver }))
    }

    /// Length of the whole remaining body, if the response has ended.
    pub fn complete_len(&self) -> Option<u64> {
        let inner = lock(&self.inner);
        if !inner.ended || inner.fault.is_some() {
            return None;
        }
        Some(inner.left())
    }

    /// The whole remaining body as one piece, if the response has ended and fits in memory. Leaves the body empty.
    pub fn take_complete(&mut self) -> Option<WholeBody> {
        let mut inner = lock(&self.inner);
        if !inner.ended || inner.fault.is_some() || inner.spill.is_some() || !inner.uncharged.is_empty() {
            return None;
        }
        let whole = inner.parts.take_all();
        drop(inner);
        if let Some(copying) = self.copying.take().and_then(|copying| copying.and_whole(&whole)) {
            copying.complete();
        }
        Some(whole)
    }

    /// Copies the body while it is taken, if it has at most `most` bytes. The copy is sent once the whole body has been
    /// taken.
    pub fn copy(&mut self, most: usize) -> oneshot::Receiver<BodyCopy> {
        let budget = lock(&self.inner).parts.budget();
        let (copying, copied) = Copying::new(most, budget);
        self.copying = Some(copying);
        copied
    }

    /// The next part; `None` at the end. An error means that the rest of the response cannot be delivered.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, Fault>>> {
        let (result, writer) = {
            let mut inner = lock(&self.inner);
            if let Some(part) = inner.next_part() {
                inner.taken += part.as_ref().map_or(0, |chunk| chunk.data.len() as u64);
                (Poll::Ready(Some(part)), inner.writer.take())
            } else if let Some(fault) = inner.fault.take() {
                (Poll::Ready(Some(Err(fault))), None)
            } else if inner.ended {
                (Poll::Ready(None), None)
            } else {
                inner.reader = Some(cx.waker().clone());
                (Poll::Pending, None)
            }
        };
        if let Some(writer) = writer {
            writer.wake();
        }
        if self.copying.is_some() {
            self.copy_part(&result);
        }
        result
    }

    fn copy_part(&mut self, part: &Poll<Option<Result<Chunk, Fault>>>) {
        let Poll::Ready(part) = part else { return };
        let Some(copying) = self.copying.take() else { return };
        match part {
            Some(Ok(chunk)) => self.copying = copying.and(&chunk.data),
            Some(Err(_)) => {}
            None => copying.complete(),
        }
    }

    /// The request's worker, and its times so far.
    pub fn stats(&self) -> RequestStats {
        lock(&self.inner).stats.clone()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let copying = self.copying.take();
        let (writer, copied) = {
            let mut inner = lock(&self.inner);
            // A front that knows the length may drop the body without polling its end.
            let copied = copying.filter(|_| inner.ended && inner.fault.is_none() && inner.left() == 0);
            inner.gone = true;
            inner.parts.clear();
            inner.spill = None;
            inner.uncharged.clear();
            (inner.writer.take(), copied)
        };
        if let Some(copying) = copied {
            copying.complete();
        }
        if let Some(writer) = writer {
            writer.wake();
        }
    }
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;

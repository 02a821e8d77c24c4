//! Where a lane's reader puts an answer and a front takes it from: one per call.
//!
//! The lane is emptied at once, whatever the client's speed, so that a slow reader never holds a PHP worker: parts wait in
//! memory up to a budget, then in an unnamed temporary file. Only when that file reaches `MAX_SPILL` does the reader stop
//! taking from the lane. Reading the file back happens on the I/O thread: it was just written, so it is in the page cache.
//!
//! A body that the worker wrote in one piece may lie in its ring a moment longer (`push_held`): a front that runs next gets
//! it there, and needs no copy. The lane's reader lets the fronts run once and then copies what is left (`settle`).

use crate::call::{CallStats, Chunk, Reply, ReplyBody};
use crate::fault::{Fault, FaultKind};
use crate::whole_body::WholeBody;
use bytes::{Bytes, BytesMut};
use howdah_transport::HeldPayload;
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bytes of one answer that may wait in its temporary file before the worker has to wait too.
const MAX_SPILL: u64 = if cfg!(test) { 1 << 20 } else { 1 << 30 };
/// Bytes read back from the temporary file at a time.
const READ_BACK: usize = 128 * 1024;

/// How much of an answer is kept where.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    /// Bytes in memory before the rest goes to a file.
    pub(crate) memory: usize,
    /// Where the file is made.
    pub(crate) temp_dir: PathBuf,
}

#[derive(Debug)]
struct Spill {
    file: File,
    written: u64,
    read: u64,
}

#[derive(Debug)]
enum First {
    /// Still where the worker wrote it; nothing is behind it.
    InRing(HeldPayload),
    Here(Chunk),
}

#[derive(Debug, Default)]
struct Inner {
    head: Option<(u16, Vec<(Bytes, Bytes)>)>,
    /// The part of the body that comes first; most answers have one.
    first: Option<First>,
    /// Those behind it.
    parts: VecDeque<Chunk>,
    in_memory: usize,
    spill: Option<Spill>,
    /// A flush that PHP asked for behind the last byte in the spill.
    flush_after_spill: bool,
    ended: bool,
    fault: Option<Fault>,
    reader: Option<Waker>,
    /// The lane's reader, when it waits for room.
    writer: Option<Waker>,
    /// The front may take the head: a batch of frames has been added whole. Without this a front on another thread could
    /// see the head of an answer whose end lies in the same batch, and would treat it as a stream.
    visible: bool,
    /// The head has been handed to the front: the call cannot be repeated any more.
    delivered: bool,
    /// The front has dropped its side.
    gone: bool,
    stats: CallStats,
}

/// The writing side, held by the lane's reader and the scheduler.
#[derive(Debug, Clone)]
pub(crate) struct Sink {
    inner: Arc<Mutex<Inner>>,
    budget: Arc<Budget>,
}

/// The reading side, held by the front.
#[derive(Debug)]
pub(crate) struct Receiver {
    inner: Arc<Mutex<Inner>>,
}

/// Locks without ever panicking: the data stays consistent at every point where a panic could happen.
fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn new(budget: Arc<Budget>, stats: CallStats) -> (Sink, Receiver) {
    let inner = Arc::new(Mutex::new(Inner { stats, ..Inner::default() }));
    (Sink { inner: inner.clone(), budget }, Receiver { inner })
}

impl Sink {
    pub(crate) fn set_head(&self, status: u16, headers: Vec<(Bytes, Bytes)>) {
        let mut inner = lock(&self.inner);
        // A call that has failed is one that a worker may still answer (async mode, past its deadline).
        if inner.head.is_none() && !inner.delivered && !inner.ended {
            inner.head = Some((status, headers));
        }
    }

    /// Adds a part of the body. Call `wake` once after a batch.
    pub(crate) fn push(&self, data: Bytes, flush: bool) {
        let mut inner = lock(&self.inner);
        if inner.gone || inner.ended {
            return;
        }
        inner.settle();
        if inner.spill.is_some() || inner.in_memory + data.len() > self.budget.memory {
            if let Err(error) = inner.spill(&self.budget, &data) {
                inner.fault = Some(Fault::with(FaultKind::Storage, format!("cannot spill an answer to disk: {error}")));
                inner.ended = true;
            }
            inner.flush_after_spill |= flush;
            return;
        }
        // A flush without a byte is a mark on what waits already.
        if data.is_empty()
            && let Some(last) = inner.last_part()
        {
            last.flush |= flush;
            return;
        }
        inner.in_memory += data.len();
        inner.add(Chunk { data, flush });
    }

    /// Adds a part of the body that lies in the ring. True: it still does, and `settle` has to be called soon.
    pub(crate) fn push_held(&self, held: HeldPayload) -> bool {
        let mut inner = lock(&self.inner);
        let first = inner.first.is_none() && inner.parts.is_empty() && inner.spill.is_none() && !inner.delivered;
        if first && held.len() <= self.budget.memory && !inner.gone && !inner.ended {
            inner.in_memory += held.len();
            inner.first = Some(First::InRing(held));
            return true;
        }
        drop(inner);
        self.push(Bytes::from(held.copy_from(0)), false);
        false
    }

    /// Copies what still lies in the ring.
    pub(crate) fn settle(&self) {
        lock(&self.inner).settle();
    }

    /// The answer is complete.
    pub(crate) fn end(&self) {
        lock(&self.inner).ended = true;
    }

    /// The answer will not be completed.
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
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Lets the front see what was added.
    pub(crate) fn wake(&self) {
        let waker = {
            let mut inner = lock(&self.inner);
            inner.visible = true;
            inner.reader.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn update_stats(&self, update: impl FnOnce(&mut CallStats)) {
        update(&mut lock(&self.inner).stats);
    }

    /// True once a part of the answer has been handed to the front, or the answer is complete.
    pub(crate) fn is_delivered(&self) -> bool {
        let inner = lock(&self.inner);
        inner.delivered || inner.ended
    }

    /// Forgets what a dead worker had written; only while nothing was delivered.
    pub(crate) fn reset(&self) {
        let mut inner = lock(&self.inner);
        inner.head = None;
        inner.visible = false;
        inner.first = None;
        inner.parts.clear();
        inner.in_memory = 0;
        inner.spill = None;
        inner.flush_after_spill = false;
        inner.stats.replays += 1;
    }

    /// True if the front no longer wants the answer.
    pub(crate) fn is_gone(&self) -> bool {
        lock(&self.inner).gone
    }

    /// True if more waits for the front than may.
    pub(crate) fn is_overfull(&self) -> bool {
        let inner = lock(&self.inner);
        !inner.gone && !inner.ended && inner.spill.as_ref().is_some_and(|s| s.written - s.read >= MAX_SPILL)
    }

    /// Ready once there is room for more; registers the lane's reader otherwise.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = lock(&self.inner);
        let waiting = inner.spill.as_ref().map_or(0, |s| s.written - s.read);
        if waiting < MAX_SPILL || inner.gone || inner.ended {
            return Poll::Ready(());
        }
        inner.writer = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Inner {
    fn spill(&mut self, budget: &Budget, data: &[u8]) -> std::io::Result<()> {
        if self.spill.is_none() {
            let file = tempfile::tempfile_in(&budget.temp_dir)?;
            self.spill = Some(Spill { file, written: 0, read: 0 });
        }
        if let Some(spill) = self.spill.as_mut() {
            spill.file.write_all_at(data, spill.written)?;
            spill.written += data.len() as u64;
        }
        Ok(())
    }

    fn settle(&mut self) {
        if let Some(First::InRing(held)) = &self.first {
            let data = Bytes::from(held.copy_from(0));
            self.first = Some(First::Here(Chunk { data, flush: false }));
        }
    }

    /// The part that comes last, if it is not in the ring.
    fn last_part(&mut self) -> Option<&mut Chunk> {
        let first = match &mut self.first {
            Some(First::Here(chunk)) => Some(chunk),
            _ => None,
        };
        self.parts.back_mut().or(first)
    }

    /// Adds a part behind what is there, of which nothing may be in the ring.
    fn add(&mut self, chunk: Chunk) {
        if self.first.is_none() && self.parts.is_empty() {
            self.first = Some(First::Here(chunk));
        } else {
            self.parts.push_back(chunk);
        }
    }

    fn next_part(&mut self) -> Option<Result<Chunk, Fault>> {
        self.settle();
        let first = match self.first.take() {
            Some(First::Here(chunk)) => Some(chunk),
            _ => None,
        };
        if let Some(part) = first.or_else(|| self.parts.pop_front()) {
            self.in_memory -= part.data.len();
            return Some(Ok(part));
        }
        let spill = self.spill.as_mut()?;
        let left = spill.written - spill.read;
        if left == 0 {
            // All read back: what comes next may stay in memory again.
            self.spill = None;
            return std::mem::take(&mut self.flush_after_spill)
                .then_some(Ok(Chunk { data: Bytes::new(), flush: true }));
        }
        let mut buffer = BytesMut::zeroed(left.min(READ_BACK as u64) as usize);
        if let Err(error) = spill.file.read_exact_at(&mut buffer, spill.read) {
            let text = format!("cannot read a spilled answer back: {error}");
            return Some(Err(Fault::with(FaultKind::Storage, text)));
        }
        spill.read += buffer.len() as u64;
        let flush = spill.read == spill.written && std::mem::take(&mut self.flush_after_spill);
        Some(Ok(Chunk { data: buffer.freeze(), flush }))
    }
}

impl Receiver {
    /// Waits for the head (or a fault) and hands the answer over.
    pub(crate) fn poll_reply(this: &mut Option<Self>, cx: &mut Context<'_>) -> Poll<Result<Reply, Fault>> {
        let Some(receiver) = this.as_ref() else { return Poll::Pending };
        let head = {
            let mut inner = lock(&receiver.inner);
            let visible = inner.visible || inner.ended;
            if let Some(head) = if visible { inner.head.take() } else { None } {
                inner.delivered = true;
                Ok(head)
            } else if inner.ended {
                Err(inner.fault.clone().unwrap_or(Fault::with(FaultKind::WorkerBroken, "an answer without a head")))
            } else {
                inner.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
        };
        let Some(receiver) = this.take() else { return Poll::Pending };
        Poll::Ready(head.map(|(status, headers)| Reply { status, headers, body: ReplyBody::new(receiver) }))
    }

    pub(crate) fn complete_len(&self) -> Option<u64> {
        let inner = lock(&self.inner);
        if !inner.ended || inner.fault.is_some() {
            return None;
        }
        Some(inner.in_memory as u64 + inner.spill.as_ref().map_or(0, |s| s.written - s.read))
    }

    pub(crate) fn take_complete(&mut self) -> Option<WholeBody> {
        let mut inner = lock(&self.inner);
        if !inner.ended || inner.fault.is_some() || inner.spill.is_some() {
            return None;
        }
        let in_memory = std::mem::take(&mut inner.in_memory);
        let first = match inner.first.take() {
            // The only part: whatever comes behind it settles it.
            Some(First::InRing(held)) => return Some(WholeBody::InRing(held)),
            Some(First::Here(chunk)) => chunk.data,
            None => inner.parts.pop_front().map(|part| part.data).unwrap_or_default(),
        };
        if inner.parts.is_empty() {
            return Some(first.into());
        }
        let mut all = BytesMut::with_capacity(in_memory);
        all.extend_from_slice(&first);
        for part in inner.parts.drain(..) {
            all.extend_from_slice(&part.data);
        }
        Some(all.freeze().into())
    }

    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, Fault>>> {
        let (result, writer) = {
            let mut inner = lock(&self.inner);
            if let Some(part) = inner.next_part() {
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
        result
    }

    pub(crate) fn stats(&self) -> CallStats {
        lock(&self.inner).stats.clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let writer = {
            let mut inner = lock(&self.inner);
            inner.gone = true;
            inner.first = None;
            inner.parts.clear();
            inner.spill = None;
            inner.writer.take()
        };
        if let Some(writer) = writer {
            writer.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(receiver: &mut Option<Receiver>) -> Poll<Result<Reply, Fault>> {
        Receiver::poll_reply(receiver, &mut Context::from_waker(Waker::noop()))
    }

    fn pair(memory: usize) -> (Sink, Option<Receiver>) {
        let budget = Arc::new(Budget { memory, temp_dir: std::env::temp_dir() });
        let (sink, receiver) = new(budget, CallStats::default());
        (sink, Some(receiver))
    }

    fn chunks(body: &mut ReplyBody) -> (Vec<u8>, usize) {
        let (mut bytes, mut flushes) = (Vec::new(), 0);
        loop {
            match std::pin::Pin::new(&mut *body).poll_chunk(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(chunk)) => {
                    let chunk = chunk.unwrap();
                    bytes.extend_from_slice(&chunk.data);
                    flushes += usize::from(chunk.flush);
                }
                Poll::Ready(None) | Poll::Pending => return (bytes, flushes),
            }
        }
    }

    #[test]
    fn a_head_is_not_seen_before_the_rest_of_its_batch() {
        let (sink, mut receiver) = pair(100);
        sink.set_head(200, Vec::new());
        assert!(reply(&mut receiver).is_pending());
        sink.push(Bytes::from_static(b"hello"), false);
        sink.end();
        let Poll::Ready(Ok(mut reply)) = reply(&mut receiver) else { panic!("no reply") };
        assert_eq!(reply.body.complete_len(), Some(5));
        assert_eq!(reply.body.take_complete().unwrap().into_bytes(), "hello");
    }

    #[test]
    fn what_does_not_fit_into_memory_comes_back_from_the_file_in_order() {
        let (sink, mut receiver) = pair(1000);
        sink.set_head(200, Vec::new());
        let parts: Vec<Vec<u8>> = (0..40u8).map(|n| vec![n; 100]).collect();
        for (n, part) in parts.iter().enumerate() {
            sink.push(Bytes::from(part.clone()), n == 20);
        }
        sink.wake();
        let Poll::Ready(Ok(mut reply)) = reply(&mut receiver) else { panic!("no reply") };
        let (first, flushes) = chunks(&mut reply.body);
        assert_eq!((first, flushes), (parts.concat(), 1));
        // Once it is read back, what follows stays in memory again.
        sink.push(Bytes::from_static(b"tail"), true);
        sink.end();
        assert_eq!(reply.body.complete_len(), Some(4));
        assert_eq!(chunks(&mut reply.body), (b"tail".to_vec(), 1));
    }

    #[test]
    fn an_answer_that_comes_after_the_fault_is_not_delivered() {
        let (sink, mut receiver) = pair(100);
        sink.fail(Fault::new(FaultKind::Deadline));
        sink.set_head(200, Vec::new());
        sink.push(Bytes::from_static(b"late"), false);
        sink.end();
        sink.wake();
        let Poll::Ready(Err(fault)) = reply(&mut receiver) else { panic!("no fault") };
        assert_eq!(fault.kind.status(), 504);
    }

    #[test]
    fn a_reader_that_has_gone_gets_nothing_and_the_writer_learns_of_it() {
        let (sink, receiver) = pair(100);
        drop(receiver);
        assert!(sink.is_gone());
        sink.push(Bytes::from_static(b"x"), true);
        sink.fail(Fault::new(FaultKind::WorkerDied));
    }

    #[test]
    fn what_a_dead_worker_had_written_is_forgotten_before_the_call_runs_again() {
        let (sink, mut receiver) = pair(100);
        sink.set_head(500, Vec::new());
        sink.push(Bytes::from_static(b"half"), false);
        assert!(!sink.is_delivered());
        sink.reset();
        sink.set_head(200, Vec::new());
        sink.push(Bytes::from_static(b"whole"), false);
        sink.end();
        let Poll::Ready(Ok(mut reply)) = reply(&mut receiver) else { panic!("no reply") };
        assert_eq!(
            (reply.status, reply.body.take_complete().unwrap().into_bytes()),
            (200, Bytes::from_static(b"whole"))
        );
        assert_eq!(reply.body.stats().replays, 1);
    }

    /// A body as a worker's ring has it, with the lane around it.
    fn in_ring(body: &[u8]) -> (HeldPayload, impl Sized) {
        let (sender, mut frames, fd) = howdah_transport::create_lane(howdah_transport::LaneSizes::DEFAULT).unwrap();
        let (ours, theirs) = howdah_transport::control_socket::pair().unwrap();
        let eventfd = howdah_transport::new_eventfd().unwrap();
        let mut worker = howdah_transport::WorkerEnd::attach(&fd, eventfd, theirs.into()).unwrap();
        worker.write(body).unwrap();
        worker.publish();
        let held = frames.next_frame_in_place().unwrap().and_then(|frame| frame.held).unwrap();
        (held, (sender, frames, worker, ours))
    }

    #[test]
    fn a_complete_body_in_one_piece_is_handed_over_in_the_ring_and_any_other_as_a_copy() {
        let body = vec![b'x'; 20_000];
        // What happens to it before the front takes it, and whether it still lies in the ring then.
        let nothing: fn(&Sink) = |_| ();
        for (then, stays) in
            [(nothing, true), (Sink::settle, false), (|sink| sink.push(Bytes::from_static(b"y"), false), false)]
        {
            let (sink, mut receiver) = pair(30_000);
            let (held, _lane) = in_ring(&body);
            sink.set_head(200, Vec::new());
            assert!(sink.push_held(held));
            then(&sink);
            sink.end();
            let Poll::Ready(Ok(mut reply)) = reply(&mut receiver) else { panic!("no reply") };
            let len = reply.body.complete_len().unwrap();
            let whole = reply.body.take_complete().unwrap();
            assert_eq!(matches!(whole, WholeBody::InRing(_)), stays);
            let bytes = whole.into_bytes();
            assert!(bytes.len() as u64 == len && bytes.starts_with(&body));
        }
        // Beyond the budget it goes to the file, as everything does.
        let (sink, _receiver) = pair(10_000);
        let (held, _lane) = in_ring(&body);
        assert!(!sink.push_held(held));
    }
}

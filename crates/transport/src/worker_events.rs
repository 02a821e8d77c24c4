//! The worker's end for a worker that runs several calls at once and waits for them among its own descriptors.
//!
//! Each call is copied out of the request ring when it is taken, so the ring's room is given back at once whatever the
//! calls do. The worker says for which call it writes (`select`) and when all of it is to be seen (`publish`). Waiting is
//! the worker's own business: it announces it (`prepare_wait`), waits on `wake_fd` among others, and takes the
//! announcement back (`woken`).
//!
//! The memory orders are explained in `server_end`.

use crate::ring::{RingBroken, frame_len};
use crate::wake;
use crate::wire::{CALL_BODY_FD, FrameKind, WireCall};
use crate::worker_end::WorkerEnd;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Memory kept for calls to come: so many pieces, none longer than so many words.
const SPARE_MEMORY: usize = 64;
const LARGEST_SPARE: usize = 2048;

/// What the server has sent.
#[derive(Debug)]
pub enum Event {
    /// A call, begun.
    Call(TakenCall),
    /// The answer to a call is not wanted any more. The call may be over already.
    Cancel {
        /// The call.
        number: u64,
        /// One of `wire::CANCEL_*`.
        reason: u32,
    },
    /// No call follows: the worker ends with the last one it has.
    Stop,
}

/// A call in memory of its own.
#[derive(Debug)]
pub struct TakenCall {
    /// Its number on the lane.
    pub number: u64,
    /// The call as it lay in the ring; see `call_parts`.
    words: Vec<u64>,
    /// Its body, if that travels as a descriptor.
    pub body: Option<OwnedFd>,
}

impl TakenCall {
    /// The call's fixed head, with the rest behind it. Valid as long as `self`, also when that is moved.
    #[must_use]
    pub fn call(&self) -> *const WireCall {
        self.words.as_ptr().cast()
    }

    /// The call's memory, to be given to `recycle`.
    #[must_use]
    pub fn into_memory(self) -> Vec<u64> {
        self.words
    }
}

/// Why no event can be taken; the worker must end.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The server's side of the ring makes no sense.
    #[error(transparent)]
    Broken(#[from] RingBroken),
    /// A body's descriptor did not come.
    #[error("cannot get a request's body: {0}")]
    Body(#[from] std::io::Error),
}

impl WorkerEnd {
    /// The next thing the server has sent, if there is one. Never waits.
    ///
    /// # Errors
    /// The server's side makes no sense (a bug).
    pub fn take_event(&mut self) -> Result<Option<Event>, TakeError> {
        loop {
            let control = self.segment.control();
            // Own cursor: only this end stores it.
            let tail = control.request_tail.0.load(Ordering::Relaxed);
            let head = control.request_head.0.load(Ordering::Acquire);
            let available = self.requests.used(head, tail)?;
            if available == 0 {
                return Ok(None);
            }
            let Some(header) = self.requests.read_header(tail, available)? else {
                self.give_back(head, tail + self.requests.skipped_end(tail));
                continue;
            };
            let len = header.len as usize;
            let event = match FrameKind::from_u16(header.kind) {
                Some(FrameKind::Call) if len < size_of::<WireCall>() => {
                    return Err(RingBroken("a call shorter than its head").into());
                }
                Some(FrameKind::Call) => self.begin(tail).then(|| {
                    let mut words = self.spare_memory.pop().unwrap_or_default();
                    self.requests.copy_words(tail, len, &mut words);
                    Event::Call(TakenCall { number: header.number, words, body: None })
                }),
                Some(FrameKind::Cancel) => {
                    let mut words = Vec::new();
                    self.requests.copy_words(tail, len.min(8), &mut words);
                    let reason = words.first().map_or(0, |&word| (word & u64::from(u32::MAX)) as u32);
                    Some(Event::Cancel { number: header.number, reason })
                }
                Some(FrameKind::Stop) => Some(Event::Stop),
                Some(FrameKind::Pad) => None,
                _ => return Err(RingBroken("unexpected frame in the request ring").into()),
            };
            self.give_back(head, tail + frame_len(len) as u64);
            match event {
                Some(Event::Call(call)) => return self.with_body(call).map(Some),
                Some(event) => return Ok(Some(event)),
                None => {}
            }
        }
    }

    /// Takes the memory of a call that is done, for another one.
    pub fn recycle(&mut self, memory: Vec<u64>) {
        if self.spare_memory.len() < SPARE_MEMORY && memory.capacity() <= LARGEST_SPARE {
            self.spare_memory.push(memory);
        }
    }

    fn with_body(&mut self, mut call: TakenCall) -> Result<Event, TakeError> {
        // SAFETY: the words hold at least a `WireCall`, written by the server.
        let flags = unsafe { (*call.call()).flags };
        if flags & CALL_BODY_FD != 0 {
            call.body = Some(self.receive_body_of(call.number)?);
        }
        Ok(Event::Call(call))
    }

    /// Gives the request ring up to `tail` back to the server, and tells it once half of the ring is free if it waits for
    /// room: not sooner, else there would be one wake-up for each call.
    fn give_back(&self, head: u64, tail: u64) {
        let control = self.segment.control();
        control.request_tail.0.store(tail, Ordering::Release);
        if head.wrapping_sub(tail) <= self.requests.cap() as u64 / 2 {
            // Between the cursor and the server's wish: see `CallSender::want_room`.
            fence(Ordering::SeqCst);
            let wanted: &AtomicU32 = &control.room_wanted.0;
            if wanted.load(Ordering::Relaxed) != 0 && wanted.swap(0, Ordering::Relaxed) != 0 {
                self.wake_server();
            }
        }
    }

    /// Says to which call belongs what is written, logged, ended and done from now on; 0: to none.
    pub fn select(&mut self, number: u64) {
        self.write_for(number);
    }

    /// The descriptor to wait on, edge-triggered, and not to read; `None` if this worker runs one call at a time.
    #[must_use]
    pub fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.bell.as_ref().map(|bell| bell.eventfd.as_fd())
    }

    /// Publishes everything and announces that the worker will wait on `wake_fd`. False: there is something to take
    /// first.
    pub fn prepare_wait(&mut self) -> bool {
        self.publish();
        let control = self.segment.control();
        let tail = control.request_tail.0.load(Ordering::Relaxed);
        let ready = || control.request_head.0.load(Ordering::Acquire) != tail;
        if wake::prepare_worker_event(&control.worker_word.0, ready) {
            return true;
        }
        self.woken();
        false
    }

    /// Takes the announcement back after the wait, for whatever reason that ended. The eventfd stays unread: it is
    /// watched edge-triggered, so what was written to it before does not end a later wait. A server that has taken
    /// the announcement but writes only now ends one wait too early, which is harmless.
    pub fn woken(&mut self) {
        self.segment.control().worker_word.0.store(0, Ordering::Relaxed);
    }
}

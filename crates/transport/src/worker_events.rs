//! The worker's end for a multiplexed worker, which waits for requests among its own descriptors.
//!
//! Each request is copied out of the request ring when it is taken, so its room is given back at once, however long
//! requests run. The worker selects the request for which it writes (`select`) and decides when its output becomes
//! visible (`publish`). It also does its own waiting: it announces the wait (`prepare_wait`), waits on `wake_fd` among
//! others, and withdraws the announcement (`woken`).
//!
//! A request whose body travels as a descriptor is delivered once the descriptor has arrived. Until then it waits here,
//! and other requests continue.
//!
//! The memory orders are explained in `server_end`.

use crate::awaited_bodies::{Event, TakenRequest};
use crate::control_socket::Message;
use crate::questions::MAX_QUESTIONS;
use crate::ring::{RingBroken, frame_len};
use crate::wake;
use crate::wire::{FrameKind, WireDone, WireRequest};
use crate::worker_end::WorkerEnd;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use zerocopy::{FromBytes, IntoBytes};

/// Limits of the memory kept for later requests: number of pieces, and length of each in words.
const SPARE_MEMORY: usize = 64;
const MAX_SPARE_LEN: usize = 2048;

/// Each wait leaves at most one byte in the wake pipe, and the smallest pipe holds 4096.
const WAITS_UNTIL_DRAINED: u32 = 1024;

/// Maximum number of bodies that are requested and not yet received. The control socket has room for many times as
/// many.
const MAX_REQUESTED_BODIES: usize = 16;

/// Memory of messages on a control socket that a worker may leave unreceived, in bytes; the kernel uses less than 1 KB
/// for each.
/// cbindgen:ignore
pub const MAX_UNRECEIVED: usize = (MAX_REQUESTED_BODIES + MAX_QUESTIONS) << 10;

/// Reasons why no event can be taken; the worker must end.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The server's side of the ring is invalid.
    #[error(transparent)]
    Broken(#[from] RingBroken),
    /// A body's descriptor, or an answer, did not arrive.
    #[error("cannot receive from the control socket: {0}")]
    Control(#[from] io::Error),
}

impl WorkerEnd {
    /// Returns the next event from the server, if there is one. Does not wait for one.
    ///
    /// # Errors
    /// The server's side is invalid (a bug).
    pub fn take_event(&mut self) -> Result<Option<Event>, TakeError> {
        if let Some(event) = self.take_message()? {
            return Ok(Some(event));
        }
        if let Some(event) = self.pending_event() {
            return Ok(Some(event));
        }
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
                Some(FrameKind::Request) if len < size_of::<WireRequest>() => {
                    return Err(RingBroken("a request shorter than its head").into());
                }
                Some(FrameKind::Request) => self.begin(tail).then(|| {
                    let mut words = self.spare_memory.pop().unwrap_or_default();
                    self.requests.copy_words(tail, len, &mut words);
                    Event::Request(TakenRequest::new(header.number, words))
                }),
                Some(FrameKind::Cancel) => {
                    let mut words = Vec::new();
                    self.requests.copy_words(tail, len.min(8), &mut words);
                    let reason = u32::read_from_prefix(words.as_bytes()).map_or(0, |(reason, _)| reason);
                    Some(Event::Cancel { number: header.number, reason })
                }
                Some(FrameKind::Stop) => Some(Event::Stop),
                Some(FrameKind::Pad) => None,
                _ => return Err(RingBroken("unexpected frame in the request ring").into()),
            };
            self.give_back(head, tail + frame_len(len) as u64);
            match event {
                Some(Event::Request(request)) if request.awaits_body() => {
                    self.bodies.requests.push_back(request);
                    self.request_bodies();
                }
                Some(event) if self.bodies.delays(&event) => self.bodies.later.push_back(event),
                Some(event) => return Ok(Some(event)),
                None => {}
            }
        }
    }

    /// Requests as many bodies as allowed at once: their requests wait only for them.
    fn request_bodies(&mut self) {
        let asked = self.bodies.asked;
        while self.bodies.asked < MAX_REQUESTED_BODIES
            && let Some(request) = self.bodies.requests.get(self.bodies.asked)
        {
            self.request_body(request.number);
            self.bodies.asked += 1;
        }
        if self.bodies.asked != asked {
            self.publish();
        }
    }

    /// Returns the next request whose body has arrived, or the next answer.
    fn take_message(&mut self) -> Result<Option<Event>, TakeError> {
        if let Some(text) = self.questions.texts.pop_front() {
            return Ok(Some(Event::Text(text)));
        }
        while self.expects_message() {
            let received = match self.bodies.received.pop_front() {
                Some(received) => Ok(Some(received)),
                None => self.control.try_receive(),
            };
            let (message, fd) = match received {
                Ok(Some(received)) => received,
                Ok(None) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "control socket closed").into()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let unexpected = || io::Error::other("unexpected message on the control socket");
            let (wanted, fd) = match (message, fd) {
                (Message::Body { number } | Message::NoBody { number }, fd) => (number, fd),
                (Message::Text { number }, Some(text)) => {
                    self.questions.keep(number, text).map_err(|_| unexpected())?;
                    return Ok(self.questions.texts.pop_front().map(Event::Text));
                }
                _ => return Err(unexpected().into()),
            };
            let position = self.bodies.requests.iter().position(|request| request.number == wanted);
            let Some(mut request) = position.and_then(|at| self.bodies.requests.remove(at)) else { continue };
            self.bodies.asked = self.bodies.asked.saturating_sub(1);
            self.request_bodies();
            if fd.is_some() {
                request.body = fd;
                return Ok(Some(Event::Request(request)));
            }
            // The request has already failed on the server's side.
            self.recycle(request.into_memory());
            let selected = self.number();
            self.write_for(wanted);
            self.done(WireDone::default());
            self.write_for(selected);
        }
        Ok(None)
    }

    /// True if the server owes a body or an answer.
    fn expects_message(&self) -> bool {
        !self.bodies.requests.is_empty() || !self.questions.open.is_empty()
    }

    /// Returns the next event that was received while requests waited for their bodies, once nothing delays it.
    fn pending_event(&mut self) -> Option<Event> {
        let bodies = &mut self.bodies;
        let at = (0..bodies.later.len()).find(|&at| !bodies.delays(&bodies.later[at]))?;
        bodies.later.remove(at)
    }

    /// Keeps the memory of a finished request for another one.
    pub fn recycle(&mut self, memory: Vec<u64>) {
        if self.spare_memory.len() < SPARE_MEMORY && memory.capacity() <= MAX_SPARE_LEN {
            self.spare_memory.push(memory);
        }
    }

    /// Gives the request ring up to `tail` back to the server. If the server waits for room, wakes it once half of the
    /// ring is free; doing so earlier would mean one wake-up for each request.
    fn give_back(&self, head: u64, tail: u64) {
        let control = self.segment.control();
        control.request_tail.0.store(tail, Ordering::Release);
        if head.wrapping_sub(tail) <= self.requests.cap() as u64 / 2 {
            // The cursor is stored first: see `RequestSender::want_room`.
            if wake::take_any(&control.room_wanted.0) {
                self.wake_server();
            }
        }
    }

    /// Selects the request to which the following output, log lines and ends belong; 0: none.
    pub fn select(&mut self, number: u64) {
        self.write_for(number);
    }

    /// The descriptor to wait on, edge-triggered; it must not be read. `None` if this worker runs one request at a
    /// time.
    pub fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake_pipe.as_ref().map(|wake_pipe| wake_pipe.fd.as_fd())
    }

    /// Publishes everything and announces that the worker will wait on `wake_fd`. Returns false if there is an event to
    /// take first.
    pub fn prepare_wait(&mut self) -> bool {
        self.publish();
        let control = self.segment.control();
        let tail = control.request_tail.0.load(Ordering::Relaxed);
        // The server sends a message before it checks whether the worker waits, just as it publishes a request before
        // that.
        let message_has_come = || {
            !self.questions.texts.is_empty()
                || (self.expects_message() && (!self.bodies.received.is_empty() || self.control.has_message()))
        };
        let ready = || control.request_head.0.load(Ordering::Acquire) != tail || message_has_come();
        if wake::prepare_worker_event(&control.worker_word.0, ready) {
            return true;
        }
        self.woken();
        false
    }

    /// Withdraws the announcement after the wait, whatever ended it. The pipe stays unread: it is watched
    /// edge-triggered, so earlier writes do not end a later wait, and it is emptied only from time to time. A server
    /// that has seen the announcement but writes only now ends one wait too early, which is harmless.
    pub fn woken(&mut self) {
        self.segment.control().worker_word.0.store(0, Ordering::Relaxed);
        if let Some(wake_pipe) = self.wake_pipe.as_mut() {
            wake_pipe.waits += 1;
            if wake_pipe.waits == WAITS_UNTIL_DRAINED {
                wake_pipe.waits = 0;
                wake::drain(wake_pipe.fd.as_fd());
            }
        }
    }
}

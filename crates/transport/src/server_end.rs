//! The server's end of a lane: sends requests, takes them back, reads frames. It trusts nothing that it reads.
//!
//! Memory orders: the server publishes a request with a `Release` store of `request_head`, which the worker loads with
//! `Acquire`; the worker publishes frames with a `Release` store of `response_head`, loaded here with `Acquire`. So
//! frame bytes are visible before the cursor that announces them. The server stores `response_tail` with `Release`
//! after the bytes were copied out or, if they are used in place (`held`), released, so that the worker cannot
//! overwrite bytes that are being read; the worker does the same with `request_tail`. A side reads its own cursors with
//! `Relaxed`, as it is their only writer. Words that publish no other data (`aborted`, `selected`, `timed_out`,
//! `room_wanted`) are `Relaxed`: seeing them late only costs time. Where both sides could miss each other and one would
//! sleep forever, `wake` has the fences.

use crate::held::{HeldPayload, Holds};
use crate::pool_page::PoolReport;
use crate::request_state;
use crate::ring::{FrameHeader, Ring, RingBroken, frame_len};
use crate::segment::{LaneSizes, Segment};
use crate::wake;
use crate::wire::{
    EncodedRequest, FrameKind, REQUEST_BODY_DROPPED, REQUEST_BODY_FD, REQUEST_BODY_INLINE, REQUEST_BODY_STREAM,
    WireRequest,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zerocopy::IntoBytes;

pub use crate::ring::RingBroken as Broken;

/// A body frame that takes at least this fraction of its ring may stay there: 8 KB of 512 KB. Copying shorter ones is
/// faster.
const HELD_DIVISOR: usize = 64;

/// Position of a request in its lane; needed to take it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSlot(u64);

#[derive(Debug)]
pub struct Frame {
    /// The frame's kind.
    pub kind: FrameKind,
    /// `FLAG_*` bits.
    pub flags: u16,
    /// The number of the request it claims to belong to; the caller compares it with the requests in the lane.
    pub number: u64,
    /// The payload, copied out of the lane; empty if it is held.
    pub payload: Vec<u8>,
    /// The payload in place, if it was left in the ring.
    pub held: Option<HeldPayload>,
}

/// Reasons why a request could not be put into a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No room now; requests that were taken back still occupy it.
    #[error("no room in the lane")]
    Full,
    /// The request is too large for any lane.
    #[error("the request's head does not fit into a lane")]
    TooLarge,
    /// The worker violated the protocol.
    #[error(transparent)]
    Broken(#[from] RingBroken),
}

/// Transport of a request's body.
#[derive(Debug, Clone, Copy)]
pub enum BodyInLane<'a> {
    /// There is none.
    None,
    /// In the frame.
    Inline(&'a [u8]),
    /// Its descriptor is sent over the control socket when the worker asks for it; the length in bytes.
    Descriptor(u64),
    /// As `Descriptor`, for the script's end of a `connection_stream`.
    Stream,
    /// The body was too large to keep; its length in bytes.
    Dropped(u64),
}

/// Creates a lane: the half that sends requests, the half that receives frames, and the descriptor for the worker. The
/// segment is unmapped when both halves are dropped.
///
/// # Errors
/// The system's error when memory or descriptors run out.
pub fn create_lane(sizes: LaneSizes) -> io::Result<(RequestSender, FrameReceiver, OwnedFd)> {
    let (segment, fd) = Segment::create(sizes)?;
    let segment = Arc::new(segment);
    let sender =
        RequestSender { requests: segment.request_ring(), segment: segment.clone(), request_head: 0, wake_pipe: None };
    let holds = Arc::new(Holds::new(segment.clone()));
    let receiver = FrameReceiver { responses: segment.response_ring(), segment, holds, response_tail: 0 };
    Ok((sender, receiver, fd))
}

/// The half of the server's end that sends requests.
#[derive(Debug)]
pub struct RequestSender {
    segment: Arc<Segment>,
    requests: Ring,
    /// Own copy of `Control::request_head`.
    request_head: u64,
    /// The wake pipe of a multiplexed worker; `None`: the worker waits on the futex.
    wake_pipe: Option<OwnedFd>,
}

/// The half of the server's end that receives frames.
#[derive(Debug)]
pub struct FrameReceiver {
    segment: Arc<Segment>,
    responses: Ring,
    holds: Arc<Holds>,
    /// End of the bytes read. `Control::response_tail` follows it up to the first held frame.
    response_tail: u64,
}

impl RequestSender {
    /// Makes this the end of a lane of a multiplexed worker, which waits for this wake pipe. `wake_pipe` is the only
    /// write end.
    pub fn with_wake_pipe(mut self, wake_pipe: OwnedFd) -> Self {
        self.wake_pipe = Some(wake_pipe);
        self
    }

    /// Maximum inline body that fits into the lane together with this request, in bytes.
    pub fn inline_room(&self, request: &EncodedRequest) -> usize {
        self.requests.max_payload().saturating_sub(request.wire_len())
    }

    /// Puts a request into the lane under a number and wakes the worker if it sleeps.
    ///
    /// # Errors
    /// See `SendError`; nothing was sent then.
    pub fn send_request(
        &mut self,
        request: &EncodedRequest,
        number: u64,
        body: BodyInLane<'_>,
    ) -> Result<RequestSlot, SendError> {
        self.send_request_with(request, number, body, 0)
    }

    /// Sends a request with `REQUEST_MEASURE` or `REQUEST_NICE` in `flags`.
    ///
    /// # Errors
    /// See `SendError`; nothing was sent then.
    pub fn send_request_with(
        &mut self,
        request: &EncodedRequest,
        number: u64,
        body: BodyInLane<'_>,
        flags: u32,
    ) -> Result<RequestSlot, SendError> {
        let (inline, body_len, body_flag): (&[u8], u64, u32) = match body {
            BodyInLane::None => (&[], 0, 0),
            BodyInLane::Inline(bytes) => (bytes, bytes.len() as u64, REQUEST_BODY_INLINE),
            BodyInLane::Descriptor(len) => (&[], len, REQUEST_BODY_FD),
            BodyInLane::Stream => (&[], 0, REQUEST_BODY_FD | REQUEST_BODY_STREAM),
            BodyInLane::Dropped(len) => (&[], len, REQUEST_BODY_DROPPED),
        };
        let len = request.wire_len() + inline.len();
        let at = self.place(len)?;
        let head = WireRequest { number, body_len, flags: request.head.flags | body_flag | flags, ..request.head };
        self.requests.write_payload(at, 0, head.as_bytes());
        let mut skip = size_of::<WireRequest>();
        for part in [request.vars.as_bytes(), &request.strings, inline] {
            self.requests.write_payload(at, skip, part);
            skip += part.len();
        }
        self.publish(at, FrameKind::Request, number, len);
        Ok(RequestSlot(at))
    }

    /// Orders the worker to end after the requests it has.
    ///
    /// # Errors
    /// See `SendError`.
    pub fn send_stop(&mut self) -> Result<(), SendError> {
        let at = self.place(0)?;
        self.publish(at, FrameKind::Stop, 0, 0);
        Ok(())
    }

    fn place(&self, payload: usize) -> Result<u64, SendError> {
        if payload > self.requests.max_payload() {
            return Err(SendError::TooLarge);
        }
        if let Some(at) = self.place_now(payload)? {
            return Ok(at);
        }
        self.want_room();
        match self.place_now(payload)? {
            Some(at) => {
                self.segment.control().room_wanted.0.store(0, Ordering::Relaxed);
                Ok(at)
            }
            None => Err(SendError::Full),
        }
    }

    fn place_now(&self, payload: usize) -> Result<Option<u64>, RingBroken> {
        let tail = self.segment.control().request_tail.0.load(Ordering::Acquire);
        self.requests.place(self.request_head, tail, payload)
    }

    /// Asks a multiplexed worker to wake the server once half of the request ring is free. Serial workers free room at
    /// the end of each request.
    pub fn want_room(&self) {
        // The server stores its request for room, then reads the worker's cursor; the worker stores its cursor, then
        // reads the request (`WorkerEnd::give_back`). With a fence in between on both sides they cannot miss each
        // other.
        wake::announce(&self.segment.control().room_wanted.0, 1);
    }

    fn publish(&mut self, at: u64, kind: FrameKind, number: u64, len: usize) {
        let header = FrameHeader {
            len: len as u32,
            kind: kind as u16,
            flags: 0,
            number,
            state: request_state::QUEUED,
            began: 0,
        };
        self.requests.write_header(at, header);
        self.request_head = at + frame_len(len) as u64;
        let control = self.segment.control();
        control.request_head.0.store(self.request_head, Ordering::Release);
        match &self.wake_pipe {
            None => wake::wake_worker(&control.worker_word.0, wake::WORKER_WAITS_REQUEST),
            Some(wake_pipe) => wake::wake_worker_event(&control.worker_word.0, wake_pipe.as_fd()),
        }
    }

    /// Wakes a multiplexed worker after a message was sent over the control socket.
    pub fn message_sent(&self) {
        if let Some(wake_pipe) = &self.wake_pipe {
            wake::wake_worker_event(&self.segment.control().worker_word.0, wake_pipe.as_fd());
        }
    }

    /// Takes back a request that the worker has not begun. Returns true if the worker will skip it. The exchange
    /// decides the race against the worker's own exchange to "running". A worker that cheats here responds to a request
    /// that its lane no longer has; the caller detects that by the frame's number.
    #[must_use]
    pub fn take_back(&self, slot: RequestSlot) -> bool {
        !self.is_begun(slot) && request_state::take_back(self.requests.state(slot.0))
    }

    /// True if the worker has begun the request (according to the worker).
    pub fn is_begun(&self, slot: RequestSlot) -> bool {
        // If requests are copied out, a slot that was given back may hold another request by now.
        request_state::is_decided(self.requests.state(slot.0))
            || (self.wake_pipe.is_some() && self.segment.control().request_tail.0.load(Ordering::Acquire) > slot.0)
    }

    /// Time for which a serial worker has run this request, in microseconds (according to the worker); `None` if it has
    /// not recorded the start. `now_us` is the time by `monotonic_us`.
    pub fn ran_us(&self, slot: RequestSlot, now_us: u32) -> Option<u32> {
        // Relaxed: the number publishes no other data.
        match self.requests.began(slot.0).load(Ordering::Relaxed) {
            0 => None,
            began => Some(now_us.wrapping_sub(began)),
        }
    }

    /// Informs a multiplexed worker that the response to one of its requests is no longer wanted; `reason` is one of
    /// `wire::CANCEL_*`.
    ///
    /// # Errors
    /// See `SendError`; nothing was sent then.
    pub fn send_cancel(&mut self, number: u64, reason: u32) -> Result<(), SendError> {
        let payload = reason.to_ne_bytes();
        let at = self.place(payload.len())?;
        self.requests.write_payload(at, 0, &payload);
        self.publish(at, FrameKind::Cancel, number, payload.len());
        Ok(())
    }

    /// Number of the request whose code a multiplexed worker was last running (according to the worker); 0 for none.
    pub fn selected(&self) -> u64 {
        self.segment.control().selected.0.load(Ordering::Relaxed)
    }

    /// True if this request's script exceeded its time limit (according to the worker).
    pub fn timed_out(&self, number: u64) -> bool {
        self.segment.control().timed_out.0.load(Ordering::Relaxed) == number
    }

    /// The worker's connection pools (according to the worker).
    pub fn pools(&self) -> Vec<PoolReport> {
        self.segment.pools().read()
    }

    /// True if the worker has taken everything (according to the worker).
    pub fn is_empty(&self) -> bool {
        self.segment.control().request_tail.0.load(Ordering::Acquire) == self.request_head
    }

    /// Informs a serial worker that the client of this request has gone. Wakes the worker if it waits for room.
    pub fn abort(&self, number: u64) {
        let control = self.segment.control();
        control.aborted.0.store(number, Ordering::Relaxed);
        wake::wake_worker(&control.worker_word.0, wake::WORKER_WAITS_ROOM);
    }
}

impl FrameReceiver {
    /// Returns the next frame, copied out. `None`: no frame is published. After draining, call `frames_taken`.
    ///
    /// # Errors
    /// The worker published something invalid; the lane must be discarded.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, Broken> {
        self.next(usize::MAX)
    }

    /// As `next_frame`, but leaves the payload of a long body frame in the ring (`held`).
    ///
    /// # Errors
    /// As `next_frame`.
    pub fn next_frame_in_place(&mut self) -> Result<Option<Frame>, Broken> {
        self.next(self.responses.cap() / HELD_DIVISOR)
    }

    /// Body frames of at least `held_from` bytes stay in the ring.
    fn next(&mut self, held_from: usize) -> Result<Option<Frame>, Broken> {
        let head = self.segment.control().response_head.0.load(Ordering::Acquire);
        loop {
            let available = self.responses.used(head, self.response_tail)?;
            if available == 0 {
                return Ok(None);
            }
            let Some(header) = self.responses.read_header(self.response_tail, available)? else {
                self.response_tail += self.responses.skipped_end(self.response_tail);
                continue;
            };
            let kind = FrameKind::from_u16(header.kind).ok_or(RingBroken("unknown frame"))?;
            let at = self.response_tail;
            self.response_tail += frame_len(header.len as usize) as u64;
            if kind == FrameKind::Pad {
                self.responses.check_padding(at, header.len as usize)?;
                continue;
            }
            let (len, mut payload, mut held) = (header.len as usize, Vec::new(), None);
            if kind == FrameKind::Body && len >= held_from {
                held = Some(self.holds.hold(at, self.responses.payload_start(at), len));
            } else {
                payload = Vec::with_capacity(len);
                self.responses.copy_payload(at, len, &mut payload);
            }
            return Ok(Some(Frame { kind, flags: header.flags, number: header.number, payload, held }));
        }
    }

    /// Gives the room of all frames read so far, up to the first held one, back to the worker and wakes it if it waits
    /// for room.
    pub fn frames_taken(&self) {
        self.holds.take_up_to(self.response_tail);
    }

    /// Announces that the server will wait on the lane's eventfd. Returns false if frames have arrived; read them
    /// first.
    #[must_use]
    pub fn prepare_sleep(&self) -> bool {
        let control = self.segment.control();
        wake::prepare_server_sleep(&control.server_word.0, || {
            control.response_head.0.load(Ordering::Acquire) != self.response_tail
        })
    }
}

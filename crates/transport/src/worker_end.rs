//! The worker's end of a lane: waits for requests, writes responses. Used by one single-threaded process.
//!
//! A serial worker keeps no state of the lane in private memory across requests: `next_request` reads every cursor from
//! the control page again, because snapshot mode restores all private memory of the process between two requests.
//!
//! Responses are published in batches: frames are written after `head`, which only `publish` makes visible to the
//! server. That happens at the end of a request, when PHP flushes, when a quarter of the ring is unpublished, when the
//! server holds nothing else that could make room, and with frames that the server must see at once, such as a
//! question. So a short response costs one store and at most one wake-up.
//!
//! The memory orders are explained in `server_end`.

use crate::awaited_bodies::AwaitedBodies;
use crate::clock;
use crate::control_socket::{ControlSocket, Message};
use crate::questions::Questions;
use crate::request_state;
use crate::ring::{FrameHeader, Ring, RingBroken, frame_len};
use crate::segment::{Hole, Segment};
use crate::wake;
use crate::wire::{
    FLAG_FLUSH, FLAG_MORE, FrameKind, POOL_NUMBERS, REQUEST_BODY_FD, REQUEST_BODY_INLINE, WireDone, WireRequest,
    WireVar,
};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use zerocopy::IntoBytes;

/// A `Body` frame that can still grow.
#[derive(Debug, Clone, Copy)]
struct OpenBody {
    at: u64,
    len: usize,
    /// Length in bytes at which the consumer's cursor must be read again, which costs a cache miss.
    limit: usize,
}

/// Result of waiting for a request.
#[derive(Debug, Clone, Copy)]
pub enum NextRequest {
    /// The pointer is valid until `done`.
    Request(*const WireRequest),
    /// The server orders the worker to end.
    Stop,
    /// There was no request for the time that was given.
    Idle,
}

/// The client of the current request has gone; output for it is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientGone;

/// The worker's end of a lane.
#[derive(Debug)]
pub struct WorkerEnd {
    pub(crate) segment: Segment,
    pub(crate) requests: Ring,
    responses: Ring,
    eventfd: OwnedFd,
    pub(crate) control: ControlSocket,
    /// The wake pipe of a multiplexed worker; `None`: one request at a time.
    pub(crate) wake_pipe: Option<WakePipe>,
    /// End of the written part of the response ring, published or not.
    head: u64,
    /// End of the published part of the response ring.
    published: u64,
    /// Unpublished bytes that were skipped because the ring ended.
    padding: u64,
    open: Option<OpenBody>,
    /// Number of the current request, 0 between requests.
    number: u64,
    /// Cursor after the current request's frame, which stays in the ring until the request is done. `None` if requests
    /// are copied out at once.
    request_end: Option<u64>,
    /// Memory of finished requests, for reuse, if requests are copied out.
    pub(crate) spare_memory: Vec<Vec<u64>>,
    /// Requests that wait for their bodies, in a multiplexed worker.
    pub(crate) bodies: AwaitedBodies,
    /// Questions of a multiplexed worker's requests.
    pub(crate) questions: Questions,
}

/// The wake pipe of a multiplexed worker.
#[derive(Debug)]
pub(crate) struct WakePipe {
    pub(crate) fd: OwnedFd,
    /// Number of waits since the pipe was emptied; each may have left a byte in it.
    pub(crate) waits: u32,
}

impl WorkerEnd {
    /// Takes over a lane.
    ///
    /// # Errors
    /// The lane's version or sizes do not match this build.
    pub fn attach(lane: impl AsFd, eventfd: OwnedFd, control: ControlSocket) -> io::Result<Self> {
        // The first call looks up the vDSO's function and keeps it in a static. Snapshot mode undoes writes to statics
        // after each request, so without this every request would look it up again.
        let _ = clock::monotonic_us();
        let segment = Segment::attach(lane)?;
        let (requests, responses) = (segment.request_ring(), segment.response_ring());
        let head = segment.control().response_head.0.load(Ordering::Relaxed);
        Ok(Self {
            segment,
            requests,
            responses,
            eventfd,
            control,
            wake_pipe: None,
            spare_memory: Vec::new(),
            bodies: AwaitedBodies::default(),
            questions: Questions::default(),
            head,
            published: head,
            padding: 0,
            open: None,
            number: 0,
            request_end: None,
        })
    }

    /// Makes this the end of a multiplexed worker, which uses `worker_events` instead of `next_request`; the server
    /// wakes it through this wake pipe.
    pub fn with_wake_pipe(mut self, wake_pipe: OwnedFd) -> Self {
        self.wake_pipe = Some(WakePipe { fd: wake_pipe, waits: 0 });
        self
    }

    /// The current request's number, 0 between requests.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Names one of the `POOL_SLOTS` connection pools that the worker reports; a name that is too long is truncated.
    pub fn set_pool_name(&self, slot: usize, name: &[u8]) {
        self.segment.pools().set_name(slot, name);
    }

    /// Publishes a connection pool's numbers, indexed by `wire::PoolNumber`. The server reads them on demand.
    pub fn set_pool_numbers(&self, slot: usize, numbers: &[u64; POOL_NUMBERS]) {
        self.segment.pools().set_numbers(slot, numbers);
    }

    /// Reports to the server that the worker has booted.
    pub fn ready(&mut self) {
        self.check_again();
        self.put(FrameKind::Ready, 0, &[]);
        self.publish();
    }

    /// Waits for a request and begins it. `None`: the server orders the worker to end. The pointer is valid until
    /// `done`.
    ///
    /// # Errors
    /// The server's side of the ring is invalid (a bug); the worker must end.
    pub fn next_request(&mut self) -> Result<Option<*const WireRequest>, RingBroken> {
        match self.next_request_within(None)? {
            NextRequest::Request(request) => Ok(Some(request)),
            NextRequest::Stop | NextRequest::Idle => Ok(None),
        }
    }

    /// Waits for a request and begins it, as `next_request` does. Returns `Idle` after `longest` without a request.
    ///
    /// # Errors
    /// The server's side of the ring is invalid (a bug); the worker must end.
    pub fn next_request_within(&mut self, longest: Option<Duration>) -> Result<NextRequest, RingBroken> {
        let mut idle_from = None;
        let control = self.segment.control();
        self.head = control.response_head.0.load(Ordering::Relaxed);
        self.all_is_published();
        self.open = None;
        loop {
            let control = self.segment.control();
            // Own cursor: only this end stores it.
            let tail = control.request_tail.0.load(Ordering::Relaxed);
            let head = control.request_head.0.load(Ordering::Acquire);
            let available = self.requests.used(head, tail)?;
            if available == 0 {
                let waited = longest.map(|_| idle_from.get_or_insert_with(Instant::now).elapsed());
                if waited >= longest && longest.is_some() {
                    return Ok(NextRequest::Idle);
                }
                let rest = longest.zip(waited).map(|(longest, waited)| longest - waited);
                wake::sleep_worker(&control.worker_word.0, wake::WORKER_WAITS_REQUEST, rest, || {
                    control.request_head.0.load(Ordering::Acquire) != tail
                });
                continue;
            }
            let Some(header) = self.requests.read_header(tail, available)? else {
                let end = tail + self.requests.skipped_end(tail);
                control.request_tail.0.store(end, Ordering::Release);
                continue;
            };
            let end = tail + frame_len(header.len as usize) as u64;
            match FrameKind::from_u16(header.kind) {
                Some(FrameKind::Request) if self.begin(tail) => {
                    self.set_began(clock::monotonic_us());
                    self.number = header.number;
                    self.request_end = Some(end);
                    return Ok(NextRequest::Request(self.requests.payload(tail).cast()));
                }
                Some(FrameKind::Request | FrameKind::Pad) => control.request_tail.0.store(end, Ordering::Release),
                Some(FrameKind::Stop) => return Ok(NextRequest::Stop),
                _ => return Err(RingBroken("unexpected frame in the request ring")),
            }
        }
    }

    /// Records when the current request began, by `monotonic_us`: the server queues no other request behind a
    /// long-running one.
    pub fn set_began(&self, now_us: u32) {
        // Both Relaxed: this end owns the cursor, and the number publishes no other data.
        let at = self.segment.control().request_tail.0.load(Ordering::Relaxed);
        self.requests.began(at).store(now_us, Ordering::Relaxed);
    }

    /// Marks a queued request as running; false if the server has taken it back.
    pub(crate) fn begin(&self, at: u64) -> bool {
        request_state::begin(self.requests.state(at))
    }

    /// Requests the current request's body and waits for its descriptor, which the server sends only to a worker that
    /// has begun the request. `None`: the body is unavailable and the request has failed; the worker ends it with
    /// `done` at once.
    ///
    /// # Errors
    /// The control socket is closed or delivered an unexpected message.
    pub fn receive_body(&mut self) -> io::Result<Option<OwnedFd>> {
        self.request_body(self.number);
        self.publish();
        match self.control.receive()? {
            Some((Message::Body { number }, Some(fd))) if number == self.number => Ok(Some(fd)),
            Some((Message::NoBody { number }, _)) if number == self.number => Ok(None),
            Some(_) => Err(io::Error::other("unexpected message on the control socket")),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "control socket closed")),
        }
    }

    /// Requests the body of a begun request.
    pub fn request_body(&mut self, number: u64) {
        // The open frame belongs to the selected request.
        self.close_body(0);
        let selected = std::mem::replace(&mut self.number, number);
        self.put(FrameKind::NeedBody, 0, &[]);
        self.number = selected;
    }

    /// True if the client of the current request has gone.
    pub fn client_gone(&self) -> bool {
        self.segment.control().aborted.0.load(Ordering::Relaxed) == self.number && self.number != 0
    }

    /// Writes the response's head (or an interim one), laid out as described at `FrameKind::Head`; splits it over
    /// several frames if needed.
    pub fn head(&mut self, interim: bool, mut payload: &[u8]) {
        let kind = if interim { FrameKind::Interim } else { FrameKind::Head };
        let max = self.responses.max_payload();
        while payload.len() > max {
            let (part, rest) = payload.split_at(max);
            self.put(kind, FLAG_MORE, part);
            payload = rest;
        }
        self.put(kind, 0, payload);
        if interim {
            self.publish();
        }
    }

    /// Sends an order for connections and channels (`live_order`) to the server. It is published at once, unless part
    /// of a response is unpublished, which publishing would turn into a stream.
    pub fn live(&mut self, mut payload: &[u8]) {
        let alone = self.open.is_none() && self.unpublished() == 0;
        let max = self.responses.max_payload();
        while payload.len() > max {
            let (part, rest) = payload.split_at(max);
            self.put(FrameKind::Live, FLAG_MORE, part);
            payload = rest;
        }
        self.put(FrameKind::Live, 0, payload);
        if alone {
            self.publish();
        }
    }

    /// Adds to the response's body.
    ///
    /// # Errors
    /// The client has gone; the bytes are dropped.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<(), ClientGone> {
        while !bytes.is_empty() {
            if self.client_gone() {
                return Err(ClientGone);
            }
            if self.open.is_none_or(|open| open.len == open.limit) && !self.body_has_room() {
                self.wait_for_room();
                continue;
            }
            let Some(open) = self.open.as_mut() else { continue };
            let n = (open.limit - open.len).min(bytes.len());
            self.responses.write_payload(open.at, open.len, &bytes[..n]);
            open.len += n;
            self.head = open.at + frame_len(open.len) as u64;
            bytes = &bytes[n..];
            if self.unpublished() >= self.responses.cap() / 4 {
                self.close_body(0);
                self.publish();
            }
        }
        Ok(())
    }

    /// Makes room in the open body frame, or opens a new one; false: the ring is full.
    fn body_has_room(&mut self) -> bool {
        let tail = self.segment.control().response_tail.0.load(Ordering::Acquire);
        let max = self.responses.max_payload();
        if let Some(open) = self.open.as_mut() {
            open.limit = self.responses.growth(open.at, tail).unwrap_or(0).min(max);
            if open.limit > open.len {
                return true;
            }
            // A frame limited only by the consumer's progress is continued, so that the server need not reassemble the
            // body.
            if open.len < self.responses.room_at(open.at).min(max) {
                return false;
            }
            self.close_body(0);
        }
        // The rest at the ring's end is skipped if it is too short for a useful frame.
        let least = (self.responses.cap() / 256).max(64);
        let Ok(Some(at)) = self.responses.place(self.head, tail, least) else { return false };
        let limit = self.responses.growth(at, tail).unwrap_or(0).min(max);
        self.open = Some(OpenBody { at, len: 0, limit });
        self.padding += at - self.head;
        self.head = at;
        limit > 0
    }

    /// Selects the request to which the following frames belong; 0: none.
    pub(crate) fn write_for(&mut self, number: u64) {
        if number != self.number {
            self.close_body(0);
            self.number = number;
            // The server reads it when this process is dead, to learn which request's code killed it.
            self.segment.control().selected.0.store(number, Ordering::Relaxed);
        }
    }

    fn close_body(&mut self, flags: u16) {
        if let Some(open) = self.open.take() {
            self.finish_frame(open.at, FrameKind::Body, flags, open.len);
        }
    }

    /// Marks everything written so far as to be sent to the client now.
    pub fn flush(&mut self) {
        if self.open.is_some_and(|open| open.len > 0) {
            self.close_body(FLAG_FLUSH);
        } else {
            self.close_body(0);
            self.put(FrameKind::Body, FLAG_FLUSH, &[]);
        }
        self.publish();
    }

    /// Marks the response as complete for the client.
    pub fn end_response(&mut self, publish: bool) {
        self.close_body(0);
        self.put(FrameKind::End, 0, &[]);
        if publish {
            self.publish();
        }
    }

    /// Ends the request and gives its frame back to the server. In a multiplexed worker the end is published with the
    /// next frames, unless much is unpublished.
    pub fn done(&mut self, done: WireDone) {
        self.close_body(0);
        self.put(FrameKind::Done, 0, done.as_bytes());
        if let Some(end) = self.request_end.take() {
            self.segment.control().request_tail.0.store(end, Ordering::Release);
        }
        if self.wake_pipe.is_none() || self.unpublished() >= self.responses.cap() / 4 {
            self.publish();
        }
        if self.wake_pipe.is_some() {
            self.write_for(0);
        }
        self.number = 0;
    }

    /// Returns the request, of which nothing was answered, to the server. The worker must end then; its lane is
    /// discarded.
    pub fn return_request(&mut self, boot_began_us: u64) {
        self.put(FrameKind::GiveBack, 0, boot_began_us.as_bytes());
        self.publish();
    }

    /// Writes a log line, truncated to 8 KB and to one frame.
    pub fn log(&mut self, level: u8, text: &[u8]) {
        if self.number == 0 && self.wake_pipe.is_none() {
            self.check_again();
        }
        self.close_body(0);
        let max = self.responses.max_payload().min(8192) - 1;
        let text = &text[..text.len().min(max)];
        let mut payload = Vec::with_capacity(text.len() + 1);
        payload.push(level);
        payload.extend_from_slice(text);
        self.put(FrameKind::Log, 0, &payload);
    }

    /// Reloads the shared cursor. Between requests everything is published, so it is authoritative; a process that was
    /// restored to an earlier state has an old copy.
    fn check_again(&mut self) {
        self.head = self.segment.control().response_head.0.load(Ordering::Relaxed);
        self.all_is_published();
        self.open = None;
    }

    fn all_is_published(&mut self) {
        self.published = self.head;
        self.padding = 0;
    }

    /// Number of unpublished bytes. Bytes skipped at the ring's end do not count: otherwise the first lines of a
    /// response would be published alone, and the front treats a partial response as a stream.
    fn unpublished(&self) -> usize {
        self.head.wrapping_sub(self.published).wrapping_sub(self.padding) as usize
    }

    pub(crate) fn put(&mut self, kind: FrameKind, flags: u16, payload: &[u8]) {
        self.close_body(0);
        let at = loop {
            let tail = self.segment.control().response_tail.0.load(Ordering::Acquire);
            match self.responses.place(self.head, tail, payload.len()) {
                Ok(Some(at)) => break at,
                _ => self.wait_for_room(),
            }
        };
        self.padding += at - self.head;
        self.responses.write_payload(at, 0, payload);
        self.finish_frame(at, kind, flags, payload.len());
    }

    fn finish_frame(&mut self, at: u64, kind: FrameKind, flags: u16, len: usize) {
        let header = FrameHeader { len: len as u32, kind: kind as u16, flags, number: self.number, state: 0, began: 0 };
        self.responses.write_header(at, header);
        self.head = at + frame_len(len) as u64;
    }

    /// Waits until the server has given back some room. Usually it is still processing frames published before. If none
    /// of them are left, publishes the written part of the response; this is avoided otherwise, as the front treats a
    /// partial response as a stream.
    fn wait_for_room(&mut self) {
        let tail = self.segment.control().response_tail.0.load(Ordering::Acquire);
        if tail == self.published {
            self.publish();
            if tail == self.published {
                return; // all taken already: there is room now
            }
        }
        let (control, number) = (self.segment.control(), self.number);
        wake::sleep_worker(&control.worker_word.0, wake::WORKER_WAITS_ROOM, None, || {
            control.response_tail.0.load(Ordering::Acquire) != tail
                || (number != 0 && control.aborted.0.load(Ordering::Relaxed) == number)
        });
    }

    /// The word that records which request's script has exceeded its time limit. Valid as long as this value.
    pub fn timeout_word(&self) -> *const AtomicU64 {
        &raw const self.segment.control().timed_out.0
    }

    /// Decides whether the next fork of this process inherits the lane. Only a child that continues as the worker
    /// should.
    ///
    /// # Errors
    /// The system's error.
    pub fn pass_to_fork(&self, pass: bool) -> io::Result<()> {
        self.segment.pass_to_forks(pass)
    }

    /// Copies the running request, for a fork that is not a worker but may still read the request.
    pub fn copy_for_fork(&self) -> LaneCopy {
        let tail = self.segment.control().request_tail.0.load(Ordering::Relaxed);
        let request = self.requests.place_of(tail, self.request_end.unwrap_or(tail));
        let rings = Segment::rings_at();
        LaneCopy(self.segment.copy([0..rings, rings + request.start..rings + request.end]))
    }

    /// In a process that was forked without the lane: closes its descriptors.
    pub fn leave(self) -> Hole {
        self.segment.into_hole()
    }

    /// Makes everything written visible to the server and wakes it if it waits.
    pub fn publish(&mut self) {
        self.close_body(0);
        if self.head == self.published {
            return;
        }
        self.segment.control().response_head.0.store(self.head, Ordering::Release);
        self.all_is_published();
        self.wake_server();
    }

    pub(crate) fn wake_server(&self) {
        wake::wake_server(&self.segment.control().server_word.0, self.eventfd.as_fd());
    }
}

/// Copy of a part of a lane's content; see `WorkerEnd::copy_for_fork`.
#[derive(Debug)]
pub struct LaneCopy(Vec<(usize, Vec<u8>)>);

impl LaneCopy {
    /// Maps the copy at the lane's former address.
    ///
    /// # Errors
    /// See `Hole::fill`.
    pub fn put(&self, hole: Hole) -> io::Result<()> {
        hole.fill(&self.0)
    }
}

/// Parts of a request in place. The caller ensures that they are used only while the request's memory is valid; in a
/// ring until `WorkerEnd::done`.
#[derive(Debug, Clone, Copy)]
pub struct RequestParts {
    /// The fixed head.
    pub head: WireRequest,
    pub vars: *const WireVar,
    /// The string area.
    pub strings: *const u8,
    /// The inline body (`body_len` bytes when `REQUEST_BODY_INLINE` is set).
    pub body: *const u8,
}

/// Splits a request frame.
///
/// # Safety
/// `request` points to a whole request as in a lane: from `WorkerEnd::next_request` if `done` has not been called
/// since, or in memory that outlives the parts.
pub unsafe fn request_parts(request: *const WireRequest) -> RequestParts {
    // SAFETY: the frame starts with a `WireRequest` written by the server and is 8-aligned.
    let head = unsafe { *request };
    // SAFETY: the server lays out these areas one after the other inside the frame.
    unsafe {
        let vars = request.add(1).cast::<WireVar>();
        let strings = vars.add(head.n_vars as usize).cast::<u8>();
        RequestParts { head, vars, strings, body: strings.add(head.strings_len as usize) }
    }
}

/// Transport of a request's body: `(in the frame, as a descriptor)`.
pub fn body_kind(flags: u32) -> (bool, bool) {
    (flags & REQUEST_BODY_INLINE != 0, flags & REQUEST_BODY_FD != 0)
}

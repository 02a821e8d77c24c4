//! The worker's end of a lane: waits for requests, writes responses. Used by one single-threaded process.
//!
//! Nothing about the lane is kept in private memory across requests: `next_request` reads every cursor from the control
//! page again, because a later mode restores all private memory of the process between two requests.
//!
//! Responses are published in batches: frames are written behind `head`, which only `publish` shows to the server. That
//! happens at the end of a request, when PHP flushes, and when a quarter of the ring is waiting; so a short response
//! costs one store and at most one wake-up.
//!
//! The memory orders are explained in `server_end`.

use crate::awaited_bodies::AwaitedBodies;
use crate::clock;
use crate::control_socket::{ControlSocket, Message};
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
use zerocopy::IntoBytes;

/// A `Body` frame that is still growing.
#[derive(Debug, Clone, Copy)]
struct OpenBody {
    at: u64,
    len: usize,
    /// Bytes it may have before the consumer's cursor must be looked at again, which costs a cache miss.
    limit: usize,
}

/// The client of the current request has gone; what is written for it is dropped.
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
    /// Where the server wakes a multiplexed worker; `None`: one request at a time.
    pub(crate) wake_pipe: Option<WakePipe>,
    /// End of what is written in the response ring, published or not.
    head: u64,
    /// End of what is published in the response ring.
    published: u64,
    /// Bytes behind that which were skipped because the ring ended.
    padding: u64,
    open: Option<OpenBody>,
    /// Number of the current request, 0 between requests.
    number: u64,
    /// Cursor behind the current request's frame, which lies in the ring until the request is done. `None` where
    /// requests are copied out at once.
    request_end: Option<u64>,
    /// Memory of requests that are done, where requests are copied out.
    pub(crate) spare_memory: Vec<Vec<u64>>,
    /// Requests that wait for their bodies, where there may be several.
    pub(crate) bodies: AwaitedBodies,
}

/// Reasons to wake a multiplexed worker.
#[derive(Debug)]
pub(crate) struct WakePipe {
    pub(crate) fd: OwnedFd,
    /// Waits since it was last emptied; each may have left a byte in it.
    pub(crate) waits: u32,
}

impl WorkerEnd {
    /// Takes over a lane.
    ///
    /// # Errors
    /// The lane's version or sizes do not match this build.
    pub fn attach(lane: impl AsFd, eventfd: OwnedFd, control: ControlSocket) -> io::Result<Self> {
        // The first reading looks for the vDSO's function and keeps it in a static. In snapshot mode what a request writes to
        // statics is undone, and each would look again.
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
            head,
            published: head,
            padding: 0,
            open: None,
            number: 0,
            request_end: None,
        })
    }

    /// Makes this the end of a multiplexed worker: it uses `worker_events` instead of `next_request`, and the
    /// server wakes it through this wake pipe.
    #[must_use]
    pub fn with_wake_pipe(mut self, wake_pipe: OwnedFd) -> Self {
        self.wake_pipe = Some(WakePipe { fd: wake_pipe, waits: 0 });
        self
    }

    /// The current request's number, 0 between requests.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Names one of the `POOL_SLOTS` connection pools that the worker tells about; what does not fit is cut.
    pub fn set_pool_name(&self, slot: usize, name: &[u8]) {
        self.segment.pools().set_name(slot, name);
    }

    /// The numbers of a connection pool, by `wire::PoolNumber`. The server reads them when it wants to.
    pub fn set_pool_numbers(&self, slot: usize, numbers: &[u64; POOL_NUMBERS]) {
        self.segment.pools().set_numbers(slot, numbers);
    }

    /// Tells the server that the worker has booted.
    pub fn ready(&mut self) {
        self.look_again();
        self.put(FrameKind::Ready, 0, &[]);
        self.publish();
    }

    /// Waits for a request and begins it. `None`: the server wants the worker to end. The pointer is valid until `done`.
    ///
    /// # Errors
    /// The server's side of the ring makes no sense (a bug); the worker must end.
    pub fn next_request(&mut self) -> Result<Option<*const WireRequest>, RingBroken> {
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
                wake::sleep_worker(&control.worker_word.0, wake::WORKER_WAITS_REQUEST, || {
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
                    return Ok(Some(self.requests.payload(tail).cast()));
                }
                Some(FrameKind::Request | FrameKind::Pad) => control.request_tail.0.store(end, Ordering::Release),
                Some(FrameKind::Stop) => return Ok(None),
                _ => return Err(RingBroken("unexpected frame in the request ring")),
            }
        }
    }

    /// Says when the current request began, by `monotonic_us`: the server puts no other behind one that runs for long.
    pub fn set_began(&self, now_us: u32) {
        // Both Relaxed: this end owns the cursor, and the number announces nothing but itself.
        let at = self.segment.control().request_tail.0.load(Ordering::Relaxed);
        self.requests.began(at).store(now_us, Ordering::Relaxed);
    }

    /// Marks a queued request as running; false if the server has taken it back.
    pub(crate) fn begin(&self, at: u64) -> bool {
        request_state::begin(self.requests.state(at))
    }

    /// Asks for the current request's body and waits for its descriptor, which the server sends only to a worker that
    /// has begun the request. `None`: it cannot be had, and the request has failed; the worker ends it with `done` at
    /// once.
    ///
    /// # Errors
    /// The control socket is closed or says something unexpected.
    pub fn receive_body(&mut self) -> io::Result<Option<OwnedFd>> {
        self.ask_for_body(self.number);
        self.publish();
        match self.control.receive()? {
            Some((Message::Body { number }, Some(fd))) if number == self.number => Ok(Some(fd)),
            Some((Message::NoBody { number }, _)) if number == self.number => Ok(None),
            Some(_) => Err(io::Error::other("unexpected message on the control socket")),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "control socket closed")),
        }
    }

    /// Asks for the state of the pool and waits for its text. `None`: a worker that is multiplexed has to wait for other
    /// messages.
    ///
    /// # Errors
    /// The control socket is closed or says something unexpected.
    pub fn receive_status(&mut self) -> io::Result<Option<OwnedFd>> {
        if self.wake_fd().is_some() {
            return Ok(None);
        }
        self.put(FrameKind::NeedStatus, 0, &[]);
        self.publish();
        match self.control.receive()? {
            Some((Message::Status { number }, Some(fd))) if number == self.number => Ok(Some(fd)),
            Some(_) => Err(io::Error::other("unexpected message on the control socket")),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "control socket closed")),
        }
    }

    /// Asks for the body of a request that was begun.
    pub fn ask_for_body(&mut self, number: u64) {
        // The frame that is being written belongs to the selected request.
        self.close_body(0);
        let selected = std::mem::replace(&mut self.number, number);
        self.put(FrameKind::NeedBody, 0, &[]);
        self.number = selected;
    }

    /// True if the client of the current request has gone.
    #[must_use]
    pub fn client_gone(&self) -> bool {
        self.segment.control().aborted.0.load(Ordering::Relaxed) == self.number && self.number != 0
    }

    /// Writes the response's head (or an interim one) laid out as `FrameKind::Head` says, split over frames where needed.
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

    /// Gives the server an order for connections and channels (`live_order`). It is on its way at once, unless a part of
    /// a response waits: that would become a stream.
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

    /// Makes room in the open body frame, or opens one; false: the ring is full.
    fn body_has_room(&mut self) -> bool {
        let tail = self.segment.control().response_tail.0.load(Ordering::Acquire);
        let max = self.responses.max_payload();
        if let Some(open) = self.open.as_mut() {
            open.limit = self.responses.growth(open.at, tail).unwrap_or(0).min(max);
            if open.limit > open.len {
                return true;
            }
            // A frame that only lacks the consumer's progress is continued: a body in one piece is not reassembled.
            if open.len < self.responses.room_at(open.at).min(max) {
                return false;
            }
            self.close_body(0);
        }
        // The rest at the ring's end is skipped if it is hardly worth a frame.
        let least = (self.responses.cap() / 256).max(64);
        let Ok(Some(at)) = self.responses.place(self.head, tail, least) else { return false };
        let limit = self.responses.growth(at, tail).unwrap_or(0).min(max);
        self.open = Some(OpenBody { at, len: 0, limit });
        self.padding += at - self.head;
        self.head = at;
        limit > 0
    }

    /// To which request belongs what is written from now on; 0: to none.
    pub(crate) fn write_for(&mut self, number: u64) {
        if number != self.number {
            self.close_body(0);
            self.number = number;
            // Read when this process is dead: whose code killed it.
            self.segment.control().selected.0.store(number, Ordering::Relaxed);
        }
    }

    fn close_body(&mut self, flags: u16) {
        if let Some(open) = self.open.take() {
            self.finish_frame(open.at, FrameKind::Body, flags, open.len);
        }
    }

    /// Everything written so far is to reach the client now.
    pub fn flush(&mut self) {
        if self.open.is_some_and(|open| open.len > 0) {
            self.close_body(FLAG_FLUSH);
        } else {
            self.close_body(0);
            self.put(FrameKind::Body, FLAG_FLUSH, &[]);
        }
        self.publish();
    }

    /// The response is complete for the client.
    pub fn end_response(&mut self, publish: bool) {
        self.close_body(0);
        self.put(FrameKind::End, 0, &[]);
        if publish {
            self.publish();
        }
    }

    /// The request is over. Its frame is given back to the server. Of several requests the end is published with what comes
    /// next, unless much is waiting.
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

    /// Gives the request back, of which nothing was answered. The worker must end then; its lane is thrown away.
    pub fn return_request(&mut self, boot_began_us: u64) {
        self.put(FrameKind::GiveBack, 0, boot_began_us.as_bytes());
        self.publish();
    }

    /// Writes a log line; cut to what fits into a frame.
    pub fn log(&mut self, level: u8, text: &[u8]) {
        if self.number == 0 && self.wake_pipe.is_none() {
            self.look_again();
        }
        self.close_body(0);
        let max = self.responses.max_payload().min(8192) - 1;
        let text = &text[..text.len().min(max)];
        let mut payload = Vec::with_capacity(text.len() + 1);
        payload.push(level);
        payload.extend_from_slice(text);
        self.put(FrameKind::Log, 0, &payload);
    }

    /// Between requests everything is published, so the shared cursor is the true one: a process that was restored to an
    /// earlier state has an old copy of it.
    fn look_again(&mut self) {
        self.head = self.segment.control().response_head.0.load(Ordering::Relaxed);
        self.all_is_published();
        self.open = None;
    }

    fn all_is_published(&mut self) {
        self.published = self.head;
        self.padding = 0;
    }

    /// Bytes that wait to be published. What was skipped at the ring's end does not count: it would have the first lines
    /// of a response published alone, and the front takes half a response for a stream.
    fn unpublished(&self) -> usize {
        self.head.wrapping_sub(self.published).wrapping_sub(self.padding) as usize
    }

    fn put(&mut self, kind: FrameKind, flags: u16, payload: &[u8]) {
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

    /// Waits until the server has given some room back. What was published before is on its way out; only where nothing
    /// of that is left, the part of a response that is written is published, as the front would take it for a stream.
    fn wait_for_room(&mut self) {
        let tail = self.segment.control().response_tail.0.load(Ordering::Acquire);
        if tail == self.published {
            self.publish();
            if tail == self.published {
                return; // all taken already: there is room now
            }
        }
        let (control, number) = (self.segment.control(), self.number);
        wake::sleep_worker(&control.worker_word.0, wake::WORKER_WAITS_ROOM, || {
            control.response_tail.0.load(Ordering::Acquire) != tail
                || (number != 0 && control.aborted.0.load(Ordering::Relaxed) == number)
        });
    }

    /// Where it is noted which request's script has run past its time limit. Valid as long as this value.
    #[must_use]
    pub fn timeout_word(&self) -> *const AtomicU64 {
        &raw const self.segment.control().timed_out.0
    }

    /// Decides whether the next fork of this process gets the lane: only one that continues as the worker should.
    ///
    /// # Errors
    /// The system's error.
    pub fn pass_to_fork(&self, pass: bool) -> io::Result<()> {
        self.segment.pass_to_forks(pass)
    }

    /// The running request, which a fork that is no worker may still read.
    #[must_use]
    pub fn copy_for_fork(&self) -> LaneCopy {
        let tail = self.segment.control().request_tail.0.load(Ordering::Relaxed);
        let request = self.requests.place_of(tail, self.request_end.unwrap_or(tail));
        let rings = Segment::rings_at();
        LaneCopy(self.segment.copy([0..rings, rings + request.start..rings + request.end]))
    }

    /// In a process that was forked without the lane: lets go of the descriptors.
    #[must_use]
    pub fn leave(self) -> Hole {
        self.segment.into_hole()
    }

    /// Shows the server everything written and wakes it if it waits.
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

/// A part of a lane's content, see `WorkerEnd::copy_for_fork`.
#[derive(Debug)]
pub struct LaneCopy(Vec<(usize, Vec<u8>)>);

impl LaneCopy {
    /// Puts it where the lane was.
    ///
    /// # Errors
    /// See `Hole::fill`.
    pub fn put(&self, hole: Hole) -> io::Result<()> {
        hole.fill(&self.0)
    }
}

/// The pieces of a request in place. Lifetimes are the caller's promise: valid until `WorkerEnd::done`.
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
/// `request` came from `WorkerEnd::next_request` and `done` has not been called since.
#[must_use]
pub unsafe fn request_parts(request: *const WireRequest) -> RequestParts {
    // SAFETY: the frame starts with a `WireRequest` written by the server and is 8-aligned.
    let head = unsafe { *request };
    // SAFETY: the server lays these areas out one behind the other inside the frame.
    unsafe {
        let vars = request.add(1).cast::<WireVar>();
        let strings = vars.add(head.n_vars as usize).cast::<u8>();
        RequestParts { head, vars, strings, body: strings.add(head.strings_len as usize) }
    }
}

/// Transport of the current request's body.
#[must_use]
pub fn body_kind(flags: u32) -> (bool, bool) {
    (flags & REQUEST_BODY_INLINE != 0, flags & REQUEST_BODY_FD != 0)
}

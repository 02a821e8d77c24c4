//! State of a request that is not done: its body, the progress of its response, and in async mode its memory.

use crate::priority;
use howdah_transport::awaited_bodies::TakenRequest;
use howdah_transport::wire::{REQUEST_BODY_STREAM, REQUEST_MEASURE, REQUEST_USAGE, ROUTE_LINE, WireRequest};
use howdah_transport::worker_end::{body_kind, request_parts};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Maximum length of a reported route name in bytes.
const MAX_ROUTE_LEN: usize = 120;

/// Source of a request's body.
enum Body {
    Empty,
    Inline {
        data: *const u8,
        len: usize,
        read: usize,
    },
    File {
        fd: OwnedFd,
        read: u64,
    },
    /// No body: the script's end of a stream to the server (`connection_stream`).
    Stream(OwnedFd),
}

/// Processor time of a request. In async mode requests take turns on one thread, and the thread's processor time counts
/// for the request whose turn it is.
struct CpuUsage {
    /// The clock of the thread.
    clock: fn() -> Duration,
    /// Time used in earlier turns.
    before: Duration,
    /// The thread's time at the start of the current turn.
    turn_began: Option<Duration>,
}

impl CpuUsage {
    /// Usage by this clock, if the request has one of these flags.
    fn of(flags: u32, wanted: u32, clock: fn() -> Duration) -> Option<Self> {
        (flags & wanted != 0).then_some(Self { clock, before: Duration::ZERO, turn_began: None })
    }

    fn begin_turn(&mut self) {
        self.turn_began.get_or_insert_with(self.clock);
    }

    fn end_turn(&mut self) {
        self.before = self.until_now();
        self.turn_began = None;
    }

    fn until_now(&self) -> Duration {
        self.before + self.turn_began.map_or(Duration::ZERO, |began| (self.clock)().saturating_sub(began))
    }
}

/// The name of a route, stored inline: it is set during a request, and memory allocated then may be restored.
struct Route {
    name: [u8; MAX_ROUTE_LEN],
    length: usize,
}

impl Route {
    const NONE: Self = Self { name: [0; MAX_ROUTE_LEN], length: 0 };
}

/// A request that is not done.
pub(crate) struct OpenRequest {
    body: Body,
    /// Start of its execution. In async mode a request may wait in the worker for its turn; until then this is `None`.
    began: Option<Instant>,
    /// Processor time, if the server requested it.
    used: Option<CpuUsage>,
    used_in_kernel: Option<CpuUsage>,
    pub(crate) head_sent: bool,
    pub(crate) ended: bool,
    /// The response is no longer wanted.
    pub(crate) cancelled: bool,
    /// The name of the application's route, if it was reported.
    route: Route,
    /// The request itself, if it does not lie in the ring.
    memory: Option<TakenRequest>,
}

impl OpenRequest {
    /// A placeholder without a request: the state of a worker that runs one at a time before its first request.
    pub(crate) fn none() -> Self {
        Self {
            body: Body::Empty,
            began: None,
            used: None,
            used_in_kernel: None,
            head_sent: false,
            ended: false,
            cancelled: false,
            route: Route::NONE,
            memory: None,
        }
    }

    /// Begins a request. `body` is the descriptor of its body, if it travels as one.
    ///
    /// # Safety
    /// `request` came from the lane and stays valid until `finish`, or until this value is dropped.
    pub(crate) unsafe fn begin(&mut self, request: *const WireRequest, body: Option<OwnedFd>) {
        // SAFETY: the caller's promise.
        let parts = unsafe { request_parts(request) };
        self.began = self.memory.is_none().then(Instant::now);
        self.used = CpuUsage::of(parts.head.flags, REQUEST_MEASURE | REQUEST_USAGE, priority::processor_time);
        self.used_in_kernel = CpuUsage::of(parts.head.flags, REQUEST_USAGE, priority::system_time);
        if self.began.is_some() {
            self.run();
        }
        self.head_sent = false;
        self.ended = false;
        self.cancelled = false;
        self.route.length = 0;
        self.body = match (body, body_kind(parts.head.flags)) {
            (Some(fd), _) if parts.head.flags & REQUEST_BODY_STREAM != 0 => Body::Stream(fd),
            (Some(fd), _) => Body::File { fd, read: 0 },
            (None, (true, _)) => Body::Inline { data: parts.body, len: parts.head.body_len as usize, read: 0 },
            (None, _) => Body::Empty,
        };
    }

    /// Hands over the script's end of the stream, once.
    pub(crate) fn take_stream(&mut self) -> Option<OwnedFd> {
        match std::mem::replace(&mut self.body, Body::Empty) {
            Body::Stream(fd) => {
                // The request lasts as long as the connection, so its processor time says nothing about its route, and
                // reading the clock is a system call at each message.
                if self.used_in_kernel.is_none() {
                    self.used = None;
                }
                Some(fd)
            }
            body => {
                self.body = body;
                None
            }
        }
    }

    /// Sets the route that responds to the request. A name that is too long clears it.
    pub(crate) fn set_route(&mut self, name: &[u8]) {
        self.route.length = 0;
        if let Some(place) = self.route.name.get_mut(..name.len()) {
            place.copy_from_slice(name);
            self.route.length = name.len();
        }
    }

    /// Adds the route's name to the response's head, if there is one.
    pub(crate) fn add_route(&self, head: &mut Vec<u8>) {
        let name = self.route.name.get(..self.route.length).unwrap_or_default();
        if !name.is_empty() {
            head.extend_from_slice(&(name.len() as u32 + 1).to_ne_bytes());
            head.push(ROUTE_LINE);
            head.extend_from_slice(name);
        }
    }

    /// Takes over a request in separate memory and begins it.
    pub(crate) fn take(&mut self, mut request: TakenRequest) {
        let (at, body) = (request.request(), request.body.take());
        self.memory = Some(request);
        // SAFETY: the request's memory does not move with the value that owns it, and lives as long as that.
        unsafe { self.begin(at, body) };
    }

    /// Starts the request's turn, if it is not running.
    pub(crate) fn run(&mut self) {
        self.began.get_or_insert_with(Instant::now);
        self.clocks().for_each(CpuUsage::begin_turn);
    }

    /// Ends the request's turn.
    pub(crate) fn pause(&mut self) {
        self.clocks().for_each(CpuUsage::end_turn);
    }

    fn clocks(&mut self) -> impl Iterator<Item = &mut CpuUsage> {
        self.used.iter_mut().chain(&mut self.used_in_kernel)
    }

    /// Time since the request began to run.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| began.elapsed())
    }

    /// Processor time of the thread at the start of the request's current turn, in nanoseconds; 0 if it is not
    /// measured.
    pub(crate) fn cpu_began(&self) -> u64 {
        self.used.as_ref().and_then(|used| used.turn_began).map_or(0, |began| began.as_nanos() as u64)
    }

    /// The request's processor time; zero if it is not measured.
    pub(crate) fn processor_time(&self) -> Duration {
        self.used.as_ref().map_or(Duration::ZERO, CpuUsage::until_now)
    }

    /// `true` if the response must not end before the request's usage is known.
    pub(crate) fn reports_usage(&self) -> bool {
        self.used_in_kernel.is_some()
    }

    /// The part of the processor time in the kernel; zero if it is not measured.
    pub(crate) fn system_time(&self) -> Duration {
        self.used_in_kernel.as_ref().map_or(Duration::ZERO, CpuUsage::until_now)
    }

    /// Releases the body, and returns the request's memory if it has its own.
    pub(crate) fn finish(&mut self) -> Option<Vec<u64>> {
        self.body = Body::Empty;
        self.memory.take().map(TakenRequest::into_memory)
    }

    /// The request, if it does not lie in the ring.
    pub(crate) fn request(&self) -> Option<*const WireRequest> {
        self.memory.as_ref().map(TakenRequest::request)
    }

    /// Reads the next bytes of the body; 0 at its end.
    pub(crate) fn read_body(&mut self, buffer: &mut [u8]) -> usize {
        match &mut self.body {
            Body::Empty | Body::Stream(_) => 0,
            Body::Inline { data, len, read } => {
                let n = buffer.len().min(*len - *read);
                // SAFETY: the request, in whose memory the body lies, is open; it does not overlap C's buffer.
                unsafe { std::ptr::copy_nonoverlapping(data.add(*read), buffer.as_mut_ptr(), n) };
                *read += n;
                n
            }
            Body::File { fd, read } => loop {
                match rustix::io::pread(&*fd, &mut *buffer, *read) {
                    Ok(n) => {
                        *read += n as u64;
                        return n;
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return 0,
                }
            },
        }
    }
}

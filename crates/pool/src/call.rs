//! What a front hands to a pool and gets back: `Call` and `Reply`. Neither knows HTTP beyond CGI's vocabulary (RFC 3875).

use crate::fault::Fault;
use crate::whole_body::WholeBody;
use bytes::Bytes;
use howdah_budget::{Charge, Share};
use howdah_transport::wire::EncodedCall;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// One request for PHP, ready to be copied into a lane.
#[derive(Debug)]
pub struct Call {
    /// Variables, script and meta data in wire form (see `howdah_transport::wire::CallBuilder`).
    pub head: EncodedCall,
    /// The request's body, complete: fronts spool it before they call, so that a slow client never holds a worker.
    pub body: RequestBody,
    /// True if the call may run a second time after a worker died (GET, HEAD, OPTIONS, or marked so by a route).
    pub repeatable: bool,
    /// The request's id, as it appears in the logs.
    pub id: RequestId,
    /// When the request's head had arrived.
    pub received: Instant,
    /// When all of it had, and it was ready to be run.
    pub complete: Instant,
    /// Whose request it is, for fairness between clients: equal numbers share one turn. A client's address, as a number.
    pub client: u64,
    /// The position among `PoolConfig::routes` of the route that has limits of its own.
    pub route: Option<u16>,
    /// Who sends interim answers to the client, if anybody can.
    pub interim: Option<Arc<dyn TakesInterim>>,
    /// What the client's connection holds of the budgets, if it may have several requests.
    pub share: Option<Arc<Share>>,
}

impl Call {
    /// Bytes of memory that the call takes while it waits. A body of more than 1 KB is not among them: that is charged already.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.head.wire_len() as u64 + 1536
    }

    /// Method and target for logs and `status`, e.g. `GET /a?b`.
    #[must_use]
    pub fn label(&self) -> String {
        let (method, uri) = (self.head.method(), self.head.uri());
        format!("{} {}", String::from_utf8_lossy(method), String::from_utf8_lossy(uri))
    }
}

/// A front's side of a call that can send interim answers (1xx) before the answer. Called on a thread of the pool's choice
/// while the call runs; a call that is run again may send them again.
pub trait TakesInterim: std::fmt::Debug + Send + Sync {
    /// Sends an interim answer: its status, which is not checked, and header lines as PHP wrote them.
    fn interim(&self, status: u16, headers: &[(Bytes, Bytes)]);

    /// True if the client may have left: it has closed its side, and nobody knows yet whether it waits for an answer.
    fn may_have_left(&self) -> bool {
        false
    }
}

/// A request's identity in logs (16 hexadecimal digits when printed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(pub u64);

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A complete request body.
#[derive(Debug, Default)]
pub enum RequestBody {
    /// No body.
    #[default]
    Empty,
    /// A body in memory. Travels in the ring when it fits, through a memfd when not.
    Memory(Bytes),
    /// A body in an unnamed temporary file, with its length in bytes and what it is charged; read by the worker through the
    /// descriptor.
    File(OwnedFd, u64, Charge),
}

impl RequestBody {
    /// The body's length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(_, len, _) => *len,
        }
    }

    /// True if there is no byte of body.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// PHP's answer: head at once, body as it comes.
#[derive(Debug)]
pub struct Reply {
    /// The status code, 200 to 599 (what PHP set, checked).
    pub status: u16,
    /// Header lines in the order PHP sent them, names as PHP wrote them. Not yet checked for HTTP's rules.
    pub headers: Vec<(Bytes, Bytes)>,
    pub body: ReplyBody,
}

/// A part of the answer's body.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// The bytes; may be empty when only `flush` matters.
    pub data: Bytes,
    /// PHP asked that everything up to here reach the client now (`flush()`, server-sent events).
    pub flush: bool,
}

/// Where a call ran and what it took; complete once the body has ended.
#[derive(Debug, Clone, Default)]
pub struct CallStats {
    pub pool: Arc<str>,
    /// The worker's number within its pool (stable while the worker lives).
    pub worker: u32,
    /// The worker's process id.
    pub pid: u32,
    /// Microseconds from `Call::received` until a worker took the call.
    pub queue_us: u64,
    /// Microseconds the worker spent on the call, by the worker's own clock.
    pub php_us: u64,
    /// Peak memory of the script in bytes, as PHP reports it.
    pub peak_memory: u64,
    /// How often the call was run again after a worker died under it.
    pub replays: u32,
}

/// The body of a reply. Dropping it before its end tells the worker that the client has gone.
#[derive(Debug)]
pub struct ReplyBody {
    inner: crate::reply_sink::Receiver,
}

impl ReplyBody {
    pub(crate) fn new(inner: crate::reply_sink::Receiver) -> Self {
        Self { inner }
    }

    /// The whole remaining body's length, if the answer has ended already.
    #[must_use]
    pub fn complete_len(&self) -> Option<u64> {
        self.inner.complete_len()
    }

    /// The whole remaining body as one piece, if the answer has ended and fits in memory. Leaves the body empty.
    pub fn take_complete(&mut self) -> Option<WholeBody> {
        self.inner.take_complete()
    }

    /// The next part; `None` at the end. An error means the worker died in the middle of its answer.
    pub fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Chunk, Fault>>> {
        self.get_mut().inner.poll_chunk(cx)
    }

    /// Where the call ran and what it took so far.
    #[must_use]
    pub fn stats(&self) -> CallStats {
        self.inner.stats()
    }
}

//! Requests to a pool. Knows no HTTP beyond CGI's vocabulary (RFC 3875).

pub(crate) mod estimate;
pub(crate) mod last_request;
pub(crate) mod pending;
pub(crate) mod time_limits;

use crate::request::time_limits::TimeLimits;
use bytes::Bytes;
use howdah_budget::{Charge, Share};
use howdah_transport::live_order::LiveOrder;
use howdah_transport::wire::EncodedRequest;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// One request for PHP, ready to be copied into a lane.
#[derive(Debug)]
pub struct Request {
    /// Variables, script and meta data in wire form (see `howdah_transport::wire::RequestBuilder`).
    pub head: EncodedRequest,
    /// The complete request body: fronts spool it before they submit the request, so that a slow upload holds no
    /// worker.
    pub body: RequestBody,
    /// `true` for a GET, which the server may repeat for its own purposes.
    pub is_get: bool,
    /// True if the request may run again after its worker died (GET, HEAD, OPTIONS).
    pub repeatable: bool,
    /// The request's id, as it appears in the logs.
    pub id: RequestId,
    /// When the request's head had arrived.
    pub received: Instant,
    /// When the whole request had arrived and could run.
    pub complete: Instant,
    /// Time for which its body was not read because the queue was full (`Pool::room`).
    pub waited: Duration,
    /// The client, for fairness: requests with equal numbers share one flow. Its IPv4 address or IPv6 /64 network, as a
    /// number.
    pub client: u64,
    /// Index of its route in `PoolConfig::routes`, if that has a limit or a weight.
    pub route: Option<u16>,
    /// Time limits set by rules.
    pub limits: TimeLimits,
    /// The receiver of informational responses, if there is one.
    pub interim: Option<Arc<dyn InterimSink>>,
    /// The receiver of its script's log lines, in addition to the server's log.
    pub log: Option<Arc<dyn LogSink>>,
    /// The receiver of its script's orders for connections and channels, where the site has any.
    pub live: Option<Arc<dyn LiveSink>>,
    /// The client connection's share of the budgets, if it may have several requests.
    pub share: Option<Arc<Share>>,
    /// The receiver of the time for which the request occupied its worker, including a snapshot's restore.
    pub busy: Option<oneshot::Sender<Duration>>,
}

impl Request {
    /// A request that the server makes itself: no client waits for it, it has no body, and once begun it is not run
    /// again if its worker dies.
    pub fn without_client(head: EncodedRequest, id: RequestId) -> Self {
        let now = Instant::now();
        Self {
            head,
            body: RequestBody::Empty,
            is_get: false,
            repeatable: false,
            id,
            received: now,
            complete: now,
            waited: Duration::ZERO,
            client: 0,
            route: None,
            limits: TimeLimits::default(),
            interim: None,
            log: None,
            live: None,
            share: None,
            busy: None,
        }
    }

    /// The method's name. Like `target` and `path`, a slice of `head`: nothing is parsed.
    pub fn method(&self) -> &[u8] {
        self.head.method()
    }

    /// Path and query.
    pub fn target(&self) -> &[u8] {
        self.head.uri()
    }

    /// The path without the query.
    pub fn path(&self) -> &[u8] {
        self.target().split(|&byte| byte == b'?').next().unwrap_or_default()
    }

    /// Bytes of memory that the request uses while it waits. Excludes a body of 1 KB or more, which is charged already.
    pub fn cost(&self) -> u64 {
        self.head.wire_len() as u64 + 1536
    }

    /// Method and target for logs and `status`, e.g. `GET /a?b`.
    pub fn label(&self) -> String {
        format!("{} {}", String::from_utf8_lossy(self.method()), String::from_utf8_lossy(self.target()))
    }
}

/// A front's side of a request that can send informational responses (1xx) before the response. Called on a thread of
/// the pool's choice while the request runs; a request that is run again may send them again.
pub trait InterimSink: std::fmt::Debug + Send + Sync {
    /// Sends an informational response: its status, which is not checked, and header lines as PHP wrote them.
    fn interim(&self, status: u16, headers: &[(Bytes, Bytes)]);

    /// `true` if the client may have left: it has closed its side, and it is unknown whether it waits for a response.
    fn may_have_left(&self) -> bool {
        false
    }
}

/// A front's side of a request that has an additional log. Called on a thread of the pool's choice while the request
/// runs; must not block.
pub trait LogSink: std::fmt::Debug + Send + Sync {
    /// Receives a log message of the script.
    fn line(&self, text: &str);
}

/// Receives a script's orders for its site's connections and channels, and questions about them. Called on a thread of
/// the pool's choice; must not block.
pub trait LiveSink: std::fmt::Debug + Send + Sync {
    /// Carries out an order. Its kind and layout are valid, the values of its fields are unchecked.
    fn take(&self, order: LiveOrder);

    /// Answers a question (`LiveKind::is_question`).
    fn ask(&self, question: &LiveOrder) -> Vec<u8>;
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
    /// A body in memory. Sent in the ring if it fits, otherwise through a memfd.
    Memory(Bytes),
    /// A body in an unnamed temporary file, with its length in bytes and its charge. The worker gets the descriptor.
    File(OwnedFd, u64, Charge),
    /// No body but the script's end of a stream (`howdah_transport::connection_stream`), with which the script may hold
    /// the client's connection.
    Stream(OwnedFd),
    /// A form above PHP's limit: only its length in bytes was kept, as PHP would not read it.
    Dropped(u64),
}

impl RequestBody {
    /// The body's length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Empty | Self::Stream(_) => 0,
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(_, len, _) | Self::Dropped(len) => *len,
        }
    }

    /// True if the body has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

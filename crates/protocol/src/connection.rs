//! A connection, as its requests and its I/O thread see it, and what all connections share.

use crate::informational::{Queue, SendResult, Sink};
use crate::peer::Peer;
use crate::state::{State, Timeouts};
use bytes::Bytes;
use howdah_budget::{Budgets, Charge, Share};
use howdah_config::HttpSettings;
use howdah_observe::Metrics;
use howdah_tls::Session;
use howdah_tls::acme::Demand;
use std::sync::{Arc, OnceLock};

/// Minimum size of a connection's head buffer. Usually larger than the settings allow, so that a header that is too
/// long is read and refused with the right status.
const MIN_HEAD_BUFFER: usize = 256 * 1024;

/// Header lines of an HTTP/2 or 3 request that fit into `header_list`. Cookies may be separate lines there.
const MAX_HEADER_LINES: usize = 512;

/// State shared by all connections.
#[derive(Debug)]
pub struct Shared {
    /// Allow HTTP/2 and 3 clients to use extended CONNECT (RFC 8441, RFC 9220).
    pub extended_connect: bool,
    /// The largest number of connections; 0 for no limit.
    pub max_connections: usize,
    /// The timeouts while nothing is scarce.
    pub timeouts: Timeouts,
    /// Maximum bytes of a head that a connection reads; at least the maximum that the settings allow.
    pub head_buffer: usize,
    /// Maximum size of a header list in HTTP/2 and 3, which counts 32 extra bytes per line (RFC 9113 6.5.2, RFC 9114
    /// 4.2.2). In HTTP/2, one byte on the wire may stand for kilobytes, so this limit bounds the work. Longer ones get
    /// 431.
    pub header_list: usize,
    /// Budgets for everything that waits.
    pub budgets: Budgets,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Obtains missing certificates.
    pub(crate) demand: OnceLock<Demand>,
}

impl Shared {
    /// Derives the state from the settings.
    pub fn new(settings: &HttpSettings, budgets: Budgets, metrics: Arc<Metrics>) -> Self {
        let head = settings.max_header_bytes.as_usize().saturating_add(settings.max_uri.as_usize());
        Self {
            extended_connect: false,
            max_connections: settings.max_connections,
            timeouts: Timeouts::new(settings),
            head_buffer: head.saturating_add(4096).max(MIN_HEAD_BUFFER),
            header_list: head.saturating_add(MAX_HEADER_LINES * 32),
            budgets,
            metrics,
            demand: OnceLock::new(),
        }
    }

    /// Enables extended CONNECT if the handler supports upgrades.
    pub fn with_extended_connect(self, extended_connect: bool) -> Self {
        Self { extended_connect, ..self }
    }

    /// Sets the receiver of handshakes' requests for missing certificates.
    pub fn on_missing_certificates(&self, demand: Option<Demand>) {
        if let Some(demand) = demand {
            // Called once per `Shared`.
            let _ = self.demand.set(demand);
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Both ends.
    pub peer: Peer,
    /// The TLS session, if the connection is encrypted.
    pub session: OnceLock<Box<Session>>,
    /// Its requests' common share of the budgets, if it may have several at once.
    pub share: OnceLock<Arc<Share>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: State,
    /// Pending informational responses of serial requests. HTTP/2 and 3 only count their bytes here.
    pub(crate) informational: Queue,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>, peer: Peer, now: u64) -> Self {
        let (share, state, informational) = (OnceLock::new(), State::new(now), Queue::default());
        Self { peer, session: OnceLock::new(), share, shared, state, informational }
    }

    /// The connection of a request that the server itself makes.
    pub fn of_no_client(shared: Arc<Shared>, peer: Peer) -> Self {
        Self::new(shared, peer, 1)
    }

    /// A copy of the connection's facts after its client has moved to another address.
    pub(crate) fn moved(&self, peer: Peer) -> Self {
        let (state, informational) = (State::new(1), Queue::default());
        state.set_multiplexed();
        let (session, share, shared) = (self.session.clone(), self.share.clone(), self.shared.clone());
        Self { peer, session, share, shared, state, informational }
    }

    /// The current timeouts: the write timeout is shorter while budgets are scarce.
    pub(crate) fn timeouts(&self) -> Timeouts {
        self.shared.timeouts.under(self.shared.budgets.pressure())
    }

    /// An empty charge to the memory budget.
    pub fn charge(&self) -> Charge {
        Charge::new(self.shared.budgets.memory, self.share.get().cloned())
    }
}

impl Sink for Connection {
    fn send(&self, number: u64, status: u16, headers: &[(Bytes, Bytes)]) -> SendResult {
        let taken = self.informational.send(number, status, headers);
        self.state.wake();
        taken
    }

    fn discard(&self, number: u64) {
        self.informational.discard(number);
    }

    fn may_have_left(&self) -> bool {
        self.state.is_half_closed()
    }
}

/// A running request, which ends when this is dropped.
pub(crate) struct InFlight(Arc<Connection>);

impl InFlight {
    pub(crate) fn begin(connection: &Arc<Connection>) -> Self {
        connection.state.begin();
        Self(connection.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.state.end();
    }
}

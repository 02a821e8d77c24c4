//! A connection, as its requests and its I/O thread see it, and what all connections share.

use crate::informational::{Queue, Sink, Taken};
use crate::peer::Peer;
use crate::state::{State, Timeouts};
use bytes::Bytes;
use howdah_budget::{Budgets, Charge, Share};
use howdah_config::HttpSettings;
use howdah_observe::Metrics;
use howdah_tls::Session;
use howdah_tls::acme::Demand;
use std::sync::{Arc, OnceLock};

/// Room for a head in a connection's buffer even where the settings allow less, so that the refusal can be the right one.
const MIN_HEAD_BUFFER: usize = 256 * 1024;

/// Header lines of a request that HTTP/2 has room for. Cookies come one by one there.
const MAX_HEADER_LINES: usize = 512;

/// State shared by all connections.
#[derive(Debug)]
pub struct Shared {
    /// Let clients of HTTP/2 ask for other protocols (RFC 8441).
    pub extended_connect: bool,
    /// The largest number of connections; 0 for no limit.
    pub max_connections: usize,
    /// The timeouts while nothing is scarce.
    pub timeouts: Timeouts,
    /// The longest head that a connection reads, which is no shorter than the longest that is allowed.
    pub head_buffer: usize,
    /// The size of a header list in HTTP/2, where each line counts 32 bytes more than it has (RFC 9113 6.5.2). A byte on the
    /// wire may stand for kilobytes that were sent once, so this is what bounds the work, and h2 itself responds with 431.
    pub header_list: usize,
    /// Budgets for everything that waits.
    pub budgets: Budgets,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Obtains missing certificates.
    pub(crate) demand: OnceLock<Demand>,
}

impl Shared {
    /// The settings.
    #[must_use]
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

    /// Says whether there is anything behind the handler that speaks other protocols.
    #[must_use]
    pub fn with_extended_connect(self, extended_connect: bool) -> Self {
        Self { extended_connect, ..self }
    }

    /// Has handshakes ask for certificates that are missing.
    pub fn on_missing_certificates(&self, demand: Option<Demand>) {
        if let Some(demand) = demand {
            // Said once, at the start.
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
    /// Informational responses on their way out, where requests come one after the other.
    pub(crate) informational: Queue,
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>, peer: Peer, now: u64) -> Self {
        let (share, state, informational) = (OnceLock::new(), State::new(now), Queue::default());
        Self { peer, session: OnceLock::new(), share, shared, state, informational }
    }

    /// The connection of a request that the server itself makes.
    #[must_use]
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

    /// The timeouts as they are now; those with clients that do not read are shorter while budgets are scarce.
    pub(crate) fn timeouts(&self) -> Timeouts {
        self.shared.timeouts.under(self.shared.budgets.pressure())
    }

    /// A charge of nothing yet to the budget of memory.
    #[must_use]
    pub fn charge(&self) -> Charge {
        Charge::new(self.shared.budgets.memory, self.share.get().cloned())
    }
}

impl Sink for Connection {
    fn send(&self, number: u64, status: u16, headers: &[(Bytes, Bytes)]) -> Taken {
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

/// A request that is not over: it ends when this is dropped.
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

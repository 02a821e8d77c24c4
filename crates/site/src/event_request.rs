//! Script requests for events of connections and channels, and the purposes of the server's own requests.

use bytes::Bytes;
use howdah_budget::Budgets;
use howdah_config::{HostPattern, ListenAddr, Settings, SiteSettings};
use howdah_observe::Metrics;
use howdah_protocol::{Connection, Head, Peer, Shared, Target};
use howdah_telemetry::OpeningSpan;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use parking_lot::Mutex;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;

/// The reason why the server makes a request itself (`server_request`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// New workers may run it before they serve; see `warm_up`.
    WarmUp,
    /// `howdah explain`; see `explain`.
    Explain,
    /// A reload sends it to new workers before they take over (`deploy.check`).
    DeployCheck,
    /// An event of a WebSocket connection.
    WebSocket(SocketEvent),
    /// An event of a channel of the Pusher protocol.
    Webhook,
}

/// An event of a WebSocket connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketEvent {
    Open,
    Message,
    Close,
}

impl SocketEvent {
    /// Its name for scripts and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Message => "message",
            Self::Close => "close",
        }
    }

    /// Stands for the method in the access log.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Message => "MESSAGE",
            Self::Close => "CLOSE",
        }
    }
}

impl Purpose {
    /// Value of its `User-Agent`.
    pub(crate) const fn agent(self) -> &'static str {
        match self {
            Self::WarmUp => "Howdah warm-up",
            Self::Explain => "Howdah explain",
            Self::DeployCheck => "Howdah deploy check",
            Self::WebSocket(_) => "Howdah WebSocket",
            Self::Webhook => "Howdah webhook",
        }
    }

    /// `true` if it appears in metrics and traces.
    pub const fn is_recorded(self) -> bool {
        matches!(self, Self::DeployCheck | Self::WebSocket(_) | Self::Webhook)
    }

    /// `true` if it appears in the access log with this status. Of events only failures do, so clients cannot flood it:
    /// a failed message closes its connection. `open` is logged as the client's own request.
    pub(crate) const fn is_logged(self, status: u16) -> bool {
        match self {
            Self::DeployCheck => true,
            Self::WebSocket(SocketEvent::Message | SocketEvent::Close) | Self::Webhook => status >= 400,
            Self::WebSocket(SocketEvent::Open) | Self::WarmUp | Self::Explain => false,
        }
    }

    /// The event of a WebSocket connection, if it is one.
    pub const fn socket_event(self) -> Option<SocketEvent> {
        match self {
            Self::WebSocket(event) => Some(event),
            _ => None,
        }
    }

    /// `true` if passwords and client limits apply to it.
    pub const fn asks_for_access(self) -> bool {
        matches!(self, Self::DeployCheck)
    }
}

/// A request about an event of a connection or channel.
#[derive(Debug)]
pub struct EventRequest {
    /// Method, target, host and header fields.
    pub head: Head,
    /// Its body, complete.
    pub body: Bytes,
    /// The client's connection; a pseudo connection for a channel.
    pub connection: Arc<Connection>,
    /// Variables for the script.
    pub variables: Vec<(Arc<str>, Arc<[u8]>)>,
    pub purpose: Purpose,
    /// Gets the server's end of a stream to a script that may hold the connection.
    pub stream: Option<StreamSlot>,
    /// The span of the client's request that opened the connection, if there was one and tracing is enabled.
    pub opening: Option<OpeningSpan>,
}

/// Place for the server's end of a stream to a script. Empty if no such stream was made.
pub type StreamSlot = Arc<Mutex<Option<UnixStream>>>;

/// Size of the kernel's buffer in each direction; Linux doubles it for its own bookkeeping.
const STREAM_BUFFER: usize = 32 << 10;

/// Makes a stream: puts the server's end into the slot and returns the script's end.
pub(crate) fn open_stream(slot: &StreamSlot) -> io::Result<OwnedFd> {
    let (server, script) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    set_socket_send_buffer_size(&server, STREAM_BUFFER)?;
    set_socket_send_buffer_size(&script, STREAM_BUFFER)?;
    let server = UnixStream::from(server);
    server.set_nonblocking(true)?;
    *slot.lock() = Some(server);
    Ok(script)
}

/// The status and header fields of a response.
pub type Outcome = (StatusCode, HeaderMap);

/// Makes requests with the current sites, because connections outlive the sites on which they began.
pub trait RequestMaker: std::fmt::Debug + Send + Sync {
    /// Makes a request, and returns its outcome when the response is complete.
    fn make(&self, request: EventRequest) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;
}

/// Returns a pseudo connection for a request of the server.
pub(crate) fn connection(settings: &Settings, budgets: Budgets, metrics: &Arc<Metrics>, peer: Peer) -> Arc<Connection> {
    let shared = Arc::new(Shared::new(&settings.http, budgets, metrics.clone()));
    Arc::new(Connection::of_no_client(shared, peer))
}

impl EventRequest {
    /// Returns a POST that no client's connection has caused, as if it came from this machine.
    pub(crate) fn of_server(
        (settings, budgets, metrics): (&Settings, Budgets, &Arc<Metrics>),
        purpose: Purpose,
        target: Target,
        fields: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Self {
        let mut headers = HeaderMap::from_iter(fields);
        headers.insert(header::USER_AGENT, HeaderValue::from_static(purpose.agent()));
        let head = Head { method: Method::POST, target, version: Version::HTTP_11, headers };
        let connection = connection(settings, budgets, metrics, peer(settings));
        Self { head, body, connection, variables: Vec::new(), purpose, stream: None, opening: None }
    }
}

pub(crate) fn host_of(site: &SiteSettings) -> String {
    let named = site.hosts.iter().find_map(|host| match host {
        HostPattern::Exact(name) => Some(name.clone()),
        HostPattern::Below(name) => Some(format!("www.{name}")),
        HostPattern::Any => None,
    });
    named.or_else(|| site.server_name.clone()).unwrap_or_else(|| "localhost".to_owned())
}

/// Returns a peer on this machine, connected to the first address that does not redirect to HTTPS.
pub(crate) fn peer(settings: &Settings) -> Peer {
    let to_tls = settings.tls.redirect;
    let listener = settings.listen.iter().find_map(|addr| match addr {
        ListenAddr::Https(addr) => Some((*addr, true)),
        ListenAddr::Tcp(addr) if !to_tls => Some((*addr, false)),
        _ => None,
    });
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let (local, https) = listener.unwrap_or((SocketAddr::new(here, 80), false));
    let mut peer = Peer::tcp(SocketAddr::new(here, 0), SocketAddr::new(here, local.port()), |_| false);
    peer.https = https;
    peer
}

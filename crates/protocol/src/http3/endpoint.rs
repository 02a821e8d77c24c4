//! The UDP socket of HTTP/3: its setup, and the admission of clients.
//!
//! There is one endpoint per address, whose socket is read on the first I/O thread. Each new connection goes to the I/O
//! thread with the fewest connections, as with a listener. That thread then does all the connection's work, including
//! encryption and sending; only received datagrams cross threads. A socket per thread (`SO_REUSEPORT`) would not keep a
//! connection on its thread: the kernel chooses by addresses, and QUIC clients may change theirs.

use super::shared_socket::{Predecessor, QuicHandle, SharedSocket, Sharing};
use crate::multiplexed::{STREAMS, WINDOW};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{EndpointConfig, IdleTimeout, Runtime as _, ServerConfig, TokioRuntime, TransportConfig, VarInt};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Maximum number of a client's unidirectional streams: the three that it needs, and some of unknown types, which must
/// be ignored.
const OTHER_STREAMS: u32 = 16;

/// A client that has sent nothing for this long is gone. Keep-alive packets from the server keep idle connections open
/// longer.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of connections that are not accepted yet, and of their buffered bytes, each and in total.
const MAX_HANDSHAKES: usize = 256;
const WAITING_EACH: u64 = 16 << 10;
const WAITING_ALL: u64 = 2 << 20;

/// Requested size of the kernel's buffer for the socket: a burst of datagrams arrives while a thread is busy.
const SOCKET_BUFFER: usize = 4 << 20;

/// Settings of an endpoint.
#[derive(Debug, Clone)]
pub struct Config {
    server: ServerConfig,
    retry_above: usize,
}

/// The TLS settings do not allow HTTP/3.
#[derive(Debug, thiserror::Error)]
#[error("HTTP/3 needs TLS 1.3 with TLS_AES_128_GCM_SHA256, which the TLS settings exclude")]
pub struct ConfigError(#[from] quinn::crypto::rustls::NoInitialCipherSuite);

impl Config {
    /// QUIC with the TLS configuration `tls`, whose only protocol is `h3`.
    ///
    /// While `retry_above` connections have clients with an unvalidated address, new clients must validate theirs first
    /// (Retry).
    ///
    /// # Errors
    /// The configuration lacks QUIC's initial cipher suite.
    pub fn new(tls: Arc<rustls::ServerConfig>, retry_above: usize) -> Result<Self, ConfigError> {
        let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
        server
            .transport_config(Arc::new(transport()))
            .migration(true)
            .max_incoming(MAX_HANDSHAKES)
            .incoming_buffer_size(WAITING_EACH)
            .incoming_buffer_size_total(WAITING_ALL);
        Ok(Self { server, retry_above })
    }
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .max_concurrent_uni_streams(VarInt::from_u32(OTHER_STREAMS))
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(super::link::MIN_WINDOW)
        .datagram_receive_buffer_size(None)
        .keep_alive_interval(Some(KEEP_ALIVE_INTERVAL))
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok());
    transport
}

/// A bound endpoint that has not begun.
#[derive(Debug)]
pub(crate) struct Endpoint {
    socket: UdpSocket,
    local: SocketAddr,
    config: Config,
    sharing: Arc<Sharing>,
}

/// An admitted connection whose handshake has not begun.
#[derive(Debug)]
pub(crate) struct IncomingConnection {
    pub(super) incoming: quinn::Incoming,
    pub(super) local: SocketAddr,
    /// Dropped when the client has validated its address or is gone; `None` if the address is already validated.
    pub(super) unvalidated: Option<Unvalidated>,
}

impl IncomingConnection {
    /// The client's address.
    pub(crate) fn remote(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// The address that the client connected to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }
}

/// Counts a connection whose client has not validated its address.
#[derive(Debug)]
pub(super) struct Unvalidated(Arc<AtomicUsize>);

impl Unvalidated {
    fn new(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Relaxed);
        Self(all.clone())
    }
}

impl Drop for Unvalidated {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Endpoint {
    /// Binds the address.
    pub(crate) fn bind(addr: SocketAddr, config: Config) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        if addr.is_ipv6() {
            // `[::]` includes IPv4, as for TCP.
            socket.set_only_v6(false)?;
        }
        // The kernel caps these at its own limits.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        socket.bind(&SockAddr::from(addr))?;
        Self::of(UdpSocket::from(socket), None, config)
    }

    /// Takes over a bound socket, possibly from a process that still has connections over it.
    pub(crate) fn of(socket: UdpSocket, predecessor: Option<Predecessor>, config: Config) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        Ok(Self { socket, local, config, sharing: Sharing::new(predecessor) })
    }

    /// Handle with which another process can take the socket over.
    pub(crate) fn handle(&self) -> io::Result<(UdpSocket, QuicHandle)> {
        Ok((self.socket.try_clone()?, QuicHandle::new(&self.sharing)))
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Admits clients for ever and passes each to `take`, whose future delays the next one. Once this future is
    /// dropped, new clients are refused or left to the successor; existing connections go on.
    pub(crate) async fn accept_loop<F: Future<Output = ()>>(
        self,
        take: impl Fn(IncomingConnection) -> F,
    ) -> io::Result<()> {
        let Self { socket, local, config: Config { server, retry_above }, sharing } = self;
        // Each start generates a new key for stateless resets.
        let mut endpoint = EndpointConfig::default();
        let mark = sharing.mark;
        endpoint.cid_generator(move || mark.generator());
        let socket = SharedSocket::new(TokioRuntime.wrap_udp_socket(socket)?, sharing.clone());
        let quinn = quinn::Endpoint::new_with_abstract_socket(endpoint, Some(server), socket, Arc::new(TokioRuntime))?;
        let open = AcceptingEndpoint { endpoint: quinn, sharing };
        let unvalidated = Arc::new(AtomicUsize::new(0));
        while let Some(incoming) = open.endpoint.accept().await {
            let proved = incoming.remote_address_validated();
            if !proved && incoming.may_retry() && unvalidated.load(Relaxed) >= retry_above {
                let _ = incoming.retry();
                continue;
            }
            let local = incoming.local_ip().map_or(local, |ip| SocketAddr::new(ip, local.port()));
            let unvalidated = (!proved).then(|| Unvalidated::new(&unvalidated));
            take(IncomingConnection { incoming, local, unvalidated }).await;
        }
        Err(io::Error::other("the endpoint has ended"))
    }
}

/// An endpoint that accepts clients. Once dropped, new clients are refused at once instead of being left waiting. If
/// the socket outlives this process they get no response, so they retry and reach the successor.
struct AcceptingEndpoint {
    endpoint: quinn::Endpoint,
    sharing: Arc<Sharing>,
}

impl Drop for AcceptingEndpoint {
    fn drop(&mut self) {
        let (endpoint, sharing) = (self.endpoint.clone(), self.sharing.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                while let Some(incoming) = endpoint.accept().await {
                    if sharing.outlives() {
                        incoming.ignore();
                    } else {
                        incoming.refuse();
                    }
                }
            });
        }
    }
}

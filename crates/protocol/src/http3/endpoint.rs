//! The UDP socket of HTTP/3: how it is set up, and who is let in.
//!
//! One endpoint per address, whose socket is read on the first I/O thread. It gives each new connection to the I/O thread with
//! the fewest, as a listener does: from then on that thread does all the work of the connection, encryption and sending
//! included, and only the datagrams that come in cross threads. A socket for each thread (`SO_REUSEPORT`) would not keep a
//! connection on its thread: the kernel chooses by addresses, and a client of QUIC may change its own.

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

/// Streams of a client that carry no request: three that it needs, and some that it opens to see whether they are ignored.
const OTHER_STREAMS: u32 = 16;

/// A client from which nothing has come for so long is gone. Connections live longer than that, as the server asks.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Maximum number of connections that were not accepted yet, with their waiting bytes.
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

/// Why there can be no HTTP/3 with this TLS.
#[derive(Debug, thiserror::Error)]
#[error("HTTP/3 needs TLS 1.3 with TLS_AES_128_GCM_SHA256, which these settings of TLS leave out")]
pub struct ConfigError(#[from] quinn::crypto::rustls::NoInitialCipherSuite);

impl Config {
    /// QUIC with TLS as `tls` has it, which speaks `h3` alone.
    ///
    /// While there are `retry_above` connections whose client has not proved its address, new ones have to.
    ///
    /// # Errors
    /// It lacks what QUIC begins with.
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

/// A connection that was let in and has not begun.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(super) incoming: quinn::Incoming,
    pub(super) local: SocketAddr,
    /// Given back when the client has proved its address, or is gone; none if it has proved it already.
    pub(super) unvalidated: Option<Unvalidated>,
}

impl Guest {
    /// Where it comes from.
    pub(crate) fn remote(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Where it came to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }
}

/// One of the connections whose clients may be lying about their address.
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
            // As for TCP.
            socket.set_only_v6(false)?;
        }
        // The kernel gives what its own limit allows.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        socket.bind(&SockAddr::from(addr))?;
        Self::of(UdpSocket::from(socket), None, config)
    }

    /// Takes over a socket that is bound already, perhaps from a process that still has connections over it.
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

    /// Lets clients in for ever and gives each to `take`, which may hold further ones back by waiting. When this is dropped,
    /// new clients are refused, or left to the process that comes next; the connections that there are go on.
    pub(crate) async fn accept_loop<F: Future<Output = ()>>(self, take: impl Fn(Guest) -> F) -> io::Result<()> {
        let Self { socket, local, config: Config { server, retry_above }, sharing } = self;
        // The key of stateless resets is made anew with each start.
        let mut endpoint = EndpointConfig::default();
        let mark = sharing.mark;
        endpoint.cid_generator(move || mark.generator());
        let socket = SharedSocket::new(TokioRuntime.wrap_udp_socket(socket)?, sharing.clone());
        let quinn = quinn::Endpoint::new_with_abstract_socket(endpoint, Some(server), socket, Arc::new(TokioRuntime))?;
        let open = Open { endpoint: quinn, sharing };
        let unvalidated = Arc::new(AtomicUsize::new(0));
        while let Some(incoming) = open.endpoint.accept().await {
            let proved = incoming.remote_address_validated();
            if !proved && incoming.may_retry() && unvalidated.load(Relaxed) >= retry_above {
                let _ = incoming.retry();
                continue;
            }
            let local = incoming.local_ip().map_or(local, |ip| SocketAddr::new(ip, local.port()));
            let unvalidated = (!proved).then(|| Unvalidated::new(&unvalidated));
            take(Guest { incoming, local, unvalidated }).await;
        }
        Err(io::Error::other("the endpoint has ended"))
    }
}

/// An endpoint that accepts clients. Once it is dropped, new ones are refused at once, rather than left waiting; unless
/// the socket outlives this process: then they get no response here, retry, and reach the next one.
struct Open {
    endpoint: quinn::Endpoint,
    sharing: Arc<Sharing>,
}

impl Drop for Open {
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

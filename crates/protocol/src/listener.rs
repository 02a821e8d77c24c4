//! Listening sockets: binding with readable errors, accepting, and removing the file of a Unix socket at the end.

use crate::http3::{self, IncomingConnection, QuicHandle};
use crate::inherited::Inherited;
use crate::unix_socket::{self, UnixAccess};
use arc_swap::ArcSwapOption;
use howdah_config::{ListenAddr, MissingDirectory, SocketPlace};
use howdah_observe::LogThrottle;
use rustix::net::SocketFlags;
use rustls::ServerConfig;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// Connections that may wait to be accepted. The kernel caps it at `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Limits the log: without descriptors or memory, every listener fails ten times a second.
static NO_DESCRIPTORS: LogThrottle = LogThrottle::new(Duration::from_secs(10));

/// An accepted connection that no I/O thread has taken over yet.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// Over TCP, with both ends' addresses.
    Tcp {
        /// The connection.
        stream: TcpStream,
        /// The client's address.
        remote: SocketAddr,
        /// The address it connected to.
        local: SocketAddr,
        /// `None` for plain HTTP.
        protocol: Option<Arc<ListenerProtocol>>,
    },
    /// Over the Unix socket at `path`.
    Unix {
        /// The connection.
        stream: UnixStream,
        /// The listener's path.
        path: Arc<Path>,
        /// `None` for plain HTTP.
        protocol: Option<Arc<ListenerProtocol>>,
    },
    /// Over QUIC.
    Quic(Box<IncomingConnection>),
}

/// Error of binding an address, with the remedy if it is known.
#[derive(Debug, thiserror::Error)]
pub struct BindError {
    addr: ListenAddr,
    over_udp: bool,
    source: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let udp = if self.over_udp { " for HTTP/3 (UDP)" } else { "" };
        write!(f, "cannot listen on {}{udp}: {}", self.addr, self.source)?;
        match (self.source.kind(), self.addr.place()) {
            (io::ErrorKind::AddrInUse, SocketPlace::Tcp(addr)) if self.over_udp => write!(
                f,
                "; another program uses UDP port {} (`ss -lunp` shows which), or the server being replaced is still draining",
                addr.port()
            ),
            (io::ErrorKind::AddrInUse, SocketPlace::Tcp(addr)) => {
                write!(
                    f,
                    "; another program uses port {} (`ss -ltnp` shows which), or choose another with `listen`",
                    addr.port()
                )
            }
            (io::ErrorKind::AddrInUse, SocketPlace::Unix(_)) => write!(f, "; another server answers there"),
            (io::ErrorKind::PermissionDenied, SocketPlace::Tcp(addr)) if addr.port() < 1024 => {
                write!(
                    f,
                    "; ports below 1024 need root or CAP_NET_BIND_SERVICE (`AmbientCapabilities=` in a systemd unit), or choose a higher port"
                )
            }
            (io::ErrorKind::PermissionDenied, SocketPlace::Unix(path)) => {
                write!(f, "; this user needs write permission in {}", path.parent().unwrap_or(Path::new("/")).display())
            }
            (io::ErrorKind::AddrNotAvailable, _) => {
                write!(f, "; this machine has no such address (`ip addr` shows which it has)")
            }
            (io::ErrorKind::NotFound, SocketPlace::Unix(path)) => match MissingDirectory::of(path) {
                Some(missing) => write!(f, "; {missing}"),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
enum Inner {
    Stream(Stream),
    Quic(http3::Endpoint),
}

/// Source of connections.
#[derive(Debug)]
enum Stream {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, UnixPath),
}

/// The file of a Unix socket; removed when the listener is dropped, if it is still the same file.
#[derive(Debug)]
struct UnixPath {
    path: Arc<Path>,
    identity: Option<(u64, u64)>,
    stays: Arc<AtomicBool>,
}

impl UnixPath {
    fn new(path: &Path) -> Self {
        Self { path: Arc::from(path), identity: identity(path), stays: Arc::default() }
    }
}

impl Drop for UnixPath {
    fn drop(&mut self) {
        if !self.stays.load(Relaxed) && self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Handle with which another process can continue a listener.
#[derive(Debug)]
pub struct ListenerHandle {
    addr: ListenAddr,
    fd: OwnedFd,
    quic: Option<QuicHandle>,
    stays: Option<Arc<AtomicBool>>,
}

impl ListenerHandle {
    /// The address, with the port that the system chose.
    pub fn addr(&self) -> &ListenAddr {
        &self.addr
    }

    /// For HTTP/3: the handle with which the socket is handed over.
    pub fn quic(&self) -> Option<&QuicHandle> {
        self.quic.as_ref()
    }

    /// Keeps the file of a Unix socket when the listener is dropped: another process listens on it.
    pub fn leave_file(&self) {
        if let Some(stays) = &self.stays {
            stays.store(true, Relaxed);
        }
    }
}

impl AsFd for ListenerHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A bound socket.
#[derive(Debug)]
pub struct Listener {
    inner: Inner,
    configured: ListenAddr,
    protocol: SharedProtocol,
}

/// A protocol other than plain HTTP that a listener's connections speak.
#[derive(Debug)]
pub enum ListenerProtocol {
    /// HTTP over TLS.
    Tls(Arc<ServerConfig>),
    /// FastCGI, with a web server as the client.
    FastCgi,
}

impl ListenerProtocol {
    /// The protocol of an address; `tls` is the configuration for addresses that speak TLS.
    pub fn at(addr: &ListenAddr, tls: Option<&Arc<ServerConfig>>) -> Option<Self> {
        match addr {
            ListenAddr::Https(_) => tls.cloned().map(Self::Tls),
            ListenAddr::FastCgiTcp(_) | ListenAddr::FastCgiUnix(_) => Some(Self::FastCgi),
            ListenAddr::Tcp(_) | ListenAddr::Unix(_) => None,
        }
    }
}

/// The protocol that a listener's connections speak: plain HTTP if `None`. May change while it listens.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedProtocol(Arc<ArcSwapOption<ListenerProtocol>>);

impl SharedProtocol {
    fn at(addr: &ListenAddr) -> Self {
        Self(Arc::new(ArcSwapOption::from(ListenerProtocol::at(addr, None).map(Arc::new))))
    }

    /// Applies to connections accepted from now on.
    pub(crate) fn set(&self, protocol: Option<ListenerProtocol>) {
        self.0.store(protocol.map(Arc::new));
    }
}

impl Listener {
    /// Binds an address. A Unix socket's file without a listener (left by a killed server) is replaced.
    pub fn bind(addr: &ListenAddr) -> Result<Self, BindError> {
        Self::bind_for(addr, UnixAccess::default())
    }

    /// Binds an address; `access` sets the owner and mode of a Unix socket.
    pub fn bind_for(addr: &ListenAddr, access: UnixAccess) -> Result<Self, BindError> {
        Self::of_stream(
            addr,
            match addr.place() {
                SocketPlace::Tcp(tcp) => bind_tcp(tcp),
                SocketPlace::Unix(path) => bind_unix(path, access),
            },
        )
    }

    fn of_stream(addr: &ListenAddr, stream: io::Result<Stream>) -> Result<Self, BindError> {
        match stream {
            Ok(stream) => {
                Ok(Self { inner: Inner::Stream(stream), configured: addr.clone(), protocol: SharedProtocol::at(addr) })
            }
            Err(source) => Err(BindError { addr: addr.clone(), over_udp: false, source }),
        }
    }

    /// Takes over a socket that another process bound to this address. The file of a Unix socket is kept when the
    /// listener is dropped, until `own_file` is called.
    ///
    /// # Errors
    /// The system's error.
    pub fn inherit(addr: &ListenAddr, socket: Inherited) -> Result<Self, BindError> {
        let stream = match addr.place() {
            SocketPlace::Tcp(_) => {
                let listener = TcpListener::from(socket.fd);
                listener.local_addr().map(|local| Stream::Tcp(listener, local))
            }
            SocketPlace::Unix(path) => {
                let file = UnixPath::new(path);
                file.stays.store(true, Relaxed);
                Ok(Stream::Unix(UnixListener::from(socket.fd), file))
            }
        };
        Self::of_stream(addr, stream)
    }

    /// Takes over a socket for HTTP/3.
    ///
    /// # Errors
    /// The system's error.
    pub fn inherit_quic(addr: SocketAddr, socket: Inherited, config: http3::Config) -> Result<Self, BindError> {
        Self::quic(addr, http3::Endpoint::of(socket.fd.into(), socket.predecessor, config))
    }

    /// From now on, dropping the listener removes the file of its Unix socket.
    pub fn own_file(&self) {
        if let Inner::Stream(Stream::Unix(_, path)) = &self.inner {
            path.stays.store(false, Relaxed);
        }
    }

    /// Handle with which another process can continue this listener. Must be called before the first accept.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub(crate) fn handle(&self) -> io::Result<ListenerHandle> {
        let (fd, quic, stays) = match &self.inner {
            Inner::Stream(Stream::Tcp(listener, _)) => (listener.try_clone()?.into(), None, None),
            Inner::Stream(Stream::Unix(listener, path)) => {
                (listener.try_clone()?.into(), None, Some(path.stays.clone()))
            }
            Inner::Quic(endpoint) => {
                let (socket, handle) = endpoint.handle()?;
                (socket.into(), Some(handle), None)
            }
        };
        Ok(ListenerHandle { addr: self.local_addr(), fd, quic, stays })
    }

    /// `true` for HTTP/3: datagrams of new connections may already have been read from the socket.
    pub(crate) fn is_over_udp(&self) -> bool {
        matches!(self.inner, Inner::Quic(_))
    }

    /// Makes accepted connections speak TLS.
    pub fn with_tls(self, config: Arc<ServerConfig>) -> Self {
        self.protocol.set(Some(ListenerProtocol::Tls(config)));
        self
    }

    /// Binds an address for HTTP/3.
    pub fn bind_quic(addr: SocketAddr, config: http3::Config) -> Result<Self, BindError> {
        Self::quic(addr, http3::Endpoint::bind(addr, config))
    }

    fn quic(addr: SocketAddr, endpoint: io::Result<http3::Endpoint>) -> Result<Self, BindError> {
        let configured = ListenAddr::Https(addr);
        match endpoint {
            Ok(endpoint) => Ok(Self { inner: Inner::Quic(endpoint), configured, protocol: SharedProtocol::default() }),
            Err(source) => Err(BindError { addr: configured, over_udp: true, source }),
        }
    }

    /// Sets the address as the settings name it; after `bind` it is already set.
    pub fn configured_as(mut self, addr: &ListenAddr) -> Self {
        self.configured = addr.clone();
        self
    }

    /// The address that was asked for, whose port may be 0.
    pub const fn configured(&self) -> &ListenAddr {
        &self.configured
    }

    /// Handle with which the protocol can be changed; `None` for HTTP/3.
    pub(crate) fn protocol(&self) -> Option<SharedProtocol> {
        matches!(self.inner, Inner::Stream(_)).then(|| self.protocol.clone())
    }

    /// The address, with the port that the system chose where 0 was asked for.
    pub fn local_addr(&self) -> ListenAddr {
        match (&self.inner, self.protocol.0.load().as_deref()) {
            (Inner::Stream(Stream::Tcp(_, addr)), None) => ListenAddr::Tcp(*addr),
            (Inner::Stream(Stream::Tcp(_, addr)), Some(ListenerProtocol::Tls(_))) => ListenAddr::Https(*addr),
            (Inner::Stream(Stream::Tcp(_, addr)), Some(ListenerProtocol::FastCgi)) => ListenAddr::FastCgiTcp(*addr),
            (Inner::Stream(Stream::Unix(_, path)), Some(ListenerProtocol::FastCgi)) => {
                ListenAddr::FastCgiUnix(PathBuf::from(&*path.path))
            }
            (Inner::Stream(Stream::Unix(_, path)), _) => ListenAddr::Unix(PathBuf::from(&*path.path)),
            (Inner::Quic(endpoint), _) => ListenAddr::Https(endpoint.local_addr()),
        }
    }

    /// Accepts connections for ever and passes each to `take`, whose future delays the next accept. Calls `make_room`
    /// when the process has no descriptor or memory for another connection.
    pub(crate) async fn accept_loop<F: Future<Output = ()>>(
        self,
        take: impl Fn(Accepted) -> F,
        make_room: impl Fn(),
    ) -> io::Result<()> {
        let Self { inner, protocol, configured: _ } = self;
        let stream = match inner {
            Inner::Quic(endpoint) => return endpoint.accept_loop(|guest| take(Accepted::Quic(Box::new(guest)))).await,
            Inner::Stream(stream) => stream,
        };
        let fd = match &stream {
            Stream::Tcp(listener, _) => AsFd::as_fd(listener),
            Stream::Unix(listener, _) => AsFd::as_fd(listener),
        };
        // Its replacement is unsafe: the descriptor must stay open, which the borrow of `stream` guarantees.
        #[allow(deprecated)]
        let ready = AsyncFd::with_interest(fd, tokio::io::Interest::READABLE)?;
        loop {
            let mut guard = ready.readable().await?;
            match guard.try_io(|_| stream.accept(&protocol)) {
                Ok(Ok(accepted)) => take(accepted).await,
                // No connection is waiting: the guard has cleared the readiness.
                Err(_would_block) => {}
                Ok(Err(error)) if is_about_one_connection(&error) => {}
                Ok(Err(error)) => {
                    if let Some(others) = NO_DESCRIPTORS.permit() {
                        tracing::error!(target: "howdah::listener", %error, others, "cannot accept connections: retrying");
                    }
                    // Out of descriptors or memory: only closing other connections helps.
                    make_room();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

impl Stream {
    fn accept(&self, protocol: &SharedProtocol) -> io::Result<Accepted> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match self {
            Self::Tcp(listener, addr) => {
                let (fd, remote) = rustix::net::acceptfrom_with(listener, flags)?;
                let stream = TcpStream::from(fd);
                let remote = match remote.map(SocketAddr::try_from) {
                    Some(Ok(remote)) => remote,
                    _ => stream.peer_addr()?,
                };
                // Only a wildcard listener has to ask the kernel which address the client used.
                let local = if addr.ip().is_unspecified() { stream.local_addr()? } else { *addr };
                if !addr.ip().is_loopback() && remote.ip().to_canonical().is_loopback() {
                    do_without_pacing(&stream);
                }
                Ok(Accepted::Tcp { stream, remote, local, protocol: protocol.0.load_full() })
            }
            Self::Unix(listener, path) => {
                let fd = rustix::net::accept_with(listener, flags)?;
                Ok(Accepted::Unix {
                    stream: UnixStream::from(fd),
                    path: path.path.clone(),
                    protocol: protocol.0.load_full(),
                })
            }
        }
    }
}

/// Selects Reno as congestion control for clients on this machine, such as a reverse proxy. Local sockets lose no
/// packets, but BBR, where it is the system default, still paces them with timers. That costs a fifth to a quarter of
/// the processor time of a large response, and delays connections. Every kernel has Reno, and selecting it needs no
/// privileges (tcp(7), `TCP_CONGESTION`).
fn do_without_pacing(socket: impl AsFd) {
    // A failure only makes the connection slower.
    let _ = rustix::net::sockopt::set_tcp_congestion(socket, "reno");
}

/// Errors of `accept` that concern the connection that was waiting, not the listener (see accept(2)).
fn is_about_one_connection(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let Some(code) = error.raw_os_error() else { return false };
    [Errno::CONNABORTED, Errno::INTR, Errno::PROTO, Errno::NETDOWN, Errno::HOSTUNREACH, Errno::NETUNREACH, Errno::PERM]
        .iter()
        .any(|errno| errno.raw_os_error() == code)
}

fn bind_tcp(addr: SocketAddr) -> io::Result<Stream> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() {
        // `[::]` is documented as "every address", IPv4 included.
        socket.set_only_v6(false)?;
    }
    // Accepted sockets inherit it from the listener, which saves a system call per connection.
    socket.set_tcp_nodelay(true)?;
    if addr.ip().is_loopback() {
        // Only clients on this machine can reach this address.
        do_without_pacing(&socket);
    }
    socket.bind(&SockAddr::from(addr))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from(socket);
    let local = listener.local_addr()?;
    Ok(Stream::Tcp(listener, local))
}

fn bind_unix(path: &Path, access: UnixAccess) -> io::Result<Stream> {
    if let Ok(meta) = std::fs::symlink_metadata(path) {
        if !meta.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists and is not a socket"));
        }
        match UnixStream::connect(path) {
            Ok(_) => return Err(io::Error::from(io::ErrorKind::AddrInUse)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            Err(error) => return Err(error),
        }
    }
    let socket = unix_socket::bind_private(path)?;
    let path = UnixPath::new(path);
    socket.listen(BACKLOG)?;
    unix_socket::open_up(&path.path, access)?;
    socket.set_nonblocking(true)?;
    let listener = UnixListener::from(OwnedFd::from(socket));
    Ok(Stream::Unix(listener, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_port_is_named_in_the_error() {
        let first = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let addr = first.local_addr();
        let ListenAddr::Tcp(tcp) = &addr else { unreachable!() };
        let error = Listener::bind(&addr).unwrap_err().to_string();
        assert!(error.contains(&format!("another program uses port {}", tcp.port())), "{error}");
    }

    #[test]
    fn a_client_on_this_machine_is_not_paced() {
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let ListenAddr::Tcp(addr) = listener.local_addr() else { unreachable!() };
        let Inner::Stream(stream) = listener.inner else { unreachable!() };
        let _client = TcpStream::connect(addr).unwrap();
        let accepted = loop {
            match stream.accept(&SharedProtocol::default()) {
                Ok(accepted) => break accepted,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        let Accepted::Tcp { stream, .. } = accepted else { unreachable!() };
        assert_eq!(rustix::net::sockopt::tcp_congestion(&stream).unwrap(), "reno");
    }

    #[test]
    fn a_stale_unix_socket_is_replaced_a_live_one_is_not_and_none_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "the standard library leaves the file");
        let addr = ListenAddr::Unix(path.clone());
        let listener = Listener::bind(&addr).unwrap();
        let error = Listener::bind(&addr).unwrap_err().to_string();
        assert!(error.contains("another server answers there"), "{error}");
        drop(listener);
        assert!(!path.exists());
        std::fs::write(&path, "x").unwrap();
        assert!(Listener::bind(&addr).unwrap_err().to_string().contains("not a socket"));
        assert!(path.exists());
    }

    #[test]
    fn a_socket_file_that_replaced_ours_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let old = Listener::bind(&ListenAddr::Unix(path.clone())).unwrap();
        std::fs::rename(&path, dir.path().join("old")).unwrap();
        let new = UnixListener::bind(&path).unwrap();
        drop(old);
        assert!(path.exists());
        drop(new);
    }
}

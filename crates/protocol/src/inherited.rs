//! Sockets that another process has bound and handed over: the server that this one replaces, or systemd.
//!
//! The type and address of a descriptor are read from the kernel; data sent along with it is not trusted.

use crate::http3::Predecessor;
use howdah_config::{ListenAddr, SocketPlace};
use rustix::net::{SocketType, sockopt};
use socket2::SockRef;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Address of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoundTo {
    /// TCP.
    Tcp(SocketAddr),
    /// UDP.
    Udp(SocketAddr),
    /// A listening Unix socket's path.
    Unix(PathBuf),
}

impl fmt::Display for BoundTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => write!(f, "{addr}"),
            Self::Udp(addr) => write!(f, "{addr} (UDP)"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// An inherited socket: a listening one, or a UDP socket.
#[derive(Debug)]
pub struct Inherited {
    pub(crate) fd: OwnedFd,
    /// Its address.
    pub bound: BoundTo,
    /// The old server's number for it.
    pub number: usize,
    /// Its name from systemd.
    pub name: Option<String>,
    /// The process that still has connections over it (UDP).
    pub predecessor: Option<Predecessor>,
    /// This server removes its file.
    pub owns_file: bool,
}

impl Inherited {
    /// Inspects an inherited descriptor.
    ///
    /// # Errors
    /// The descriptor is neither a listening socket nor a UDP socket.
    pub fn of(fd: OwnedFd, owns_file: bool) -> io::Result<Self> {
        let kind = sockopt::socket_type(&fd)?;
        let addr = SockRef::from(&fd).local_addr()?;
        let listens = || sockopt::socket_acceptconn(&fd).unwrap_or(false);
        let bound = match (addr.as_socket(), addr.as_pathname()) {
            (Some(addr), _) if kind == SocketType::STREAM && listens() => BoundTo::Tcp(addr),
            (Some(addr), _) if kind == SocketType::DGRAM => BoundTo::Udp(addr),
            (None, Some(path)) if kind == SocketType::STREAM && listens() => BoundTo::Unix(path.to_owned()),
            _ => return Err(io::Error::other("neither a listening socket nor a UDP socket")),
        };
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { fd, bound, number: 0, name: None, predecessor: None, owns_file })
    }

    /// `true` if the socket fits `addr`. Port 0 matches any port. systemd binds a port without an address to `[::]`,
    /// which also covers `0.0.0.0`.
    fn is_for(&self, bound: SocketAddr, addr: SocketAddr) -> bool {
        let all = || SockRef::from(&self.fd).only_v6().is_ok_and(|only| !only);
        let same = bound.ip() == addr.ip()
            || bound.ip() == Ipv6Addr::UNSPECIFIED && addr.ip() == Ipv4Addr::UNSPECIFIED && all();
        same && (addr.port() == 0 || bound.port() == addr.port())
    }

    /// The socket itself.
    pub fn into_fd(self) -> OwnedFd {
        self.fd
    }
}

/// Inherited sockets that no address of the settings has claimed yet.
#[derive(Debug, Default)]
pub struct InheritedSockets(pub Vec<Inherited>);

impl InheritedSockets {
    /// Takes the socket for an address of the settings.
    pub fn take(&mut self, addr: &ListenAddr) -> Option<Inherited> {
        self.find(|socket| match (&socket.bound, addr.place()) {
            (BoundTo::Tcp(bound), SocketPlace::Tcp(addr)) => socket.is_for(*bound, addr),
            (BoundTo::Unix(bound), SocketPlace::Unix(path)) => bound == path,
            _ => false,
        })
    }

    /// Takes the HTTP/3 socket for an address.
    pub fn take_udp(&mut self, addr: SocketAddr) -> Option<Inherited> {
        self.find(|socket| matches!(socket.bound, BoundTo::Udp(bound) if socket.is_for(bound, addr)))
    }

    fn find(&mut self, fits: impl Fn(&Inherited) -> bool) -> Option<Inherited> {
        let position = self.0.iter().position(fits)?;
        Some(self.0.swap_remove(position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn only_listening_sockets_are_accepted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let client = TcpStream::connect(addr).unwrap();
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        assert!(Inherited::of(client.into(), true).is_err());
        assert!(Inherited::of(pipe, true).is_err());
        assert_eq!(Inherited::of(listener.into(), true).unwrap().bound, BoundTo::Tcp(addr));
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let addr = udp.local_addr().unwrap();
        assert_eq!(Inherited::of(udp.into(), true).unwrap().bound, BoundTo::Udp(addr));
    }

    #[test]
    fn a_socket_goes_to_the_address_that_it_is_bound_to() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (addr, other) = (listener.local_addr().unwrap(), "127.0.0.1:1".parse().unwrap());
        let inherited = || Inherited::of(listener.try_clone().unwrap().into(), true).unwrap();
        let mut sockets = InheritedSockets(vec![inherited(), inherited()]);
        assert!(sockets.take(&ListenAddr::Tcp(other)).is_none());
        assert!(sockets.take_udp(addr).is_none());
        assert!(sockets.take(&ListenAddr::Https(addr)).is_some());
        assert!(sockets.take(&"127.0.0.1:0".parse().unwrap()).is_some(), "any port");
        assert!(sockets.take(&ListenAddr::Tcp(addr)).is_none(), "each is taken once");
    }

    #[test]
    fn a_socket_for_all_addresses_includes_ipv4() {
        let Ok(listener) = TcpListener::bind("[::]:0") else {
            howdah_skip::skip!("ipv6", "this machine has no IPv6");
        };
        let port = listener.local_addr().unwrap().port();
        let mut sockets = InheritedSockets(vec![Inherited::of(listener.into(), false).unwrap()]);
        assert!(sockets.take(&format!("127.0.0.1:{port}").parse().unwrap()).is_none());
        assert!(sockets.take(&format!(":{port}").parse().unwrap()).is_some());
    }
}

//! Both ends of a connection, formatted once per connection as PHP needs them.

use std::net::{IpAddr, SocketAddr};

/// The peer, and the address that it connected to.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The client's address; `None` on a Unix socket.
    pub addr: Option<IpAddr>,
    /// The client's address as text; `unix:` on a Unix socket.
    pub addr_text: Box<str>,
    /// The client's port as text; empty on a Unix socket.
    pub port_text: Box<str>,
    /// The server's address as text; the path on a Unix socket.
    pub server_addr: Box<str>,
    /// The server's port as text; empty on a Unix socket.
    pub server_port: Box<str>,
    /// The handler trusts this peer's headers about its clients.
    pub trusted: bool,
    /// The connection is encrypted.
    pub https: bool,
}

impl Peer {
    /// A TCP peer. An IPv4-mapped IPv6 address is converted to IPv4, also for `trusts`.
    pub fn tcp(remote: SocketAddr, local: SocketAddr, trusts: impl Fn(Option<IpAddr>) -> bool) -> Self {
        let addr = remote.ip().to_canonical();
        Self {
            addr: Some(addr),
            addr_text: addr.to_string().into(),
            port_text: remote.port().to_string().into(),
            server_addr: local.ip().to_canonical().to_string().into(),
            server_port: local.port().to_string().into(),
            trusted: trusts(Some(addr)),
            https: false,
        }
    }

    /// A peer over QUIC, which is always encrypted.
    pub fn quic(remote: SocketAddr, local: SocketAddr, trusts: impl Fn(Option<IpAddr>) -> bool) -> Self {
        Self { https: true, ..Self::tcp(remote, local, trusts) }
    }

    /// A peer on the Unix socket at `path`. The texts are those nginx gives its scripts.
    pub fn unix(path: &std::path::Path, trusts: impl Fn(Option<IpAddr>) -> bool) -> Self {
        Self {
            addr: None,
            addr_text: "unix:".into(),
            port_text: "".into(),
            server_addr: format!("unix:{}", path.display()).into(),
            server_port: "".into(),
            trusted: trusts(None),
            https: false,
        }
    }
}

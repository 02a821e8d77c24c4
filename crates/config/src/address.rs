//! Addresses: where to listen, and which peers are trusted as proxies.

use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// An address to listen on or to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenAddr {
    Tcp(SocketAddr),
    /// TCP with TLS.
    Https(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// TCP for a web server that speaks FastCGI.
    FastCgiTcp(SocketAddr),
    /// The path of a Unix socket for a web server that speaks FastCGI.
    FastCgiUnix(PathBuf),
}

/// The socket of an address, regardless of its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketPlace<'a> {
    Tcp(SocketAddr),
    Unix(&'a Path),
}

impl ListenAddr {
    pub fn place(&self) -> SocketPlace<'_> {
        match self {
            Self::Tcp(addr) | Self::Https(addr) | Self::FastCgiTcp(addr) => SocketPlace::Tcp(*addr),
            Self::Unix(path) | Self::FastCgiUnix(path) => SocketPlace::Unix(path),
        }
    }

    /// `true` if the protocol is FastCGI.
    pub const fn is_fastcgi(&self) -> bool {
        matches!(self, Self::FastCgiTcp(_) | Self::FastCgiUnix(_))
    }
}

impl Default for ListenAddr {
    fn default() -> Self {
        Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080))
    }
}

impl FromStr for ListenAddr {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if let Some(rest) = text.strip_prefix("fastcgi:") {
            return match rest.parse()? {
                Self::Tcp(addr) if !rest.contains("://") => Ok(Self::FastCgiTcp(addr)),
                Self::Unix(path) => Ok(Self::FastCgiUnix(path)),
                _ => Err(()),
            };
        }
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(()) } else { Ok(Self::Unix(PathBuf::from(path))) };
        }
        if let Some(rest) = text.strip_prefix("https://") {
            return match rest.parse()? {
                Self::Tcp(addr) if !rest.contains("://") => Ok(Self::Https(addr)),
                _ => Err(()),
            };
        }
        if let Some(rest) = text.strip_prefix("http://") {
            return match rest.parse()? {
                Self::Tcp(addr) if !rest.contains("://") => Ok(Self::Tcp(addr)),
                _ => Err(()),
            };
        }
        if let Some(port) = text.strip_prefix(':') {
            let port = port.parse().map_err(|_| ())?;
            return Ok(Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port)));
        }
        if let Some(port) = text.strip_prefix("localhost:") {
            let port = port.parse().map_err(|_| ())?;
            return Ok(Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)));
        }
        text.parse().map(Self::Tcp).map_err(|_| ())
    }
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => addr.fmt(f),
            Self::Https(addr) => write!(f, "https://{addr}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::FastCgiTcp(addr) => write!(f, "fastcgi:{addr}"),
            Self::FastCgiUnix(path) => write!(f, "fastcgi:unix:{}", path.display()),
        }
    }
}

/// A peer whose `http.trusted_headers` are trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrustedProxy {
    /// Every peer on a Unix socket.
    Unix,
    /// Every peer in a network.
    Net(IpNet),
}

impl TrustedProxy {
    /// `true` if a peer with this address matches. IPv4-mapped IPv6 addresses count as IPv4.
    pub fn contains(&self, peer: IpAddr) -> bool {
        matches!(self, Self::Net(net) if net.contains(&peer.to_canonical()))
    }
}

impl FromStr for TrustedProxy {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        // A single address is a network that contains only this address.
        let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        net.map(Self::Net).map_err(|_| ())
    }
}

impl fmt::Display for TrustedProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix => f.write_str("unix"),
            Self::Net(net) if net.prefix_len() == net.max_prefix_len() => net.addr().fmt(f),
            Self::Net(net) => net.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, shown) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            (":80", "0.0.0.0:80"),
            ("localhost:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("unix:/a", "unix:/a"),
            ("http://:80", "0.0.0.0:80"),
            ("https://:443", "https://0.0.0.0:443"),
            ("https://[::]:443", "https://[::]:443"),
        ] {
            assert_eq!(text.parse::<ListenAddr>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "80",
            "example.org:80",
            ":99999",
            "unix:",
            "127.0.0.1",
            "::1:80:",
            "https://unix:/a",
            "https://http://:1",
        ] {
            assert!(text.parse::<ListenAddr>().is_err(), "{text}");
        }
    }

    #[test]
    fn networks_contain() {
        for (net, peer, inside) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("unix", "127.0.0.1", false),
        ] {
            let net: TrustedProxy = net.parse().unwrap();
            assert_eq!(net.contains(peer.parse().unwrap()), inside, "{net} {peer}");
        }
        for text in ["", "10.0.0.0/33", "::/129", "10/8", "10.0.0.0/", "host"] {
            assert!(text.parse::<TrustedProxy>().is_err(), "{text}");
        }
    }
}

//! Another server that responds: what the action `proxy` says. The connections to it are `howdah-site`'s.

use std::path::PathBuf;
use std::time::Duration;

/// Where requests are passed on to, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Proxy {
    /// The servers: at least one.
    pub upstreams: Vec<Upstream>,
    /// How one of them is chosen.
    pub balance: Balance,
    /// A part that is taken from the path's start.
    pub strip_prefix: Option<Box<str>>,
    /// Whether they see the host that the client asked for, else their own name.
    pub preserve_host: bool,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long a response's head may take, and each part of its body.
    pub timeout: Duration,
    /// How many further servers are tried where one cannot be reached.
    pub retries: u32,
    /// Connections that are kept open to each server.
    pub keepalive: usize,
    /// Requests that may run on each server at once; 0 for any number.
    pub max_requests: usize,
    /// A server that failed so often is left out for `fail_for`; 0 for never.
    pub max_fails: u32,
    /// How long it is left out.
    pub fail_for: Duration,
    /// How servers are asked whether they are well.
    pub health: Option<Health>,
}

/// A server that requests are passed on to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Whether the connection is encrypted.
    pub https: bool,
    /// Where it listens.
    pub address: UpstreamAddress,
    /// Its share where requests are spread.
    pub weight: u32,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamAddress {
    /// A name or address (IPv6 without brackets), and a port.
    Tcp(Box<str>, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// How a server is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The one with the fewest requests.
    LeastRequests,
    /// The same for each client, while it is well.
    Client,
    /// The first that is well: the others are its reserve.
    First,
}

/// How servers are asked whether they are well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The path; a status from 200 to 399 means well.
    pub path: Box<str>,
    /// How often.
    pub interval: Duration,
    /// How long that may take.
    pub timeout: Duration,
}

impl Default for Proxy {
    fn default() -> Self {
        Self {
            upstreams: Vec::new(),
            balance: Balance::default(),
            strip_prefix: None,
            preserve_host: true,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(60),
            retries: 1,
            keepalive: 32,
            max_requests: 0,
            max_fails: 1,
            fail_for: Duration::from_secs(10),
            health: None,
        }
    }
}

impl Upstream {
    /// Reads `http://HOST:PORT`, `https://HOST:PORT`, `HOST:PORT` or `unix:PATH`.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn new(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no server: write http://HOST:PORT, https://HOST:PORT or unix:/PATH");
        let of = |https, address| Ok(Self { https, address, weight: 1 });
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.starts_with('/') { of(false, UpstreamAddress::Unix(path.into())) } else { Err(wrong()) };
        }
        let (https, authority) = match text.split_once("://") {
            Some(("http", authority)) => (false, authority),
            Some(("https", authority)) => (true, authority),
            Some(_) => return Err(wrong()),
            None => (false, text),
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let default_port = if https { 443 } else { 80 };
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, default_port),
            Some((host, rest)) => (host, rest.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or_else(wrong)?),
            None => match authority.rsplit_once(':') {
                Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
                None => (authority, default_port),
            },
        };
        let is_address = authority.starts_with('[') && host.parse::<std::net::Ipv6Addr>().is_ok();
        let is_name = !authority.starts_with('[')
            && !host.is_empty()
            && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
        if port == 0 || !(is_address || is_name) {
            return Err(wrong());
        }
        of(https, UpstreamAddress::Tcp(host.into(), port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_as_addresses() {
        let tcp = |host: &str, port| UpstreamAddress::Tcp(host.into(), port);
        for (text, https, address) in [
            ("http://127.0.0.1:3000", false, tcp("127.0.0.1", 3000)),
            ("https://backend.example/", true, tcp("backend.example", 443)),
            ("localhost:8080", false, tcp("localhost", 8080)),
            ("http://[::1]:81", false, tcp("::1", 81)),
            ("unix:/run/x.sock", false, UpstreamAddress::Unix("/run/x.sock".into())),
        ] {
            assert_eq!(Upstream::new(text), Ok(Upstream { https, address, weight: 1 }), "{text}");
        }
        for text in [
            "",
            "http://",
            "ftp://x",
            "http://x:y",
            "http://x:0",
            "http://x/path",
            "unix:x",
            "http://[x]:1",
            "a b",
            "http://u@h",
        ] {
            assert!(Upstream::new(text).is_err(), "{text}");
        }
    }
}
